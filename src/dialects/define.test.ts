import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished } from 'vitest'
import { Registry } from '../kernel/registry.ts'
import { createHttp, type HttpParts } from '../surfaces/http.ts'
import { createServerFactory, type McpConnection } from '../surfaces/mcp-server.ts'
import { listenOnSocket } from '../surfaces/socket.ts'
import { type Caller, openTestApp, type TestApp, test } from '../testing/app.ts'
import { defineDialect, meaning, type Output, text, tool, view, words } from './define.ts'
import { dialects } from './index.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any
type Status = Output<'task_get'>['task']['status']

const BERTHS = words<Status>({ BACKLOG: 'waiting', IN_PROGRESS: 'loading', REVIEW: 'customs', DONE: 'sailed' })
const berth = { berth_id: 'handle', state: ['status', BERTHS] } as const

/** A document with an envelope around what it changes, annotations and lanes of its own. */
const dock = defineDialect({
  name: 'dock',
  title: 'Dock (test)',
  casing: 'snake',
  lanes: { dock_master: 'admin', dock_guest: 'default' },
  tools: [
    tool({
      name: 'berth_list',
      native: 'task_list',
      description: 'All berths.',
      impact: 'read',
      fields: { state: { ...BERTHS, native: 'status', in: (state) => [BERTHS.in(state)] } },
      answer: ({ tasks }) => ({ berths: tasks.map(view(berth)) }),
    }),
    tool({
      name: 'berth_update',
      native: 'task_update',
      description: 'Change a berth.',
      impact: 'write',
      fields: { berth_id: { ...text(64), native: 'task_id' }, kind: { json: {}, native: 'task_type', out: (kind) => `kind ${kind}` } },
      required: ['berth_id'],
      answer: ({ task }) => view<typeof task>(berth)(task),
    }),
    tool({
      name: 'berth_do',
      native: 'task_move',
      description: 'Move a berth, or close it.',
      impact: 'destructive',
      fields: { berth_id: { ...text(64), native: 'task_id' }, action: { json: {}, native: 'status' } },
      answer: ({ task }) => view<typeof task>(berth)(task),
      instead: [
        {
          when: ({ action }) => action === 'close',
          means: meaning({
            native: 'task_close',
            fields: { berth_id: { ...text(64), native: 'task_id' }, action: { json: {}, native: null } },
            defaults: { reason: 'closed' },
            answer: ({ task }) => view<typeof task>(berth)(task),
          }),
        },
      ],
    }),
  ],
  codes: { INVALID_INPUT: 'BAD_ORDER' },
  done: (answer, { impact }) => (impact === 'read' ? answer : { success: true, code: 'OK', ...answer }),
  error: ({ code, message, next_tool, next_arguments, facts, issues }) => ({
    ...{ success: false, code, message, next_tool, next_arguments, issues },
    ...facts,
  }),
})

async function open(): Promise<TestApp> {
  const app = await openTestApp({ dialects: [dock] })
  onTestFinished(() => app.close())
  await app.project()
  return app
}

async function said(caller: Caller, name: string, input: object): Promise<Any> {
  const answer = await caller.invoke(name, input, { dialect: 'dock' })
  return answer.ok ? answer.value : answer.shaped
}

