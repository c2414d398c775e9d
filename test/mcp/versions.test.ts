import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { deferred } from '../../src/testing/signals.ts'
import { type Connected, call, connect, EVERY_WAY, LEGACY, MODERN, refused } from './clients.ts'
import { waiters } from './waiting.ts'

let daemon: TestDaemon
let task: { id: string; handle: string; title: string }
beforeAll(async () => {
  daemon = await TestDaemon.start()
  await daemon.call('project_create', { name: 'Web' })
  task = (await daemon.call('task_create', { title: 'Speak every version' })).task
})
afterAll(() => daemon.remove())

describe.each(EVERY_WAY)('$transport, $version', ({ transport, version }) => {
  let connected: Connected
  beforeAll(async () => {
    connected = await connect(daemon, transport, version)
  })
  afterAll(() => connected.close())

  test('that version is spoken, by a server that says who it is and what it announces', () => {
    const { client } = connected
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    expect(client.getServerVersion()).toMatchObject({ name: 'signalbox' })
    expect(client.getServerCapabilities()).toEqual({ tools: { listChanged: true }, resources: { subscribe: true }, prompts: {} })
    expect(client.getInstructions()).toContain('agent_me')
  })

  test('tools are listed in a fixed order, with annotations and schemas that a model provider takes', async () => {
    const { tools } = await connected.client.listTools()
    const again = await connected.client.listTools()
    expect(again.tools.map(({ name }) => name)).toEqual(tools.map(({ name }) => name))
    for (const tool of tools) {
      expect(tool.name).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/)
      expect(tool.inputSchema).toMatchObject({ type: 'object' })
      expect(tool.inputSchema).not.toHaveProperty('$schema')
      expect(tool.outputSchema).not.toHaveProperty('$schema')
      expect(tool.annotations).toMatchObject({ title: tool.title, openWorldHint: false })
    }
    const hints = (name: string) => {
      const found = tools.find((tool) => tool.name === name)?.annotations
      return [found?.readOnlyHint, found?.destructiveHint, found?.idempotentHint]
    }
    expect(hints('task_list')).toEqual([true, false, true])
    expect(hints('task_create')).toEqual([false, false, false])
    expect(hints('token_revoke')).toEqual([false, true, false])
    expect(tools.filter((tool) => tool._meta?.['anthropic/alwaysLoad']).length).toBeGreaterThan(2)
    expect(tools.filter((tool) => tool._meta?.['anthropic/alwaysLoad']).length).toBeLessThanOrEqual(10)
  })

  test('a call answers with structure and the same as text', async () => {
    expect(await call(connected, 'agent_me')).toMatchObject({ kind: 'person', handle: 'owner' })
    const { task_id } = await call(connected, 'task_create', { title: `over ${transport} at ${version}` })
    expect((await daemon.call('task_get', { task_id })).task.title).toBe(`over ${transport} at ${version}`)
  })

  test('a refusal is a result that the model can read', async () => {
    expect(await refused(connected, 'task_get', { task_id: 'T-999' })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect(await refused(connected, 'task_create', { title: 7 })).toMatchObject({ code: 'INVALID_INPUT' })
    const unknown = await refused(connected, 'task_creat', {})
    expect(unknown).toMatchObject({ code: 'TOOL_NOT_FOUND', suggestions: expect.arrayContaining(['task_create']) })
  })

  test('a refusal is as the schema of its tool says: clients that check it show the model the reason, and no fault of ours', async () => {
    const { tools } = await connected.client.listTools()
    const error = await refused(connected, 'task_get', { task_id: 'T-999' })
    const found = await call(connected, 'task_get', { task_id: task.id })
    const schema = tools.find(({ name }) => name === 'task_get')?.outputSchema ?? {}
    const fits = new Ajv2020({ strict: false, validateFormats: false }).compile(schema)
    expect(fits({ error })).toBe(true)
    expect(fits(found)).toBe(true)
    expect(fits({ task: {} })).toBe(false)
  })

  test('resources and templates are listed and read, by id and by handle', async () => {
    const { client } = connected
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(
      expect.arrayContaining(['signalbox://me', 'signalbox://tasks', 'signalbox://health']),
    )
    const { resourceTemplates } = await client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain('signalbox://task/{id}')
    for (const name of [task.id, task.handle]) {
      const uri = `signalbox://task/${name}`
      const [content] = (await client.readResource({ uri })).contents
      expect(content).toMatchObject({ uri, mimeType: 'application/json' })
      expect(JSON.parse((content as { text: string }).text).task).toMatchObject({ id: task.id, title: task.title })
    }
    await expect(client.readResource({ uri: 'signalbox://nothing/1' })).rejects.toMatchObject({ code: -32_602 })
    await expect(client.readResource({ uri: 'signalbox://task/T-999' })).rejects.toMatchObject({
      data: { code: 'RESOURCE_NOT_FOUND', uri: 'signalbox://task/T-999' },
    })
  })

  test('the roles have prompts', async () => {
    const { client } = connected
    const { prompts } = await client.listPrompts()
    expect(prompts.map(({ name }) => name)).toEqual(expect.arrayContaining(['worker', 'reviewer', 'planner']))
    const { messages } = await client.getPrompt({ name: 'worker' })
    expect(messages).toEqual([{ role: 'user', content: { type: 'text', text: expect.stringMatching(/\w{20}|task/) } }])
    await expect(client.getPrompt({ name: 'nobody' })).rejects.toMatchObject({ code: -32_602 })
  })

  test('a wait that its client gives up is let go at once', async () => {
    const cancel = new AbortController()
    const waiting = call(connected, 'task_wait', { task_id: task.id }, { signal: cancel.signal })
    waiting.catch(() => {})
    await waiters(daemon, 1)
    cancel.abort()
    await expect(waiting).rejects.toThrow()
    await waiters(daemon, 0)
    expect(await call(connected, 'agent_me')).toMatchObject({ kind: 'person' })
  })
})

