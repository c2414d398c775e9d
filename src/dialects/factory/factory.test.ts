import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import { createGit } from '../../adapters/git-cli/index.ts'
import { calledAs } from '../../kernel/audit.ts'
import { CODES } from '../../kernel/error.ts'
import { ROLE_NAMES } from '../../kernel/policy.ts'
import { type Caller, openTestApp, type TestApp, test } from '../../testing/app.ts'
import { auditRows } from '../../testing/probe.ts'
import { deferred, until } from '../../testing/signals.ts'
import { WorkGround } from '../../testing/work.ts'
import { factory } from './index.ts'

const FACTORY = { dialect: 'factory' }

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

const ALL = ['SUPERVISOR', 'ORCHESTRATOR', 'WORKER']
const SUPERVISOR = ['SUPERVISOR']
/** The "Permissions" line of every tool in the document. `get_task` says "WORKER only", and means the state of the caller. */
const LISTED: Record<string, string[]> = {
  mcp__mail__list_inbox: ALL,
  mcp__mail__read: ALL,
  mcp__mail__send: ALL,
  mcp__mail__reply: ALL,
  mcp__agent__get_status: ALL,
  mcp__agent__get_task: ALL,
  mcp__agent__get_epic: ALL,
  mcp__epic__create_task: SUPERVISOR,
  mcp__epic__list_tasks: SUPERVISOR,
  mcp__epic__get_review_queue: SUPERVISOR,
  mcp__epic__approve_pr: SUPERVISOR,
  mcp__epic__request_changes: SUPERVISOR,
  mcp__epic__read_file: SUPERVISOR,
  mcp__epic__create_epic_pr: SUPERVISOR,
  mcp__system__log_decision: ALL,
}
/** Named in the tables of permissions alone; and our own tools whose answers have the document's event data. */
const UNLISTED: Record<string, string[]> = {
  event_list: ALL,
  event_wait: ALL,
  mcp__task__update_status: ALL,
  mcp__task__create: ['SUPERVISOR', 'ORCHESTRATOR'],
  mcp__task__assign: ['SUPERVISOR', 'ORCHESTRATOR'],
  mcp__task__add_comment: ALL,
  mcp__epic__update_status: ['SUPERVISOR', 'ORCHESTRATOR'],
}
const TABLE = Object.entries({ ...LISTED, ...UNLISTED }).flatMap(([tool, allowed]) =>
  ALL.map((type) => ({ tool, type, may: allowed.includes(type) })),
)

async function cast(app: TestApp): Promise<Record<string, Caller>> {
  const task = await app.task({ title: 'Add user authentication' })
  return {
    SUPERVISOR: await app.agent('supervisor'),
    ORCHESTRATOR: await app.agent('orchestrator'),
    WORKER: await app.worker(task.id),
  }
}

async function shaped(caller: Caller, tool: string, input: unknown = {}): Promise<Any> {
  const answer = await caller.invoke(tool, input, FACTORY)
  return answer.ok ? answer.value : answer.shaped
}

async function listed(app: TestApp, caller: Caller): Promise<string[]> {
  const proof = await app.app.kernel.authenticate(caller.secret)
  if (!proof) throw new Error('not known')
  return app.app.kernel.permitted(proof.principal, 'admin', 'factory').map(({ calledAs }) => calledAs)
}

describe('who may', () => {
  test('[FF4] the table has every tool of the dialect', () => {
    const names = (tools: typeof factory.tools) => tools.map(({ name }) => name).toSorted()
    expect(names(factory.tools.filter((tool) => !tool.unlisted))).toEqual(Object.keys(LISTED).toSorted())
    expect(names(factory.tools.filter((tool) => tool.unlisted))).toEqual(Object.keys(UNLISTED).toSorted())
  })

  test('[FF4] every tool, every role', async ({ app }) => {
    const callers = await cast(app)
    const said = []
    for (const { tool, type } of TABLE) {
      const { error } = await shaped(callers[type] as Caller, tool, { nobodyKnowsThis: 1 })
      const refusal = `Tool '${tool}' is not allowed for agent type '${type}'`
      said.push({ tool, type, may: error.message !== refusal })
      if (error.message === refusal) expect(error).toEqual({ code: 'PERMISSION_DENIED', message: refusal, details: {} })
    }
    expect(said).toEqual(TABLE)
  })

  test('[FF4] what is listed is what may be used', async ({ app }) => {
    const callers = await cast(app)
    for (const type of ALL) {
      const may = Object.keys(LISTED).filter((tool) => LISTED[tool]?.includes(type))
      expect((await listed(app, callers[type] as Caller)).toSorted()).toEqual(may.toSorted())
    }
    expect((await listed(app, app.owner)).toSorted()).toEqual(Object.keys(LISTED).toSorted())
  })

  test('[FF4] settings narrow it further', async ({ app }) => {
    const { WORKER } = (await cast(app)) as { WORKER: Caller }
    await app.owner.call('setting_update', { key: 'roles.worker.deny', value: ['decision_log'] })
    const { error } = await shaped(WORKER, 'mcp__system__log_decision', { title: 'a', body: 'b' })
    expect(error).toEqual({
      code: 'PERMISSION_DENIED',
      message: "Tool 'mcp__system__log_decision' is not allowed for agent type 'WORKER'",
      details: {},
    })
  })
})

