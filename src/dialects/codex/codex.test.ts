import { describe, expect } from 'vitest'
import { CODES } from '../../kernel/error.ts'
import { ROLE_NAMES } from '../../kernel/policy.ts'
import { type Caller, type TestApp, test } from '../../testing/app.ts'
import { WorkGround } from '../../testing/work.ts'
import { codex } from './index.ts'

const CODEX = { dialect: 'codex' }

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

const ALL = ['coding', 'review', 'planning']
/** "Permission Rules by Agent Type". */
const LISTED: Record<string, string[]> = {
  request_review: ['coding'],
  create_pull_request: ALL,
  send_feedback: ['review'],
  create_issues: ['planning'],
}
/** Named in the text alone. */
const UNLISTED: Record<string, string[]> = { create_pr: ALL, query_instances: ALL }
const TABLE = Object.entries({ ...LISTED, ...UNLISTED }).flatMap(([tool, allowed]) =>
  ALL.map((type) => ({ tool, type, may: allowed.includes(type) })),
)

async function cast(app: TestApp): Promise<Record<string, Caller>> {
  const project_id = await app.project()
  const [task, other] = [await app.task(), await app.task()]
  const review = await app.agent('reviewer')
  await app.owner.call('task_assign', { task_id: other.id, agent_id: review.id })
  return { coding: await app.worker(task.id), review, planning: await app.agent('planner', { project_id }) }
}

async function shaped(caller: Caller, tool: string, input: unknown = {}, more: object = {}): Promise<Any> {
  const answer = await caller.invoke(tool, input, { ...CODEX, ...more })
  return answer.ok ? answer.value : answer.shaped
}

async function listed(app: TestApp, caller: Caller): Promise<string[]> {
  const proof = await app.app.kernel.authenticate(caller.secret)
  if (!proof) throw new Error('not known')
  return app.app.kernel
    .permitted(proof.principal, 'admin', 'codex')
    .map(({ calledAs }) => calledAs)
    .toSorted()
}

