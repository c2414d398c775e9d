import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { bearer, databaseOf, JSON_BODY, Line, Mcp, rowCounts, send, socketOf } from './support.ts'

let daemon: TestDaemon
let mcp: Mcp
let line: Line
const made = { project: '', one: '', two: '', three: '', agent: '', token: '' }

beforeAll(async () => {
  daemon = await TestDaemon.start()
  made.project = (await daemon.call('project_create', { name: 'Web' })).project_id
  made.one = (await daemon.call('task_create', { title: 'one' })).task_id
  made.two = (await daemon.call('task_create', { title: 'two', blocked_by: [made.one] })).task_id
  made.three = (await daemon.call('task_create', { title: 'three', blocked_by: [made.two], parent_id: made.two })).task_id
  const agent = await daemon.call('agent_invite', { role: 'worker' })
  made.agent = agent.agent_id
  made.token = agent.token_id
  mcp = await Mcp.begin(daemon)
  line = await Line.begin(daemon, socketOf(daemon))
})
afterAll(() => daemon.remove())

interface Said {
  code: string
  message: string
}

/** The arguments as text, so that a test can say what JSON.stringify would not. */
async function refusals(tool: string, args: string): Promise<Record<string, Said>> {
  const http = await send(daemon.url, {
    method: 'POST',
    path: `/api/tools/${tool}`,
    headers: { ...bearer(daemon.token), ...JSON_BODY },
    body: args,
  })
  const call = (id: number) =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":${JSON.stringify(tool)},"arguments":${args}}}`
  const session = await mcp.post(call(1))
  const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
  const headers = {
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': tool,
  }
  const modern = await send(daemon.url, {
    method: 'POST',
    path: '/mcp',
    headers: { ...bearer(daemon.token), ...JSON_BODY, ...headers },
    body: call(2).replace(/}}$/, `,${meta}}}`),
  })
  const id = ++ids
  line.write(call(id))
  const onSocket = await line.find((message) => message.id === id)
  return { http: http.json?.error, mcp: said(session.json), modern: said(modern.json), stdio: said(onSocket) }
}
let ids = 1_000

// biome-ignore lint/suspicious/noExplicitAny: an answer of either kind
function said(answer: any): Said {
  if (answer?.result && !answer.result.isError) throw new Error(`it was accepted: ${JSON.stringify(answer.result).slice(0, 200)}`)
  return answer?.result?.structuredContent?.error ?? { code: String(answer?.error?.code), message: answer?.error?.message }
}

