import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
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
    const get = await fetch(`${daemon.url}/mcp/execute`)
    expect([get.status, await get.json()]).toMatchObject([404, refusal('RESOURCE_NOT_FOUND')])
  })

  test('[FF1] a token that has ended, and one that calls too often', async () => {
    const gone = await invited('worker', 'gone')
    await daemon.call('token_revoke', { agent_id: gone.id })
    expect(await execute(gone.token, status(gone.id))).toMatchObject({ status: 401, body: refusal('AUTH_STALE_TOKEN') })
    const hasty = await invited('worker', 'hasty')
    await daemon.call('setting_update', { key: 'limits.agent_burst', value: 1 })
    await daemon.call('setting_update', { key: 'limits.agent_calls_per_second', value: 1 })
    const answers = await Promise.all([1, 2, 3, 4].map(() => execute(hasty.token, status())))
    await daemon.call('setting_update', { key: 'limits.agent_burst', value: null })
    await daemon.call('setting_update', { key: 'limits.agent_calls_per_second', value: null })
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
    const { calls } = await daemon.call('audit_tail', { principal: worker.id, outcome: 'refused', tool: 'mcp__agent__get_status' })
    expect(calls.length).toBe(4)
    expect(calls).toMatchObject(calls.map(() => ({ code: 'PERMISSION_DENIED', principal: worker.id })))
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
      const headers = { authorization: `Bearer ${daemon.token}`, 'content-type': 'application/json' }
      return (await fetch(`${daemon.url}/mcp/execute${query}`, { method: 'POST', body, headers })).status
    }
    expect([await send('?lane=default'), await send('')]).toEqual([403, 200])
  })
})

describe('both doors', () => {
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

  test('[FF3] a real curl logs a decision', async () => {
    const body = { agentId: 'worker-123', toolName: 'mcp__system__log_decision', input: { title: 'Redis', body: 'It is there already.' } }
    const headers = ['-H', 'Content-Type: application/json', '-H', `Authorization: Bearer ${worker.token}`]
    const { stdout } = await run('curl', ['-sS', '-X', 'POST', `${daemon.url}/mcp/execute`, ...headers, '-d', JSON.stringify(body)])
    expect(JSON.parse(stdout)).toEqual({ success: true, data: { logId: expect.any(String), timestamp: TIME }, timestamp: TIME })
  })
})