test('a long wait reports progress on every transport and version, and returns when the task moves', async () => {
  const { id: task_id } = (await daemon.call('task_create', { title: 'Watched by many' })).task
  const clients = await Promise.all(EVERY_WAY.map(({ transport, version }) => connect(daemon, transport, version)))
  const reports = clients.map(() => deferred<{ progress: number }>())
  const waits = clients.map((connected, i) =>
    call(connected, 'task_wait', { task_id }, { onprogress: reports[i]?.resolve, timeout: 60_000 }),
  )
  await waiters(daemon, clients.length)
  expect(await Promise.all(reports.map(({ promise }) => promise))).toEqual(clients.map(() => ({ progress: 1, message: 'waiting' })))
  await daemon.call('task_move', { task_id, status: 'IN_PROGRESS' })
  for (const answer of await Promise.all(waits)) expect(answer).toMatchObject({ code: 'TASK_CHANGED', current_status: 'IN_PROGRESS' })
  await Promise.all(clients.map((connected) => connected.close()))
}, 120_000)

test('a client that falls silent in a wait without saying so, by hanging up, is let go too', async () => {
  for (const version of ['2025-11-25', MODERN] as const) {
    const hangUp = new AbortController()
    const { headers, body } = await rawCall(version, task.id)
    const request = fetch(`${daemon.url}/mcp`, { method: 'POST', headers, body, signal: hangUp.signal }).then((response) => response.text())
    request.catch(() => {})
    await waiters(daemon, 1)
    hangUp.abort()
    await waiters(daemon, 0)
  }
})

test('what may be kept for later is private and of no age: permission can change with the next call', async () => {
  const connected = await connect(daemon, 'http', MODERN)
  const { client } = connected
  const results = [
    await client.listTools(),
    await client.listPrompts(),
    await client.listResources(),
    await client.listResourceTemplates(),
    await client.readResource({ uri: 'signalbox://me' }),
  ]
  for (const result of results) expect(result).toMatchObject({ ttlMs: 0, cacheScope: 'private' })
  await connected.close()
})

describe('what the address asks for', () => {
  const ways = [
    { transport: 'http', version: LEGACY[3] },
    { transport: 'http', version: MODERN },
    { transport: 'stdio', version: LEGACY[3] },
    { transport: 'stdio', version: MODERN },
  ] as const

  test.each(ways)('toolsets narrow the list, over $transport at $version', async ({ transport, version }) => {
    const options =
      transport === 'http' ? { query: '?toolsets=project,system' } : { args: ['--admin', '--no-start', '--toolsets', 'project,system'] }
    const connected = await connect(daemon, transport, version, options)
    const names = (await connected.client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['project_create', 'system_health']))
    expect(names.filter((name) => name.startsWith('task_'))).toEqual([])
    await connected.close()
  })

  test.each(ways)('the default lane tops out at pair_worker, over $transport at $version', async ({ transport, version }) => {
    const options = transport === 'http' ? { query: '?lane=default' } : { args: ['--no-start'] }
    const connected = await connect(daemon, transport, version, options)
    const names = (await connected.client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['task_note', 'task_wait', 'agent_me']))
    for (const name of ['task_create', 'agent_invite', 'setting_update']) expect(names).not.toContain(name)
    const error = await refused(connected, 'task_create', { title: 'Not from here' })
    expect(error).toMatchObject({ code: 'PERMISSION_DENIED', hint: expect.stringContaining('admin lane') })
    await connected.close()
  })

  test('an unknown dialect is refused before anything is served', async () => {
    await expect(connect(daemon, 'http', MODERN, { query: '?dialect=klingon' })).rejects.toThrow()
    await expect(connect(daemon, 'stdio', '2025-11-25', { args: ['--no-start', '--dialect', 'klingon'] })).rejects.toThrow(/klingon/)
  })
})

/** One `task_wait` as a bare POST, so that the connection can be cut without a word. */
async function rawCall(version: string, task_id: string): Promise<{ headers: Record<string, string>; body: string }> {
  const headers: Record<string, string> = {
    authorization: `Bearer ${daemon.token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    connection: 'close',
    'mcp-protocol-version': version,
  }
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
  }
  const post = (message: object) =>
    fetch(`${daemon.url}/mcp`, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) })
  if (version === MODERN) Object.assign(headers, { 'mcp-method': 'tools/call', 'mcp-name': 'task_wait' })
  else {
    const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
    const opened = await post({ id: 1, method: 'initialize', params })
    await opened.text()
    headers['mcp-session-id'] = opened.headers.get('mcp-session-id') as string
    await post({ method: 'notifications/initialized' })
  }
  const params = { name: 'task_wait', arguments: { task_id }, ...(version === MODERN ? { _meta: envelope } : {}) }
  return { headers, body: JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params }) }
}