/** On every surface the same code, a message for a reader, and not one row more. */
async function refused(tool: string, args: object | string, code: string, says: RegExp): Promise<void> {
  const before = rowCounts(databaseOf(daemon))
  const answers = await refusals(tool, typeof args === 'string' ? args : JSON.stringify(args))
  for (const [surface, answer] of Object.entries(answers)) {
    expect([surface, answer?.code]).toEqual([surface, code])
    expect(answer?.message).toMatch(says)
    expect(answer?.message).not.toMatch(/\n\s+at |\[object/)
  }
  expect(rowCounts(databaseOf(daemon))).toEqual(before)
}

describe('bad input on every surface', () => {
  test('[E1] an unknown tool is TOOL_NOT_FOUND and names the nearest', async () => {
    await refused('task_creat', { title: 'x' }, 'TOOL_NOT_FOUND', /no tool "task_creat"/)
    const { error } = await daemon.post('task_creat')
    expect(error.suggestions).toContain('task_create')
    for (const tool of ['TASK_CREATE', 'task.create', 'constructor', '__proto__', 'toString'])
      await refused(tool, {}, 'TOOL_NOT_FOUND', /no tool/)
  })

  test('[E1] wrong types are INVALID_INPUT and name the argument', async () => {
    const wrong: [string, object, RegExp][] = [
      ['task_create', { title: 7 }, /title/],
      ['task_create', { title: null }, /title/],
      ['task_create', { title: ['x'] }, /title/],
      ['task_create', {}, /title/],
      ['task_create', { title: '' }, /title/],
      ['task_create', { title: 'x'.repeat(201) }, /title/],
      ['task_create', { title: 'x', priority: 'urgent' }, /priority/],
      ['task_create', { title: 'x', blocked_by: 'T-1' }, /blocked_by/],
      ['task_create', { title: 'x', blocked_by: [7] }, /blocked_by/],
      ['task_list', { limit: '5' }, /limit/],
      ['task_list', { limit: 1.5 }, /limit/],
      ['task_list', { limit: 0 }, /limit/],
      ['task_list', { limit: 201 }, /limit/],
      ['task_list', { status: ['LATER'] }, /status/],
      ['task_update', { task_id: 'T-1', expected_version: 1e300 }, /expected_version/],
      ['task_wait', { task_id: 'T-1', from_updated_at: 'yesterday' }, /from_updated_at/],
      ['agent_invite', { role: 'king' }, /role/],
      ['setting_update', { key: 'limits.agent_burst', value: 'much' }, /limits.agent_burst/],
      ['setting_update', { key: 'limits.nothing', value: 1 }, /no setting/],
      ['task_note', { task_id: 'T-1', body: 'x', idempotency_key: '' }, /idempotency_key/],
      ['task_note', { task_id: 'T-1', body: 'x', idempotency_key: 7 }, /idempotency_key/],
    ]
    for (const [tool, args, says] of wrong) await refused(tool, args, 'INVALID_INPUT', says)
  })

  test('[E1] unknown keys are INVALID_INPUT, those of a prototype too', async () => {
    await refused('task_create', { title: 'x', colour: 'red' }, 'INVALID_INPUT', /colour/)
    await refused('task_create', { title: 'x', Title: 'y' }, 'INVALID_INPUT', /Title/)
    await refused('agent_me', { verbose: true }, 'INVALID_INPUT', /verbose/)
    await refused('plan_propose', { tasks: [{ title: 'x', owner: 'me' }] }, 'INVALID_INPUT', /tasks|owner/)
    await refused('task_create', '{"title":"x","constructor":{"prototype":{}}}', 'INVALID_INPUT', /constructor/)
    const poisoned = '{"title":"x","__proto__":{"priority":"high"}}'
    const { headers, path } = { headers: { ...bearer(daemon.token), ...JSON_BODY }, path: '/api/tools/task_create' }
    expect((await send(daemon.url, { method: 'POST', path, headers, body: poisoned })).json.error?.code).toBe('INVALID_INPUT')
    // The SDK takes that key out before we see it: there it has no effect.
    const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"task_create","arguments":${poisoned}}}`
    expect((await mcp.post(call)).json.result.structuredContent.task?.priority ?? 'refused').toMatch(/medium|refused/)
  })

  test('[E1] NUL and lone surrogates are INVALID_INPUT wherever they stand', async () => {
    for (const [text, says] of [
      ['a\\u0000b', /NUL/],
      ['\\ud800', /surrogate/],
      ['x\\udc00x', /surrogate/],
      ['\\ude00\\ud83d', /surrogate/],
    ] as const) {
      await refused('task_create', `{"title":"${text}"}`, 'INVALID_INPUT', says)
      await refused('task_create', `{"title":"x","acceptance_criteria":["fine","${text}"]}`, 'INVALID_INPUT', says)
      await refused('task_create', `{"title":"x","${text}":1}`, 'INVALID_INPUT', says)
      await refused('plan_propose', `{"tasks":[{"title":"x"},{"title":"${text}"}]}`, 'INVALID_INPUT', says)
    }
    const whole = await daemon.call('task_create', { title: 'a 😀 b' })
    expect((await daemon.call('task_get', { task_id: whole.task_id })).task.title).toBe('a 😀 b')
  })

  test('[E1] an id of another kind is INVALID_INPUT, one of nothing is not found', async () => {
    const { project, one, agent, token } = made
    for (const [tool, args, says] of [
      ['task_get', { task_id: project }, /task_id/],
      ['task_get', { task_id: agent }, /task_id/],
      ['task_note', { task_id: token, body: 'x' }, /task_id/],
      ['task_assign', { task_id: one, agent_id: one }, /agent_id/],
      ['task_create', { title: 'x', project_id: one }, /project_id/],
      ['task_create', { title: 'x', blocked_by: [one, agent] }, /blocked_by/],
      ['token_revoke', { token_id: agent }, /token_id/],
      ['task_get', { task_id: one.toUpperCase() }, /task_id/],
      ['task_get', { task_id: `${one}x` }, /task_id/],
      ['task_get', { task_id: "T-1' OR 1=1" }, /task_id/],
      ['task_get', { task_id: 'T-01' }, /task_id/],
    ] as const)
      await refused(tool, args, 'INVALID_INPUT', says)
    await refused('task_get', { task_id: one.replace(/.$/, (last) => (last === '0' ? '1' : '0')) }, 'RESOURCE_NOT_FOUND', /no task/)
    await refused('task_note', { task_id: 'T-4000000000', body: 'x' }, 'RESOURCE_NOT_FOUND', /no task/)
    await refused('task_assign', { task_id: one, agent_id: 'nobody' }, 'AGENT_NOT_FOUND', /no agent/)
  })

  test('[E1] a cursor from the future or from nowhere is INVALID_CURSOR', async () => {
    for (const cursor of ['1.zzzzzz', '7.1', 'nonsense', '1', '1.1.1', '-1.1', '1.-1', '1.99999999999'])
      await refused('event_wait', { cursor }, 'INVALID_CURSOR', /cursor/i)
    await refused('task_wait', { task_id: 'T-1', cursor: '1.zzzzzz' }, 'INVALID_CURSOR', /cursor/i)
    await refused('event_wait', { cursor: 'x'.repeat(65) }, 'INVALID_INPUT', /cursor/)
  })

  test('[E1] a timeout that is negative, nothing or not a number is INVALID_TIMEOUT', async () => {
    for (const timeout of ['-1', '-0.001', '0', '"soon"', 'null', '[]', '-1e308']) {
      await refused('event_wait', `{"timeout_seconds":${timeout}}`, 'INVALID_TIMEOUT', /above 0/)
      await refused('task_wait', `{"task_id":"T-1","timeout_seconds":${timeout}}`, 'INVALID_TIMEOUT', /above 0/)
    }
  })

  test('[E1] a dependency that closes a circle is DEPENDENCY_CYCLE', async () => {
    const { one, two, three } = made
    await refused('task_update', { task_id: one, blocked_by: [two] }, 'DEPENDENCY_CYCLE', /T-1 .*T-2/)
    await refused('task_update', { task_id: one, blocked_by: [three] }, 'DEPENDENCY_CYCLE', /T-1 .*T-3/)
    await refused('task_update', { task_id: one, blocked_by: [one] }, 'DEPENDENCY_CYCLE', /T-1/)
    await refused('task_update', { task_id: two, parent_id: three }, 'DEPENDENCY_CYCLE', /ancestor/)
    await refused('task_update', { task_id: one, parent_id: one }, 'DEPENDENCY_CYCLE', /ancestor/)
    await refused(
      'plan_propose',
      {
        tasks: [
          { title: 'x', after: [1] },
          { title: 'y', after: [0] },
        ],
      },
      'INVALID_INPUT',
      /after/,
    )
  })

  test('[E1] what is refused half-way leaves nothing of its first half', async () => {
    const { handle } = await daemon.call('task_create', { title: 'gone' })
    await daemon.call('task_delete', { task_id: handle })
    await refused('task_create', { title: 'x', blocked_by: [made.one, handle] }, 'TASK_DELETED', /was deleted/)
    const { plan_id } = await daemon.call('plan_propose', { tasks: [{ title: 'x' }] })
    await daemon.call('plan_accept', { plan_id })
    await refused('plan_accept', { plan_id }, 'CONFLICT', /already/)
    const before = (await daemon.call('task_create', { title: 'next' })).handle
    await refused('task_create', { title: 'x', blocked_by: [handle] }, 'TASK_DELETED', /was deleted/)
    const after = (await daemon.call('task_create', { title: 'next' })).handle
    expect(Number(after.slice(2))).toBe(Number(before.slice(2)) + 1)
  })

  test('[E1] a body of 10 MB is PAYLOAD_TOO_LARGE through the pipe as well', async () => {
    const call = {
      jsonrpc: '2.0',
      id: 5,
      method: 'tools/call',
      params: { name: 'task_create', arguments: { title: 'x'.repeat(10_000_000) } },
    }
    const before = rowCounts(databaseOf(daemon))
    const { code, stdout } = await daemon.cli(['mcp', '--admin', '--no-start'], `${JSON.stringify(call)}\n`)
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      id: 5,
      result: { isError: true, structuredContent: { error: { code: 'PAYLOAD_TOO_LARGE' } } },
    })
    expect(rowCounts(databaseOf(daemon))).toEqual(before)
  })
})

describe('what is not even a call', () => {
  test('[E2] a body that is no JSON object is INVALID_INPUT', async () => {
    const before = rowCounts(databaseOf(daemon))
    for (const body of [
      '{',
      '{"title":"x"',
      'undefined',
      "{'title':'x'}",
      '{"title":"x"}}',
      '[]',
      '[{"title":"x"}]',
      '"x"',
      '7',
      'true',
      '\u0000',
      '{"title":"x"}garbage',
    ]) {
      const answer = await send(daemon.url, {
        method: 'POST',
        path: '/api/tools/task_create',
        headers: { ...bearer(daemon.token), ...JSON_BODY },
        body,
      })
      expect([body, answer.status, answer.json.error.code]).toEqual([body, 400, 'INVALID_INPUT'])
    }
    expect(rowCounts(databaseOf(daemon))).toEqual(before)
  })

  test('[E2] a message that is no JSON-RPC gets an error of the protocol, and the session lives on', async () => {
    for (const message of [
      '{}',
      '[]',
      '7',
      '{"jsonrpc":"1.0","id":1,"method":"ping"}',
      '{"jsonrpc":"2.0","id":1}',
      '{"jsonrpc":"2.0","id":{},"method":"ping"}',
    ]) {
      const answer = await mcp.post(message)
      expect([message, answer.status]).toEqual([message, 400])
      expect(answer.json.error.message).toBeTruthy()
    }
    const unknown = await mcp.rpc('no/such/method')
    expect(unknown.json.error.code).toBe(-32_601)
    const args = await mcp.rpc('tools/call', { name: 'task_create', arguments: [] as never })
    expect(args.json.error?.code ?? args.json.result.structuredContent.error.code).toBeTruthy()
    expect((await mcp.tool('agent_me')).isError).toBeUndefined()
    line.write('this is no JSON')
    line.write('{"jsonrpc":"2.0"}')
    expect((await line.rpc('tools/call', { name: 'agent_me', arguments: {} })).result.isError).toBeUndefined()
  })

  test('[E2] every refusal above is on record, and none of them as a defect', async () => {
    const { calls } = await daemon.call('audit_tail', { outcome: 'failed' })
    expect(calls).toEqual([])
    expect(daemon.log).not.toContain('"level":50')
    const refusals = await daemon.call('audit_tail', { outcome: 'refused', limit: 200 })
    expect(refusals.calls.length).toBe(200)
  })
})