describe('a declaration', () => {
  test('[DI1] what does not exist natively does not compile: each of these lines is one that tsc must refuse', () => {
    const told = { name: 'x', description: 'x' }
    // @ts-expect-error no such tool
    tool({ ...told, native: 'task_sail', answer: {} })
    // @ts-expect-error no such argument, by the name in the document
    tool({ ...told, native: 'task_get', fields: { shipId: text(9) }, answer: {} })
    // @ts-expect-error no such argument, under a name of its own
    tool({ ...told, native: 'task_get', fields: { shipId: { ...text(9), native: 'ship_id' } }, answer: {} })
    // @ts-expect-error no such default
    tool({ ...told, native: 'task_list', defaults: { most: 3 }, answer: {} })
    // @ts-expect-error no such value
    tool({ ...told, native: 'review_decide', adds: { decision: 'sink' }, answer: {} })
    // @ts-expect-error no such documented argument
    tool({ ...told, native: 'task_get', fields: { taskId: text(9) }, required: ['shipId'], answer: {} })
    // @ts-expect-error no such field
    tool({ ...told, native: 'task_get', answer: { ship: 'ship' } })
    // @ts-expect-error no such field in other words
    tool({ ...told, native: 'review_request', answer: { state: ['state', BERTHS] } })
    // @ts-expect-error no such field of what is inside
    tool({ ...told, native: 'task_get', answer: { ship: ({ task }) => task.ship } })
    // @ts-expect-error the same in a function for all of it
    tool({ ...told, native: 'task_get', answer: ({ task }) => ({ ship: task.ship }) })
    // @ts-expect-error the same in a list
    tool({ ...told, native: 'task_list', answer: { ships: ({ tasks }) => tasks.map(view({ ship: 'ship' })) } })
    // @ts-expect-error the same where arguments choose the tool
    meaning({ native: 'task_sail', answer: {} })
    // @ts-expect-error a state without a word
    words<Status>({ BACKLOG: 'waiting' })
    expect(tool({ ...told, native: 'task_get', fields: { taskId: text(9) }, answer: { at: 'task' } })).toMatchObject(told)
  })

  test('[DI5] a tool that does not exist does not load, also one that only some arguments mean', async ({ app }) => {
    const [berth_list, , berth_do] = dock.tools as [Any, Any, Any]
    const load = (tool: object) => () => new Registry(app.app.registry.capabilities, [{ ...dock, tools: [tool as Any] }])
    expect(load(berth_do)).not.toThrow()
    expect(load({ ...berth_list, native: 'task_sail' })).toThrow('no tool is declared as task_sail')
    expect(load({ ...berth_do, instead: [{ ...berth_do.instead[0], native: 'task_sail' }] })).toThrow('no tool is declared as task_sail')
  })

  test('[DI6] nothing outside the folder of a dialect has its name or address', () => {
    const root = fileURLToPath(new URL('..', import.meta.url))
    const programs = readdirSync(join(root, 'adapters'))
    const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => /(?<![.]test)[.]tsx?$/.test(file))
    const named = dialects.flatMap(({ name, route }) => {
      const words = new RegExp(`\\b${name}\\b${route ? `|${route.path}` : ''}`)
      // An agent program may have the same name: where only those are spoken of, it is that one.
      const places = programs.includes(name) ? /^(kernel|surfaces)\// : /^(?!dialects\/)/
      return sources.filter((file) => places.test(file) && words.test(readFileSync(join(root, file), 'utf8')))
    })
    expect([sources.length > 100, named]).toEqual([true, []])
  })
})

