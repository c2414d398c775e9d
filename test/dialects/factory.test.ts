import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { databaseOf, until } from '../e2e/support.ts'
import { call, connect, MODERN } from '../mcp/clients.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

const run = promisify(execFile)
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[0-9:.]+Z$/)

interface Agent {
  id: string
  handle: string
  token: string
}

let daemon: TestDaemon
let task: string
let worker: Agent
let supervisor: Agent

beforeAll(async () => {
  daemon = await TestDaemon.start()
  const { project_id } = await daemon.call('project_create', { name: 'Web' })
  task = (await daemon.call('task_create', { project_id, title: 'Add user authentication' })).task_id
  worker = await invited('worker', 'worker-123')
  supervisor = await invited('supervisor', 'supervisor-456')
  await daemon.call('task_assign', { task_id: task, agent_id: worker.id })
})
afterAll(() => daemon.remove())

async function invited(role: string, name: string): Promise<Agent> {
  const { agent_id, handle, token } = await daemon.call('agent_invite', { role, name })
  return { id: agent_id, handle, token }
}

/** As a client of the document would send it, with the token that the document does not know. */
async function execute(token: string, body: unknown, init: RequestInit = {}): Promise<{ status: number; body: Any; headers: Headers }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close', ...init.headers }
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(`${daemon.url}/mcp/execute`, { method: 'POST', body: text, ...init, headers })
  return { status: response.status, body: await response.json(), headers: response.headers }
}

const refusal = (code: string, message: unknown = expect.any(String)) => ({
  success: false,
  error: { code, message, details: expect.any(Object) },
  timestamp: TIME,
})