describe('mail', () => {
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT/)
  type Pair = { WORKER: Caller; SUPERVISOR: Caller }

  test('[FF3] a letter is sent, listed without being marked, read once, and answered', async ({ app }) => {
    const { WORKER, SUPERVISOR: boss } = (await cast(app)) as Pair
    const { mailId, ...sent } = await boss.call(
      'mcp__mail__send',
      { toAgentId: WORKER.handle, toHuman: false, subject: 'Task Assignment', body: 'Begin with the tests' },
      FACTORY,
    )
    expect(sent).toEqual({ timestamp: time })
    const mail = {
      id: mailId,
      fromAgentId: boss.id,
      fromAgentType: 'SUPERVISOR',
      subject: 'Task Assignment',
      body: 'Begin with the tests',
      isRead: false,
      createdAt: time,
      readAt: null,
    }
    for (let i = 0; i < 2; i++)
      expect(await WORKER.call('mcp__mail__list_inbox', {}, FACTORY)).toEqual({ count: 1, unreadCount: 1, mails: [mail] })
    const read = await WORKER.call('mcp__mail__read', { mailId }, FACTORY)
    expect(read).toEqual({ ...mail, isRead: true, readAt: time })
    expect(await WORKER.call('mcp__mail__list_inbox', { includeRead: false }, FACTORY)).toEqual({ count: 0, unreadCount: 0, mails: [] })
    expect(await WORKER.call('mcp__mail__list_inbox', { includeRead: true }, FACTORY)).toEqual({ count: 1, unreadCount: 0, mails: [read] })
    const reply = await WORKER.call('mcp__mail__reply', { originalMailId: mailId, body: 'On it' }, FACTORY)
    expect(reply).toEqual({ mailId: expect.stringMatching(/^mail_/), timestamp: time })
    expect((await boss.call('mcp__mail__list_inbox', {}, FACTORY)).mails).toMatchObject([
      { id: reply.mailId, fromAgentId: WORKER.id, fromAgentType: 'WORKER', subject: 'Re: Task Assignment' },
    ])
    expect(await app.events({ type: 'mail.sent' })).toMatchObject([
      { data: { mail_id: mailId, to_agent_id: WORKER.id, is_for_human: false, subject: 'Task Assignment' } },
      { data: { mail_id: reply.mailId, to_agent_id: boss.id, is_for_human: false, subject: 'Re: Task Assignment' } },
    ])
  })

  test('[FF3] to the human and from the human', async ({ app }) => {
    const { WORKER } = (await cast(app)) as Pair
    await WORKER.call('mcp__mail__send', { toHuman: true, subject: 'Which port?', body: '3000 or 3001' }, FACTORY)
    const { mails } = await app.owner.call('mcp__mail__list_inbox', {}, FACTORY)
    expect(mails).toMatchObject([{ fromAgentId: WORKER.id, fromAgentType: 'WORKER' }])
    await app.owner.call('mcp__mail__reply', { originalMailId: mails[0].id, body: '3001' }, FACTORY)
    expect((await WORKER.call('mcp__mail__list_inbox', {}, FACTORY)).mails).toMatchObject([
      { fromAgentId: app.owner.id, fromAgentType: 'HUMAN', subject: 'Re: Which port?' },
    ])
  })

  test('[FF3] sending and answering make the sender active; the prefix of an answer stands once', async ({ app }) => {
    const { WORKER, SUPERVISOR: boss } = (await cast(app)) as Pair
    const active = async (caller: Caller) =>
      (await app.owner.call('mcp__agent__get_status', {}, { ...FACTORY, actFor: caller.id })).lastActiveAt
    const none = await active(boss)
    const { mailId, timestamp } = await boss.call('mcp__mail__send', { toAgentId: WORKER.id, subject: 'Plan', body: 'a' }, FACTORY)
    expect([none ?? '' < timestamp, await active(boss)]).toEqual([true, timestamp])
    const answer = await WORKER.call('mcp__mail__reply', { originalMailId: mailId, body: 'b' }, FACTORY)
    expect(await active(WORKER)).toBe(answer.timestamp)
    const again = await boss.call('mcp__mail__reply', { originalMailId: answer.mailId, body: 'c' }, FACTORY)
    expect(await WORKER.call('mcp__mail__read', { mailId: again.mailId }, FACTORY)).toMatchObject({
      subject: 'Re: Plan',
      fromAgentId: boss.id,
    })
  })

  test('[FF5] what the document says of mistakes', async ({ app }) => {
    const { WORKER, SUPERVISOR: boss } = (await cast(app)) as Pair
    const text = { subject: 'a', body: 'b' }
    const code = async (caller: Caller, tool: string, input: object) => (await shaped(caller, tool, input)).error
    const both = 'Must specify either toAgentId or toHuman: true'
    for (const to of [{}, { toHuman: false }, { toAgentId: boss.id, toHuman: true }])
      expect(await code(WORKER, 'mcp__mail__send', { ...to, ...text })).toMatchObject({ code: 'INVALID_INPUT', message: both })
    expect(await code(WORKER, 'mcp__mail__send', { toAgentId: 'agent-789', ...text })).toMatchObject({ code: 'AGENT_NOT_FOUND' })
    for (const mailId of ['mail-404', `mail_${'0'.repeat(36)}`]) {
      expect(await code(WORKER, 'mcp__mail__read', { mailId })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
      expect(await code(WORKER, 'mcp__mail__reply', { originalMailId: mailId, body: 'b' })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    }
    const { mailId } = await boss.call('mcp__mail__send', { toHuman: true, ...text }, FACTORY)
    expect(await code(WORKER, 'mcp__mail__read', { mailId })).toMatchObject({
      code: 'PERMISSION_DENIED',
      message: expect.stringContaining('a letter that you received'),
    })
    expect(await code(WORKER, 'mcp__mail__reply', { originalMailId: mailId, body: 'b' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await code(WORKER, 'mcp__mail__reply', { body: 'b' })).toMatchObject({
      code: 'INVALID_INPUT',
      message: 'mcp__mail__reply: originalMailId: is missing',
    })
  })

  test('[FF4] the example of a refusal: a role that was denied the letters', async ({ app }) => {
    const { WORKER, SUPERVISOR: boss } = (await cast(app)) as Pair
    await app.owner.call('setting_update', { key: 'roles.worker.deny', value: ['mail_send'] })
    const answer = await shaped(WORKER, 'mcp__mail__send', { toAgentId: boss.id, subject: 'a', body: 'b' })
    expect(answer).toEqual({
      error: { code: 'PERMISSION_DENIED', message: "Tool 'mcp__mail__send' is not allowed for agent type 'WORKER'", details: {} },
    })
  })
})

describe('agents', () => {
  test('[FF3] get_status tells who one is', async ({ app }) => {
    const { WORKER, SUPERVISOR: boss } = (await cast(app)) as { WORKER: Caller; SUPERVISOR: Caller }
    const task = (await WORKER.call('agent_me')).task_id
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT/)
    const status = await WORKER.call('mcp__agent__get_status', {}, FACTORY)
    expect(status).toEqual({
      id: WORKER.id,
      type: 'WORKER',
      state: 'BUSY',
      currentEpicId: null,
      currentTaskId: task,
      tmuxSessionName: null,
      lastActiveAt: status.lastActiveAt,
      createdAt: time,
      updatedAt: time,
    })
    await WORKER.call('decision_log', { title: 'a', body: 'b' })
    expect(await WORKER.call('mcp__agent__get_status', {}, FACTORY)).toMatchObject({ lastActiveAt: time })
    expect(await boss.call('mcp__agent__get_status', {}, FACTORY)).toMatchObject({ type: 'SUPERVISOR', state: 'IDLE', currentTaskId: null })
    expect(await app.owner.call('mcp__agent__get_status', {}, FACTORY)).toMatchObject({ id: app.owner.id, type: 'HUMAN', state: null })
  })

  test("[FF3] get_task tells of a worker's own task", async ({ app }) => {
    const task = await app.task({ title: 'Implement user authentication', description: 'Tokens.' })
    const worker = await app.worker(task.id)
    expect(await worker.call('mcp__agent__get_task', {}, FACTORY)).toEqual({
      id: task.id,
      title: 'Implement user authentication',
      description: 'Tokens.',
      state: 'PENDING',
      epicId: null,
      worktreePath: null,
      branchName: null,
      prUrl: null,
      createdAt: task.created_at,
      updatedAt: expect.any(String),
    })
  })

  test('[FF5] who is no worker, or has no task, is in the wrong state', async ({ app }) => {
    const [boss, idle] = [await app.agent('supervisor'), await app.agent('worker')]
    expect(await shaped(boss, 'mcp__agent__get_task')).toMatchObject({
      error: { code: 'INVALID_AGENT_STATE', message: 'Agent is not a WORKER' },
    })
    expect(await shaped(idle, 'mcp__agent__get_task')).toMatchObject({
      error: { code: 'INVALID_AGENT_STATE', message: "WORKER doesn't have a current task" },
    })
  })
})

describe('epics', () => {
  const noEpic = { code: 'INVALID_AGENT_STATE', message: "Agent doesn't have a current epic" }
  const noTask = { code: 'INVALID_AGENT_STATE', message: "WORKER doesn't have a current task" }

  test('[FF5] whoever is in none is in the wrong state', async ({ app }) => {
    const { WORKER, ...others } = (await cast(app)) as { WORKER: Caller; SUPERVISOR: Caller; ORCHESTRATOR: Caller }
    for (const caller of [WORKER, ...Object.values(others)])
      expect((await shaped(caller, 'mcp__agent__get_epic')).error).toMatchObject(noEpic)
    expect((await shaped(await app.agent('worker'), 'mcp__agent__get_epic')).error).toMatchObject(noTask)
    for (const tool of ['create_task', 'list_tasks', 'get_review_queue', 'create_epic_pr'])
      expect((await shaped(others.SUPERVISOR, `mcp__epic__${tool}`, { title: 'a', description: 'b' })).error).toMatchObject(
        tool === 'create_task' || tool === 'create_epic_pr' ? noEpic : { code: expect.stringMatching(/INVALID_AGENT_STATE|INVALID_INPUT/) },
      )
  })

  test('[FF3] a supervisor leads one: its state, its tasks by state, and what is not in it', async ({ app }) => {
    const boss = await app.agent('supervisor')
    const wanted = { project_id: await app.project(), title: 'User Management', description: 'Accounts', start: false }
    const { epic_id } = await app.owner.call('epic_create', wanted)
    await app.owner.call('epic_update', { epic_id, supervisor_id: boss.id })
    expect(await boss.call('mcp__agent__get_status', {}, FACTORY)).toMatchObject({ currentEpicId: epic_id, currentTaskId: null })
    const { taskId } = await boss.call('mcp__epic__create_task', { title: 'Add user auth', description: 'Tokens' }, FACTORY)
    const ids = async (state?: string) =>
      (await boss.call('mcp__epic__list_tasks', state ? { state } : {}, FACTORY)).tasks.map(({ id }: Any) => id)
    expect([await ids(), await ids('PENDING'), await ids('IN_PROGRESS'), await ids('REVIEW')]).toEqual([[taskId], [taskId], [], []])
    for (const state of ['BACKLOG', 'LOST', 7, null])
      expect((await shaped(boss, 'mcp__epic__list_tasks', { state })).error).toMatchObject({
        code: 'INVALID_INPUT',
        message: 'mcp__epic__list_tasks: state: must be one of PENDING, IN_PROGRESS, REVIEW, COMPLETED',
      })
    for (const tool of ['approve_pr', 'request_changes', 'read_file']) {
      const ask = (task: string) => shaped(boss, `mcp__epic__${tool}`, { taskId: task, ...MORE[tool] })
      expect((await ask('task-123')).error).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
      expect((await ask(taskId)).error.code).toBe(tool === 'read_file' ? 'RESOURCE_NOT_FOUND' : 'INVALID_AGENT_STATE')
    }
    const mine = await app.worker(taskId)
    expect(await mine.call('mcp__agent__get_epic', {}, FACTORY)).toMatchObject({ id: epic_id, title: 'User Management', state: 'PLANNING' })
  })
  const MORE: Record<string, object> = { request_changes: { feedback: 'x' }, read_file: { filePath: 'a' } }
})

describe('tasks', () => {
  test('[FF3] a key makes a call happen once', async ({ app }) => {
    const { WORKER } = (await cast(app)) as { WORKER: Caller }
    const decision = { title: 'a', body: 'b', idempotencyKey: 'once' }
    const first = await WORKER.call('mcp__system__log_decision', decision, FACTORY)
    expect(await WORKER.call('mcp__system__log_decision', decision, FACTORY)).toEqual(first)
    expect(await app.events({ type: 'decision.logged' })).toHaveLength(1)
  })

  test('[FF6] a worker moves its own task, comments on it, and hands it in', async ({ app }) => {
    const task = await app.task()
    const worker = await app.worker(task.id)
    expect(await worker.call('mcp__task__update_status', { state: 'IN_PROGRESS' }, FACTORY)).toEqual({
      taskId: task.id,
      state: 'IN_PROGRESS',
    })
    expect(await worker.call('mcp__task__add_comment', { comment: 'Half way.' }, FACTORY)).toMatchObject({ taskId: task.id })
    expect(await worker.call('mcp__task__update_status', { taskId: task.handle, state: 'REVIEW' }, FACTORY)).toEqual({
      taskId: task.id,
      state: 'REVIEW',
      submittedAt: expect.any(String),
    })
    expect((await app.owner.call('review_list', { task_id: task.id })).reviews).toMatchObject([{ round: 1, requested_by: worker.id }])
    expect((await app.owner.call('task_get', { task_id: task.id })).task).toMatchObject({
      status: 'REVIEW',
      notes: [{ body: 'Half way.' }],
    })
    expect(await shaped(worker, 'mcp__task__update_status', { state: 'COMPLETED' })).toMatchObject({
      error: { code: 'INVALID_AGENT_STATE', details: { nativeCode: 'INVALID_TRANSITION' } },
    })
  })

  test('[FF6] what a worker hands in has the rules of a review', async ({ app }) => {
    const task = await app.task()
    const worker = await app.worker(task.id)
    await app.owner.call('setting_update', { key: 'roles.worker.deny', value: ['review_request'] })
    expect(await shaped(worker, 'mcp__task__update_status', { state: 'REVIEW' })).toMatchObject({ error: { code: 'PERMISSION_DENIED' } })
    expect(await worker.call('mcp__task__update_status', { state: 'IN_PROGRESS' }, FACTORY)).toMatchObject({ state: 'IN_PROGRESS' })
  })

  test('[FF6] an orchestrator makes and hands out tasks', async ({ app }) => {
    const [orchestrator, worker] = [await app.agent('orchestrator', { project_id: await app.project() }), await app.agent('worker')]
    const { taskId, ...rest } = await orchestrator.call('mcp__task__create', { title: 'Add user auth', description: 'x' }, FACTORY)
    expect(rest).toEqual({
      title: 'Add user auth',
      worktreeName: expect.stringMatching(/^task-[0-9a-z]{8}-add-user-auth$/),
      message: 'Task created.',
    })
    expect(await orchestrator.call('mcp__task__assign', { taskId, agentId: worker.handle }, FACTORY)).toEqual({
      taskId,
      agentId: worker.id,
    })
    expect(await orchestrator.call('mcp__task__update_status', { taskId, state: 'IN_PROGRESS' }, FACTORY)).toMatchObject({ taskId })
    expect(await orchestrator.call('mcp__task__update_status', { taskId, state: 'REVIEW' }, FACTORY)).toEqual({ taskId, state: 'REVIEW' })
  })
})

describe('the decision log', () => {
  const log = async (app: TestApp, caller: Caller): Promise<Any[]> => {
    return (await app.owner.call('decision_list', { principal: caller.id })).decisions
  }
  const STACK = expect.stringMatching(/\n {4}at /)

  test('[FF7] has what was given and what was answered in the shape of the document, reads at once too', async ({ app }) => {
    const { WORKER, SUPERVISOR: boss } = (await cast(app)) as { WORKER: Caller; SUPERVISOR: Caller }
    const letter = { toAgentId: boss.id, subject: 'Need Help', body: 'I am stuck' }
    const sent = await WORKER.call('mcp__mail__send', letter, FACTORY)
    const decision = { title: 'Tokens', body: 'Not cookies.' }
    const logged = await WORKER.call('mcp__system__log_decision', decision, FACTORY)
    const inbox = await WORKER.call('mcp__mail__list_inbox', { includeRead: true }, FACTORY)
    const automatic = (kind: string, tool: string, context: unknown) => ({
      id: expect.stringMatching(`^call_.*[.]${kind}$`),
      kind,
      agent_id: WORKER.id,
      decision: `${kind === 'invocation' ? 'Invoked tool' : 'Tool result'}: ${tool}`,
      reasoning: `Automatic tool ${kind} log`,
      context,
      timestamp: expect.any(String),
    })
    expect(await log(app, WORKER)).toEqual([
      automatic('result', 'mcp__mail__list_inbox', inbox),
      automatic('invocation', 'mcp__mail__list_inbox', { includeRead: true }),
      automatic('result', 'mcp__system__log_decision', logged),
      expect.objectContaining({ id: logged.logId, kind: 'manual', decision: 'Tokens', reasoning: 'Not cookies.' }),
      automatic('invocation', 'mcp__system__log_decision', decision),
      automatic('result', 'mcp__mail__send', sent),
      automatic('invocation', 'mcp__mail__send', letter),
    ])
  })

  test('[Y12] under the name that was used; a dialect whose document asks for it keeps what a read answered', async ({ app }) => {
    const worker = await app.agent('worker')
    await worker.call('mcp__agent__get_status', {}, FACTORY)
    await worker.call('agent_me')
    await app.reopen()
    expect(await log(app, worker)).toMatchObject([
      { decision: 'Tool result: agent_me', context: null },
      { decision: 'Invoked tool: agent_me' },
      { decision: 'Tool result: mcp__agent__get_status', context: { id: worker.id, type: 'WORKER' } },
      { decision: 'Invoked tool: mcp__agent__get_status', context: {} },
    ])
  })

  test('[FF7] has what was given to a refused call, and its error with the stack', async ({ app }) => {
    const { WORKER } = (await cast(app)) as { WORKER: Caller }
    const refused = [
      ['mcp__epic__create_task', { title: 'a', description: 'b' }],
      ['mcp__mail__burn', { mailId: 'mail-1' }],
      ['mcp__mail__send', { toHuman: true, subject: 'a' }],
      ['mcp__mail__read', { mailId: 'mail-404' }],
      ['mcp__task__update_status', { state: 'COMPLETED' }],
    ] as const
    const errors: Any[] = []
    for (const [tool, input] of refused) errors.push((await shaped(WORKER, tool, input)).error)
    const entries = await log(app, WORKER)
    expect(entries.filter(({ kind }) => kind === 'invocation').map(({ decision, context }) => [decision, context])).toEqual(
      refused.map(([tool, input]) => [`Invoked tool: ${tool}`, input]).toReversed(),
    )
    expect(entries.filter(({ kind }) => kind === 'error')).toMatchObject(
      refused
        .map(([tool], i) => ({
          decision: `Tool error: ${tool}`,
          reasoning: 'Automatic tool error log',
          context: { ...errors[i], stack: STACK },
        }))
        .toReversed(),
    )
  })

  test('[FF7] has the result of a call that waits when it is there, and not before', async () => {
    const gate = deferred()
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-factory-'))
    const git = createGit({ worktrees: join(folder, 'worktrees'), own: join(folder, 'git') })
    const app = await openTestApp({ ports: { git: { ...git, build: (build) => gate.promise.then(() => git.build(build)) } } })
    onTestFinished(async () => {
      await app.close()
      rmSync(folder, { recursive: true, force: true })
    })
    const ground = await new WorkGround(app).prepare()
    const boss = await app.agent('supervisor')
    const { epic_id } = await app.owner.call('epic_create', { title: 'Users', start: false })
    await app.owner.call('epic_update', { epic_id, supervisor_id: boss.id })
    const { task } = await ground.handedIn('one', 'x\n', { epic_id })
    const approved = boss.call('mcp__epic__approve_pr', { taskId: task.id }, FACTORY)
    await until(async () => (await app.events({ type: 'review.decided' })).length === 1)
    const invocation = { kind: 'invocation', decision: 'Invoked tool: mcp__epic__approve_pr', context: { taskId: task.id } }
    expect(await log(app, boss)).toMatchObject([invocation])
    gate.resolve()
    const context = await approved
    expect(await log(app, boss)).toMatchObject([{ kind: 'result', decision: 'Tool result: mcp__epic__approve_pr', context }, invocation])
    expect(context).toMatchObject({ taskId: task.id, merged: true, message: 'PR merged successfully. 0 rebase requests sent.' })
  })

  test('[FF7] keeps its shape where a text is too long to be kept', async ({ app }) => {
    const boss = await app.agent('supervisor')
    const sent = await boss.call('mcp__mail__send', { toHuman: true, subject: 'Long', body: 'x'.repeat(15_000) }, FACTORY)
    await app.owner.call('mcp__mail__read', { mailId: sent.mailId }, FACTORY)
    const [, invocation] = await log(app, boss)
    expect(invocation.context).toEqual({ toHuman: true, subject: 'Long', body: expect.stringMatching(/^x+… \[15000 characters\]$/) })
    const { decisions } = await app.owner.call('decision_list', { principal: 'owner' })
    expect(decisions.find(({ decision }: Any) => decision === 'Tool result: mcp__mail__read')).toMatchObject({
      context: { id: sent.mailId, subject: 'Long', isRead: true },
    })
  })
})

describe('failures', () => {
  test('[ESC2] the critical ones are those that the document names', async ({ app }) => {
    const { registry } = app.app
    const dialect = registry.dialect('factory')
    const critical = dialect.tools.filter(({ name, native }) => registry.isCritical({ tool: native, dialect: 'factory', name }))
    const named = [
      'mcp__mail__send',
      'mcp__agent__get_task',
      'mcp__agent__get_epic',
      'mcp__task__update_status',
      'mcp__epic__update_status',
    ]
    const there = named.filter((name) => dialect.tools.some((tool) => tool.name === name))
    expect(critical.map(({ name }) => name).toSorted()).toEqual(there.toSorted())
    expect(registry.isCritical({ tool: 'task_move', ...calledAs({ dialect: null, tool: 'task_move' }) })).toBe(true)
    expect(registry.isCritical({ tool: 'task_note', dialect: null, name: 'task_note' })).toBe(false)
  })
})

describe('events', () => {
  test('[FF8] read with the dialect, their data has the documented names', async ({ app }) => {
    const { WORKER, SUPERVISOR: boss } = (await cast(app)) as { WORKER: Caller; SUPERVISOR: Caller }
    const { cursor } = await WORKER.call('event_list', {}, FACTORY)
    const { mailId } = await boss.call('mcp__mail__send', { toAgentId: WORKER.id, subject: 'Need Help', body: 'x' }, FACTORY)
    const mailSent = { type: 'mail.sent', actor: boss.id, data: { mailId, toAgentId: WORKER.id, isForHuman: false, subject: 'Need Help' } }
    const waited = await WORKER.call('event_wait', { cursor, types: ['mail.*'], timeoutSeconds: 30 }, FACTORY)
    expect(waited.events).toMatchObject([mailSent])
    expect(waited.events[0].data).toEqual(mailSent.data)
    expect((await WORKER.call('event_list', { types: ['mail.sent'] }, FACTORY)).events).toMatchObject([mailSent])
    const { taskId } = await app.owner.call('mcp__task__create', { title: 'One', projectId: await app.project() }, FACTORY)
    await app.owner.call('task_move', { task_id: taskId, status: 'IN_PROGRESS' })
    const { events } = await app.owner.call('event_list', { types: ['task.created', 'task.moved'], taskId }, FACTORY)
    expect(events).toMatchObject([
      { type: 'task.moved', taskId, data: { from: 'PENDING', to: 'IN_PROGRESS' } },
      { type: 'task.created', taskId, data: { title: 'One' } },
    ])
    expect((await WORKER.call('event_list', { types: ['mail.sent'] })).events).toMatchObject([{ data: { mail_id: mailId } }])
  })
})

describe('what it says of a mistake', () => {
  test('[FF5] what the document asks for is needed, and may not be empty', async ({ app }) => {
    const boss = await app.agent('supervisor')
    const epic = { epicId: 'E-1' }
    for (const [tool, given, missing] of [
      ['mcp__epic__create_task', { title: 'a', ...epic }, 'description'],
      ['mcp__epic__create_task', { description: 'a', ...epic }, 'title'],
      ['mcp__mail__read', {}, 'mailId'],
      ['mcp__mail__reply', { originalMailId: 'mail-1' }, 'body'],
      ['mcp__mail__send', { toHuman: true, body: 'a' }, 'subject'],
      ['mcp__epic__approve_pr', {}, 'taskId'],
      ['mcp__epic__request_changes', { taskId: 'T-1' }, 'feedback'],
      ['mcp__epic__read_file', { taskId: 'T-1' }, 'filePath'],
      ['mcp__system__log_decision', { title: 'a' }, 'body'],
      ['mcp__task__update_status', {}, 'state'],
    ] as const)
      expect((await shaped(boss, tool, given)).error).toMatchObject({
        code: 'INVALID_INPUT',
        message: `${tool}: ${missing}: is missing`,
        details: { issues: [{ path: missing, message: 'is missing' }] },
      })
  })

  test('[FF5] arguments have their documented names', async ({ app }) => {
    const boss = await app.agent('supervisor')
    const { error } = await shaped(boss, 'mcp__epic__read_file', { taskId: 'T-1', filePath: 7 })
    expect(error).toMatchObject({ code: 'INVALID_INPUT', message: expect.stringMatching(/^mcp__epic__read_file: filePath: /) })
    const foreign = (await shaped(boss, 'mcp__mail__list_inbox', { agentId: 'bob' })).error
    expect(foreign).toMatchObject({
      message: 'mcp__mail__list_inbox: input: Unrecognized key: "agentId"',
      details: { issues: [{ message: 'Unrecognized key: "agentId"' }] },
    })
    expect(error.details.issues).toMatchObject([{ path: 'filePath' }])
    expect((await shaped(boss, 'mcp__epic__read_file', {})).error.message).toMatch(/taskId: is missing; filePath: is missing$/)
    expect((await shaped(boss, 'mcp__epic__read_file', { taskId: 'T-404', filePath: 'a' })).error).toMatchObject({
      code: 'RESOURCE_NOT_FOUND',
    })
    expect((await shaped(boss, 'mcp__mail__burn')).error).toMatchObject({ code: 'TOOL_NOT_FOUND' })
  })

  test('[FF5] [K27] a hint names tools of the document, and no others', async ({ app }) => {
    const boss = await app.agent('supervisor')
    const list = 'mcp__epic__list_tasks'
    expect((await shaped(boss, 'mcp__epic__read_file', { taskId: 'T-404', filePath: 'a' })).error.details).toEqual({
      hint: `List them with ${list}.`,
      nextTool: list,
    })
    expect((await shaped(boss, 'mcp__epic__list_tasks', { epicId: 'E-404' })).error).toEqual({
      code: 'RESOURCE_NOT_FOUND',
      message: 'There is no epic "E-404".',
      details: {},
    })
    expect((await shaped(boss, 'mcp__epic__list_task')).error.details).toMatchObject({
      suggestions: [list, 'mcp__epic__create_task'],
      hint: `Did you mean ${list}?`,
    })
    expect(JSON.stringify((await shaped(boss, 'mail_sent')).error.details)).not.toContain('mail_send')
  })

  test('[FF5] no code is outside the document but those about tokens', () => {
    const documented = [
      ...['PERMISSION_DENIED', 'TOOL_NOT_FOUND', 'INVALID_INPUT', 'AGENT_NOT_FOUND', 'RESOURCE_NOT_FOUND', 'INVALID_AGENT_STATE'],
      ...['INTERNAL_ERROR', 'TRANSIENT_ERROR', 'UNAUTHENTICATED', 'AUTH_STALE_TOKEN'],
    ]
    expect([...new Set(Object.values(factory.codes))].toSorted()).toEqual(documented.toSorted())
    for (const code of Object.values(factory.codes)) expect(Object.keys(CODES)).toContain(code)
  })

  test('[FF4] a role that the document does not know has its native rules', async ({ app }) => {
    expect(ROLE_NAMES.filter((role) => !factory.roles?.[role])).toEqual(['reviewer', 'planner'])
    expect(await listed(app, await app.agent('reviewer'))).toContain('mcp__agent__get_status')
  })

  test('[FF2] the audit has the name that was used', async ({ app }) => {
    const worker = await app.agent('worker')
    await worker.call('mcp__system__log_decision', { title: 'a', body: 'b' }, FACTORY)
    expect((await auditRows(app)).at(-1)).toMatchObject({ tool: 'decision_log', dialect: 'factory/mcp__system__log_decision' })
    expect((await app.owner.call('audit_tail', { tool: 'decision_log' })).calls).toMatchObject([
      { dialect: 'factory', called_as: 'mcp__system__log_decision', tool: 'decision_log' },
    ])
  })
})