describe('who may', () => {
  test('[CC1] the table has every tool of the dialect', () => {
    const names = (tools: typeof codex.tools) => tools.map(({ name }) => name).toSorted()
    expect(names(codex.tools.filter((tool) => !tool.unlisted))).toEqual(Object.keys(LISTED).toSorted())
    expect(names(codex.tools.filter((tool) => tool.unlisted))).toEqual(Object.keys(UNLISTED).toSorted())
  })

  test('[CC1] every tool, every agent type', async ({ app }) => {
    const callers = await cast(app)
    const said = []
    for (const { tool, type } of TABLE) {
      const caller = callers[type] as Caller
      const error = await shaped(caller, tool, { nobody_knows_this: 1 })
      said.push({ tool, type, may: error.code !== 'PERMISSION_DENIED' })
      expect(error).toMatchObject({ code: error.error, message: expect.stringContaining(tool), instance_id: caller.id, tool_name: tool })
      if (error.code !== 'PERMISSION_DENIED') expect(error.code).toBe('INVALID_INPUT')
    }
    expect(said).toEqual(TABLE)
  })

  test('[CC1] what is listed is what may be used', async ({ app }) => {
    const callers = await cast(app)
    for (const type of ALL) {
      const may = Object.keys(LISTED).filter((tool) => LISTED[tool]?.includes(type))
      expect(await listed(app, callers[type] as Caller)).toEqual(may.toSorted())
    }
    expect(await listed(app, app.owner)).toEqual(Object.keys(LISTED).toSorted())
  })

  test('[CC1] settings narrow it further, also under the second name', async ({ app }) => {
    const { coding } = (await cast(app)) as { coding: Caller }
    await app.owner.call('setting_update', { key: 'roles.worker.deny', value: ['pr_create'] })
    for (const tool of ['create_pull_request', 'create_pr'])
      expect(await shaped(coding, tool, { title: 'a', description: 'b' })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[CC1] a role that the document does not know has its native rules', async ({ app }) => {
    expect(ROLE_NAMES.filter((role) => !codex.roles?.[role])).toEqual(['supervisor', 'orchestrator'])
    expect(await listed(app, await app.agent('supervisor'))).toContain('create_issues')
  })
})

describe('what it answers', () => {
  test('[CC2] a planning agent creates issues', async ({ app }) => {
    const { planning } = (await cast(app)) as { planning: Caller }
    const wanted = [
      { title: 'Tokens', body: 'Not cookies.', labels: ['security'] },
      { title: 'Tests', body: '' },
    ]
    const { issues } = await planning.call('create_issues', { issues: wanted }, CODEX)
    expect(issues).toEqual(
      wanted.map(({ title }) => ({
        issue_number: expect.any(Number),
        issue_url: expect.stringMatching(/\/task\/task_/),
        title,
        task: expect.stringMatching(/^T-\d+$/),
      })),
    )
    expect((await app.owner.call('task_get', { task_id: issues[0].task })).task.description).toContain('Labels: security')
  })

  test('[CC2] instances have the types and states of the document', async ({ app }) => {
    const { coding, review, planning } = (await cast(app)) as Record<'coding' | 'review' | 'planning', Caller>
    await app.owner.call('token_revoke', { agent_id: review.id })
    const { instances } = await planning.call('query_instances', {}, CODEX)
    const shown = ({ id, handle }: Caller, type: string, status: string) => ({ instance_id: id, name: handle, type, status })
    expect(instances.map(({ task_id: _, ...instance }: Any) => instance)).toEqual([
      shown(review, 'review', 'TERMINATED'),
      shown(coding, 'coding', 'BUSY'),
      shown(planning, 'planning', 'IDLE'),
    ])
  })

  test('[CC4] the agent that asked is WAITING_REVIEW for whoever asks, from the answer on, also while its process is still there', async ({
    app,
  }) => {
    const ground = await new WorkGround(app).prepare()
    await app.owner.call('setting_update', { key: 'runs.default_harness', value: 'fake' })
    const { path, worker } = await ground.begun()
    ground.commit(path, 'b.txt', 'x\n')
    const { planning } = (await cast(app)) as { planning: Caller }
    const { status } = await app.owner.call('request_review', {}, { ...CODEX, actFor: worker })
    const { instances } = await planning.call('query_instances', {}, CODEX)
    const seen = instances.find(({ instance_id }: Any) => instance_id === worker)
    expect([status, seen.status]).toEqual(['WAITING_REVIEW', 'WAITING_REVIEW'])
    expect(await app.owner.call('agent_me', {}, { actFor: worker })).toMatchObject({ state: 'WAITING_REVIEW' })
  })

  test('[CC2] a key makes a call happen once', async ({ app }) => {
    const { planning } = (await cast(app)) as { planning: Caller }
    const wanted = { issues: [{ title: 'Tokens', body: '' }], idempotency_key: 'once' }
    const first = await planning.call('create_issues', wanted, CODEX)
    expect(await planning.call('create_issues', wanted, CODEX)).toEqual(first)
    expect((await app.owner.call('task_list')).tasks).toHaveLength(3)
  })

  test('[CC2] [CC5] a pull request has its number; at the limit it is the way out', async ({ app }) => {
    const ground = await new WorkGround(app).prepare()
    for (const [key, value] of Object.entries({ 'review.max_iterations': 1, 'runs.default_harness': 'fake' }))
      await app.owner.call('setting_update', { key, value })
    const { task, path, worker } = await ground.begun()
    const coding = { actFor: worker }
    const pr = { title: 'Tokens', description: 'Not cookies.' }
    expect(await shaped(app.owner, 'create_pull_request', pr, coding)).toMatchObject({
      code: 'CONFLICT',
      error: 'CONFLICT',
      message: expect.stringContaining('would be empty'),
      hint: expect.any(String),
      instance_id: worker,
      tool_name: 'create_pull_request',
    })
    ground.commit(path, 'b.txt', 'x\n')
    const branch_name = ground.git(path, 'branch', '--show-current')
    const answer = { pr_number: 1, pr_url: expect.stringMatching(`/task/${task.id}$`), branch_name, message: expect.any(String) }
    expect(await shaped(app.owner, 'create_pr', pr, coding)).toEqual(answer)
    await app.owner.call('review_decide', { task_id: task.id, decision: 'request_changes', feedback: 'More.' })
    const { handle } = (await app.owner.call('agent_list')).agents.find(({ id }: Any) => id === worker)
    expect(await shaped(app.owner, 'request_review', { completion_message: 'Done.' }, coding)).toEqual({
      code: 'REVIEW_LIMIT_EXCEEDED',
      error: 'REVIEW_LIMIT_EXCEEDED',
      message: `Maximum review iterations (1) reached for agent ${handle}`,
      hint: 'Consider creating PR or abandoning.',
      suggestions: [
        'Create pull request with current work',
        'Abandon this approach and try different solution',
        'Manually review and fix issues before requesting review',
      ],
      current_iteration: 1,
      max_iterations: 1,
      instance_id: worker,
      tool_name: 'request_review',
    })
    const last = await shaped(app.owner, 'create_pull_request', pr, coding)
    expect(last).toEqual({ ...answer, message: 'The rounds of review are used up: a person decides about it.' })
    expect((await app.owner.call('task_get', { task_id: task.id })).task).toMatchObject({ status: 'REVIEW', attention: 'human' })
  })
})

describe('what it says of a mistake', () => {
  test('[CC3] arguments have their documented names', async ({ app }) => {
    const { coding, review } = (await cast(app)) as Record<'coding' | 'review', Caller>
    expect(await shaped(coding, 'request_review', { completion_message: 7 })).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringMatching(/^request_review: completion_message: /),
      issues: [{ path: 'completion_message' }],
    })
    expect((await shaped(review, 'send_feedback')).message).toMatch(/^send_feedback: feedback: is missing; feedback_type: /)
    const wrong = { feedback: 'x', feedback_type: 'nice' }
    expect((await shaped(review, 'send_feedback', wrong)).issues).toMatchObject([{ path: 'feedback_type' }])
    expect(await shaped(coding, 'spawn_review')).toMatchObject({
      code: 'TOOL_NOT_FOUND',
      tool_name: 'spawn_review',
      instance_id: coding.id,
    })
  })

  test('[CC3] a person is no instance, and nobody is none', async ({ app }) => {
    const person = await shaped(app.owner, 'send_feedback', {})
    expect(person).not.toHaveProperty('instance_id')
    const nobody = await app.app.kernel.invoke({
      tool: 'send_feedback',
      input: {},
      credential: { secret: 'sbx_agent_nobody' },
      surface: 'mcp',
      ...CODEX,
    })
    expect(nobody).toMatchObject({ shaped: { code: 'UNAUTHENTICATED', error: 'UNAUTHENTICATED', tool_name: 'send_feedback' } })
  })

  test('[CC3] every code is told under its own name', () => {
    expect(codex.codes).toEqual(Object.fromEntries(Object.keys(CODES).map((code) => [code, code])))
  })

  test('[CC6] a coding agent sends no feedback, and a review agent without a review has nothing to say it of', async ({ app }) => {
    const { coding, review } = (await cast(app)) as Record<'coding' | 'review', Caller>
    const said = { feedback: 'x', feedback_type: 'needs_work' }
    expect(await shaped(coding, 'send_feedback', said)).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await shaped(review, 'send_feedback', said)).toMatchObject({ code: 'INVALID_INPUT' })
    const { task_id } = await coding.call('agent_me')
    expect(await shaped(review, 'send_feedback', { ...said, task_id })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })
})