describe('a call', () => {
  test('[DI2] has its own names and words, both ways', async () => {
    const app = await open()
    await app.task()
    expect(await said(app.owner, 'berth_list', { state: 'waiting' })).toEqual({ berths: [{ berth_id: 'T-1', state: 'waiting' }] })
    expect(await said(app.owner, 'berth_list', { state: 'loading' })).toEqual({ berths: [] })
    expect(await said(app.owner, 'berth_do', { berth_id: 'T-1', action: 'IN_PROGRESS' })).toMatchObject({ state: 'loading' })
  })

  test('[DI2] what the document does not know is refused in its names', async () => {
    const app = await open()
    const words = 'must be one of waiting, loading, customs, sailed'
    expect(await said(app.owner, 'berth_list', { state: 'BACKLOG' })).toMatchObject({
      code: 'BAD_ORDER',
      message: `berth_list: state: ${words}`,
      issues: [{ path: 'state', message: words }],
    })
    expect(await said(app.owner, 'berth_update', { kind: 7 })).toMatchObject({ issues: [{ path: 'berth_id', message: 'is missing' }] })
    for (const name of ['constructor', 'shipId'])
      expect((await said(app.owner, 'berth_list', { [name]: 'x' })).message).toBe(`berth_list: input: Unrecognized key: "${name}"`)
  })

  test('[DI3] what it is refused with has documented names, also the call that would help', async () => {
    const app = await open()
    await app.task()
    expect(await said(app.owner, 'berth_do', { berth_id: 'T-1', action: 'PAIR' })).toMatchObject({
      success: false,
      code: 'STATUS_WAS_TASK_TYPE',
      next_tool: 'berth_update',
      next_arguments: { berth_id: 'T-1', kind: 'kind PAIR' },
    })
    expect((await said(app.owner, 'berth_update', { berth_id: 'T-1', kind: 7 })).issues).toMatchObject([{ path: 'kind' }])
  })

  test('[DI5] for some arguments it is another tool, with the permissions of that one', async () => {
    const app = await open()
    const { id } = await app.task()
    const worker = await app.worker(id)
    expect(await said(worker, 'berth_do', { berth_id: 'T-1', action: 'close' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await said(app.owner, 'berth_do', { berth_id: 'T-1', action: 'close' })).toMatchObject({ success: true, state: 'sailed' })
    expect((await app.owner.call('task_get', { task_id: id })).task).toMatchObject({ status: 'DONE', closed_reason: 'closed' })
  })
})

describe('a connection', () => {
  test('[DI4] what stands around an answer depends on what the document says that the tool does', async () => {
    const app = await open()
    await app.task()
    expect(await said(app.owner, 'berth_list', {})).not.toHaveProperty('success')
    expect(await said(app.owner, 'berth_update', { berth_id: 'T-1', title: 'x' })).toEqual({
      ...{ success: true, code: 'OK' },
      ...{ berth_id: 'T-1', state: 'waiting' },
    })
  })

  test('[DI4] over HTTP a further name asks for its lane, and the list has the annotations of the document', async () => {
    const app = await open()
    const { kernel, feed } = app.app
    const http = createHttp({ kernel, feed, allowedHosts: [] } as unknown as HttpParts)
    const env = { outgoing: { once: () => {} }, incoming: {} }
    const listed = async (query: string) => {
      const headers = { authorization: `Bearer ${app.owner.secret}`, host: 'localhost' }
      const { tools } = (await (await http.request(`/api/tools${query}`, { headers }, env)).json()) as Any
      return tools.map(({ name, impact }: Any) => `${name}: ${impact}`)
    }
    const all = ['berth_list: read', 'berth_update: write', 'berth_do: destructive']
    for (const query of ['?dialect=dock', '?dialect=dock_master', '?dialect=dock_guest&lane=admin'])
      expect(await listed(query)).toEqual(all)
    expect(await listed('?dialect=dock_guest')).toEqual(['berth_list: read', 'berth_do: destructive'])
  })

  test('[DI4] over the socket too, and MCP has the annotations', async () => {
    const app = await open()
    const { kernel, feed } = app.app
    const path = `/tmp/signalbox-dock-${process.pid}.sock`
    const opened: McpConnection[] = []
    const newServer = createServerFactory({ kernel, feed, version: '0' })
    const home = '/home/dock'
    const socket = await listenOnSocket({
      ...{ path, home, version: '0', kernel, ensureFolder: () => {}, onError: () => {} },
      newServer: (connection, era) => {
        opened.push(connection)
        return newServer(connection, era)
      },
    })
    onTestFinished(() => socket.close())
    const hello = { signalbox: 1, home, token: app.owner.secret, lane: 'default' }
    const tools = await toolsOver(path, { ...hello, dialect: 'dock_master' })
    expect(opened).toMatchObject([{ lane: 'admin', dialect: 'dock_master' }])
    const hints = tools.map(({ name, annotations }: Any) => [name, annotations.readOnlyHint, annotations.destructiveHint])
    expect(hints).toEqual([
      ['berth_list', true, false],
      ['berth_update', false, false],
      ['berth_do', false, true],
    ])
    const guest = await toolsOver(path, { ...hello, dialect: 'dock' })
    expect(guest.map(({ name }: Any) => name)).toEqual(['berth_list', 'berth_do'])
  })
})

async function toolsOver(path: string, hello: object): Promise<Any[]> {
  const socket = connect(path)
  onTestFinished(() => void socket.destroy())
  const rest = { capabilities: {}, clientInfo: { name: 'dock', version: '1' } }
  const asked = [
    hello,
    { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', ...rest } },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 2, method: 'tools/list' },
  ]
  socket.write(asked.map((line) => `${JSON.stringify(line)}\n`).join(''))
  for await (const line of createInterface({ input: socket })) {
    const { id, result } = JSON.parse(line)
    if (id === 2) return result.tools
  }
  throw new Error('the socket ended')
}