describe('POST /mcp/execute', () => {
  const status = (agentId?: string) => ({ agentId, toolName: 'mcp__agent__get_status', input: {} })

  test('[FF1] what was done is in the envelope', async () => {
    const answer = await execute(worker.token, status(worker.id))
    expect(answer).toMatchObject({ status: 200, body: { success: true, data: { id: worker.id, type: 'WORKER' }, timestamp: TIME } })
    expect(Object.keys(answer.body)).toEqual(['success', 'data', 'timestamp'])
  })

  test('[FF1] what was refused is in the envelope, with the status of its code', async () => {
    const asked = async (toolName: string, input: object, token = worker.token) => execute(token, { toolName, input })
    expect(await asked('mcp__epic__read_file', {})).toMatchObject({
      status: 403,
      body: {
        success: false,
        error: { code: 'PERMISSION_DENIED', message: "Tool 'mcp__epic__read_file' is not allowed for agent type 'WORKER'", details: {} },
        timestamp: TIME,
      },
    })
    expect(await asked('mcp__system__log_decision', {})).toMatchObject({ status: 400, body: refusal('INVALID_INPUT') })
    expect(await asked('mcp__system__burn', {})).toMatchObject({ status: 404, body: refusal('TOOL_NOT_FOUND') })
    expect(await asked('mcp__epic__read_file', { taskId: 'T-404', filePath: 'a' }, supervisor.token)).toMatchObject({
      status: 404,
      body: refusal('RESOURCE_NOT_FOUND'),
    })
    expect(await asked('mcp__agent__get_task', {}, supervisor.token)).toMatchObject({
      status: 409,
      body: refusal('INVALID_AGENT_STATE', 'Agent is not a WORKER'),
    })
  })

  test('[FF1] what never became a call has it too', async () => {
    const bad = [
      ['{"toolName":', 400],
      ['[]', 400],
      ['{"input":{}}', 400],
      [JSON.stringify({ toolName: 'mcp__agent__get_status', input: [] }), 400],
      [JSON.stringify({ toolName: 'mcp__agent__get_status', input: {}, role: 'SUPERVISOR' }), 400],
      [`{"toolName":"x","input":{"a":"${'x'.repeat(1_100_000)}"}}`, 400],
    ] as const
    for (const [body, status] of bad) expect(await execute(worker.token, body)).toMatchObject({ status, body: refusal('INVALID_INPUT') })
    const nobody = await execute('sbx_agent_nobody', status())
    expect(nobody).toMatchObject({ status: 401, body: refusal('UNAUTHENTICATED') })
    expect(nobody.headers.get('www-authenticate')).toContain('Bearer')
    expect(await execute('', status())).toMatchObject({ status: 401, body: refusal('UNAUTHENTICATED') })
    const page = { headers: { origin: 'http://evil.example' } }
    expect(await execute(worker.token, status(), page)).toMatchObject({ status: 403, body: refusal('PERMISSION_DENIED') })
    const get = await fetch(`${daemon.url}/mcp/execute`, { headers: { connection: 'close' } })
    expect([get.status, await get.json()]).toMatchObject([404, refusal('RESOURCE_NOT_FOUND')])
  })

  test('[FF1] a token that has ended, and one that calls too often', async () => {
    const gone = await invited('worker', 'gone')
    await daemon.call('token_revoke', { agent_id: gone.id })
    expect(await execute(gone.token, status(gone.id))).toMatchObject({ status: 401, body: refusal('AUTH_STALE_TOKEN') })
    const hasty = await invited('worker', 'hasty')
    await daemon.call('setting_update', { key: 'limits.agent_burst', value: 1 })
    await daemon.call('setting_update', { key: 'limits.agent_calls_per_second', value: 1 })
    const many = Array.from({ length: 20 }, () => execute(hasty.token, status()))
    const answers = await Promise.all(many).finally(async () => {
      await daemon.call('setting_update', { key: 'limits.agent_burst', value: null })
      await daemon.call('setting_update', { key: 'limits.agent_calls_per_second', value: null })
    })
    const limited = answers.find((answer) => answer.status !== 200)
    expect(limited).toMatchObject({ status: 503, body: refusal('TRANSIENT_ERROR') })
    expect(Number(limited?.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('[FF2] agentId is the caller, by id or handle, or absent', async () => {
    for (const agentId of [worker.id, worker.handle, undefined])
      expect(await execute(worker.token, status(agentId))).toMatchObject({ status: 200, body: { data: { id: worker.id } } })
  })

  test('[FF2] nobody is another agent by saying so, and the attempt is on record', async () => {
    for (const agentId of [supervisor.id, supervisor.handle, 'nobody', 'owner'])
      expect(await execute(worker.token, status(agentId))).toMatchObject({ status: 403, body: refusal('PERMISSION_DENIED') })
    const refused = { principal: worker.id, outcome: 'refused', tool: 'mcp__agent__get_status' }
    const calls = async () => (await daemon.call('audit_tail', refused)).calls
    const denied = { code: 'PERMISSION_DENIED', principal: worker.id }
    await expect.poll(calls).toMatchObject([denied, denied, denied, denied])
  })

  test('[FF2] a person acts for an agent, within its role, and both are recorded', async () => {
    expect(await execute(daemon.token, status(supervisor.handle))).toMatchObject({
      status: 200,
      body: { data: { id: supervisor.id, type: 'SUPERVISOR' } },
    })
    expect(await execute(daemon.token, { ...status(worker.id), toolName: 'mcp__epic__read_file' })).toMatchObject({ status: 403 })
    expect(await execute(daemon.token, status('nobody'))).toMatchObject({ status: 404, body: refusal('AGENT_NOT_FOUND') })
    const decision = { toolName: 'mcp__system__log_decision', input: { title: 'For the worker', body: 'x' } }
    await execute(daemon.token, { agentId: worker.id, ...decision })
    const { calls } = await daemon.call('audit_tail', { tool: 'decision_log' })
    expect(calls[0]).toMatchObject({ principal: worker.id, acting_person: expect.stringMatching(/^person_/) })
  })

  test('[FF2] on the default lane a person has no more than there', async () => {
    const { project_id } = await daemon.call('project_create', { name: 'Lane' })
    const body = JSON.stringify({ toolName: 'mcp__task__create', input: { title: 'x', projectId: project_id } })
    const send = async (query: string) => {
      const headers = { authorization: `Bearer ${daemon.token}`, 'content-type': 'application/json', connection: 'close' }
      return (await fetch(`${daemon.url}/mcp/execute${query}`, { method: 'POST', body, headers })).status
    }
    expect([await send('?lane=default'), await send('')]).toEqual([403, 200])
  })
})

describe('both doors', () => {
  const MAIL = expect.stringMatching(/^mail_/)
  let letters = 0
  let first = ''
  const mail = (isRead: boolean) => ({
    id: MAIL,
    fromAgentId: supervisor.id,
    fromAgentType: 'SUPERVISOR',
    subject: 'Task Assignment',
    body: expect.stringContaining('Begin with the tests'),
    isRead,
    createdAt: TIME,
    readAt: isRead ? TIME : null,
  })

  const EXAMPLES: { as: () => Agent; toolName: string; input: () => object; data: () => object }[] = [
    {
      as: () => worker,
      toolName: 'mcp__agent__get_status',
      input: () => ({}),
      data: () => ({
        id: worker.id,
        type: 'WORKER',
        state: 'BUSY',
        currentEpicId: null,
        currentTaskId: task,
        tmuxSessionName: null,
        lastActiveAt: TIME,
        createdAt: TIME,
        updatedAt: TIME,
      }),
    },
    {
      as: () => worker,
      toolName: 'mcp__agent__get_task',
      input: () => ({}),
      data: () => ({
        id: task,
        title: 'Add user authentication',
        description: '',
        state: 'PENDING',
        epicId: null,
        worktreePath: null,
        branchName: null,
        prUrl: null,
        createdAt: TIME,
        updatedAt: TIME,
      }),
    },
    {
      as: () => supervisor,
      toolName: 'mcp__mail__send',
      input: () => ({ toAgentId: worker.id, toHuman: false, subject: 'Task Assignment', body: `Begin with the tests ${++letters}` }),
      data: () => ({ mailId: MAIL, timestamp: TIME }),
    },
    {
      as: () => worker,
      toolName: 'mcp__mail__list_inbox',
      input: () => ({ includeRead: false }),
      data: () => ({ count: letters, unreadCount: letters, mails: Array.from({ length: letters }, () => mail(false)) }),
    },
    {
      as: () => worker,
      toolName: 'mcp__mail__read',
      input: () => ({ mailId: first }),
      data: () => mail(true),
    },
    {
      as: () => worker,
      toolName: 'mcp__mail__reply',
      input: () => ({ originalMailId: first, body: `I will ${++letters}` }),
      data: () => ({ mailId: MAIL, timestamp: TIME }),
    },
    {
      as: () => worker,
      toolName: 'mcp__system__log_decision',
      input: () => ({ title: 'Tokens for signing in', body: 'A cookie would be sent to every port of this machine.' }),
      data: () => ({ logId: expect.stringMatching(/^log_/), timestamp: TIME }),
    },
  ]

  test.for(EXAMPLES.map((example) => [example.toolName, example] as const))('[FF3] %s', async ([toolName, { as, input, data }]) => {
    const { id, token } = as()
    expect(await execute(token, { agentId: id, toolName, input: input() })).toMatchObject({
      status: 200,
      body: { success: true, data: data() },
    })
    const answer = (await execute(token, { toolName, input: input() })).body.data
    expect(answer).toEqual(data())
    first = answer.mails?.[0]?.id ?? first
    const client = await connect(daemon, 'http', MODERN, { token, query: '?dialect=factory' })
    try {
      const listed = await client.client.listTools()
      expect(listed.tools.map(({ name }) => name)).toContain(toolName)
      expect(await call(client, toolName, input() as Record<string, unknown>)).toEqual(data())
    } finally {
      await client.close()
    }
  })

  test('[FF4] over MCP a role sees its own tools, and a refusal has the words of the document', async () => {
    const client = await connect(daemon, 'http', MODERN, { token: worker.token, query: '?dialect=factory' })
    const { tools } = await client.client.listTools()
    expect(tools.map(({ name }) => name).filter((name) => name.startsWith('mcp__epic__'))).toEqual([])
    const result = await client.client.callTool({ name: 'mcp__epic__read_file', arguments: {} })
    expect(result).toMatchObject({
      isError: true,
      structuredContent: {
        error: { code: 'PERMISSION_DENIED', message: "Tool 'mcp__epic__read_file' is not allowed for agent type 'WORKER'", details: {} },
      },
    })
    await client.close()
  })
})

describe('the stream of events', () => {
  test('[FF8] has the documented data with ?dialect=factory, of what was and of what comes', async () => {
    const { cursor } = await daemon.call('event_list')
    const { mailId: before } = (await send('Before')).body.data
    const headers = { authorization: `Bearer ${worker.token}`, connection: 'close', 'last-event-id': cursor }
    const response = await fetch(`${daemon.url}/api/events?dialect=factory&types=mail.sent`, { headers })
    const next = eventsOf(response)
    const told = (mailId: string, subject: string) => {
      return { type: 'mail.sent', data: { mailId, toAgentId: worker.id, isForHuman: false, subject } }
    }
    expect(await next()).toMatchObject(told(before, 'Before'))
    const { mailId } = (await send('Then')).body.data
    const event = await next()
    expect(event).toMatchObject(told(mailId, 'Then'))
    expect(Object.keys(event.data)).toEqual(['mailId', 'toAgentId', 'isForHuman', 'subject'])
    await response.body?.cancel().catch(() => {})
    const unknown = await fetch(`${daemon.url}/api/events?dialect=klingon`, { headers })
    expect(unknown.status).toBe(400)
  })

  const send = (subject: string) =>
    execute(supervisor.token, { toolName: 'mcp__mail__send', input: { toAgentId: worker.id, subject, body: subject } })

  function eventsOf(response: Response): () => Promise<Any> {
    const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    return async () => {
      for (;;) {
        const [, line] = /^data: (.*)\n\n/m.exec(text) ?? []
        if (line !== undefined) {
          text = text.slice(text.indexOf(line) + line.length)
          return JSON.parse(line)
        }
        const { done, value } = await reader.read()
        if (done) throw new Error('the stream has ended')
        text += value
      }
    }
  }
})

describe('over stdio', () => {
  test('[FF3] signalbox mcp --dialect factory', async () => {
    const options = { token: worker.token, args: ['--no-start', '--dialect', 'factory'] }
    const client = await connect(daemon, 'stdio', MODERN, options)
    const { tools } = await client.client.listTools()
    expect(tools.map(({ name }) => name)).toContain('mcp__mail__list_inbox')
    expect(await call(client, 'mcp__agent__get_status')).toMatchObject({ id: worker.id, type: 'WORKER' })
    await client.close()
  })
})

describe('the three examples with curl', () => {
  /** As they stand in the document but for their words, with the token, and on the port that this daemon got. */
  const curl = async (agent: Agent, body: object): Promise<Any> => {
    const port = new URL(daemon.url).port
    const command = `curl -sS --connect-to localhost:3001:127.0.0.1:${port} -X POST http://localhost:3001/mcp/execute \\
  -H "Content-Type: application/json" -H "Authorization: Bearer ${agent.token}" \\
  -d '${JSON.stringify(body, null, 2)}'`
    return JSON.parse((await run('sh', ['-c', command])).stdout)
  }

  test('[FF3] a worker writes to its supervisor, who finds it in the inbox; a worker logs a decision', async () => {
    const input = { toAgentId: 'supervisor-456', subject: 'Blocked', body: 'The schema is not decided yet' }
    const sent = await curl(worker, { agentId: 'worker-123', toolName: 'mcp__mail__send', input })
    expect(sent).toEqual({ success: true, data: { mailId: expect.stringMatching(/^mail_/), timestamp: TIME }, timestamp: TIME })
    const inbox = await curl(supervisor, { agentId: 'supervisor-456', toolName: 'mcp__mail__list_inbox', input: {} })
    expect(inbox.data.mails[0]).toMatchObject({ id: sent.data.mailId, fromAgentId: worker.id, subject: 'Blocked', isRead: false })
    const decision = { title: 'Where it is kept', body: 'In the database: a restart would empty a cache in memory' }
    const logged = await curl(worker, { agentId: 'worker-123', toolName: 'mcp__system__log_decision', input: decision })
    expect(logged).toEqual({ success: true, data: { logId: expect.stringMatching(/^log_/), timestamp: TIME }, timestamp: TIME })
    const { decisions } = await daemon.call('decision_list', { principal: 'worker-123' })
    expect(decisions.slice(0, 5).map(({ decision: said }: Any) => said)).toEqual([
      'Tool result: mcp__system__log_decision',
      'Where it is kept',
      'Invoked tool: mcp__system__log_decision',
      'Tool result: mcp__mail__send',
      'Invoked tool: mcp__mail__send',
    ])
  })
})

describe('what goes wrong on our side', () => {
  const decision = { toolName: 'mcp__system__log_decision', input: { title: 'a', body: 'b' } }
  const letters = async () => (await daemon.call('mail_inbox')).letters.map(({ subject }: Any) => subject)

  test('[FF5] a defect is INTERNAL_ERROR with 500, in the decision log with its stack, and told to the human', async () => {
    const alone = await invited('worker', 'alone')
    const db = new DatabaseSync(databaseOf(daemon))
    db.exec('PRAGMA busy_timeout = 60000; ALTER TABLE decisions RENAME TO lost')
    const answer = await execute(alone.token, decision)
    db.exec('ALTER TABLE lost RENAME TO decisions')
    db.close()
    expect(answer).toMatchObject({ status: 500, body: refusal('INTERNAL_ERROR') })
    const [error] = (await daemon.call('decision_list', { principal: 'alone' })).decisions
    expect(error).toMatchObject({
      decision: 'Tool error: mcp__system__log_decision',
      reasoning: 'Automatic tool error log',
      context: { code: 'INTERNAL_ERROR', stack: expect.stringContaining('no such table') },
    })
    await until(async () => (await letters()).length > 0, 'a letter about it')
    expect(await letters()).toEqual(['alone: mcp__system__log_decision failed'])
  })

  test('[FF5] storage that does not answer is tried again, then TRANSIENT_ERROR with 503; what is critical has the prefix', async () => {
    const gentle = { subject: 'Are you there?', body: 'I wait.' }
    const caller = await invited('worker', 'patient')
    await daemon.call('setting_update', { key: 'limits.retry_delay_ms', value: 10 })
    const db = new DatabaseSync(databaseOf(daemon))
    db.exec('PRAGMA busy_timeout = 60000; BEGIN IMMEDIATE')
    const answer = await execute(caller.token, { toolName: 'mcp__mail__send', input: { toHuman: true, ...gentle } })
    db.exec('ROLLBACK')
    db.close()
    expect(answer).toMatchObject({ status: 503, body: refusal('TRANSIENT_ERROR', expect.stringContaining('nothing was written')) })
    await until(async () => (await letters()).length > 1, 'a letter about it')
    expect(await letters()).toEqual(['⚠️ CRITICAL patient: mcp__mail__send failed', 'alone: mcp__system__log_decision failed'])
  })

  test('[FF5] storage that comes back in time is not noticed, and the letter is there once', async () => {
    const caller = await invited('worker', 'lucky')
    await daemon.call('setting_update', { key: 'limits.retry_delay_ms', value: 1_000 })
    await daemon.call('setting_update', { key: 'limits.retries', value: 10 })
    const db = new DatabaseSync(databaseOf(daemon))
    db.exec('PRAGMA busy_timeout = 60000; BEGIN IMMEDIATE')
    const letter = { toAgentId: 'supervisor-456', subject: 'Once', body: 'only' }
    const answered = execute(caller.token, { toolName: 'mcp__mail__send', input: letter })
    // It has met with the lock when the daemon says so in its queue of writes.
    await until(async () => (await daemon.call('system_health')).database.queued_writes > 0, 'a write that waits')
    db.exec('ROLLBACK')
    db.close()
    expect(await answered).toMatchObject({ status: 200, body: { success: true } })
    const inbox = (await execute(supervisor.token, { toolName: 'mcp__mail__list_inbox', input: {} })).body.data
    expect(inbox.mails.filter(({ subject }: Any) => subject === 'Once').length).toBe(1)
  })
})
