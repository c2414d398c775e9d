import { sql } from 'kysely'
import { test as base, describe, expect } from 'vitest'
import { tables } from '../../db/tables.ts'
import type { LoggedEvent } from '../../kernel/event.ts'
import { Caller, openTestApp, type TestApp } from '../../testing/app.ts'
import { QUICK } from '../../testing/effects.ts'
import { FakeGit } from '../../testing/fakes/git.ts'
import { FakeRunner, fakeHarness, harnessesOf } from '../../testing/fakes/runs.ts'
import { until } from '../../testing/signals.ts'

interface Run {
  id: string
  task_id: string
  agent_id: string
  job_id: string
  state: string
}

/** For a time that has not come. */
const LATER = ['run.forget', 'run.linger', 'review.time_out']

/** An epic that was begun, with agents whose lives the test plays. */
class Ground {
  readonly app: TestApp
  readonly runner: FakeRunner
  readonly git: FakeGit
  // biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
  epic: any

  constructor(app: TestApp, runner: FakeRunner, git: FakeGit) {
    this.app = app
    this.runner = runner
    this.git = git
  }

  async begin(fields: object = {}): Promise<this> {
    const settings = { 'runs.default_harness': 'fake', 'runs.max_lives': 2, 'runs.back_off_seconds': 0.01, 'mail.notice_seconds': 0 }
    for (const [key, value] of Object.entries(settings)) await this.app.owner.call('setting_update', { key, value })
    await this.app.owner.call('repo_add', { path: '/repo', project_id: await this.app.project() })
    this.epic = (await this.app.owner.call('epic_create', { title: 'Passkeys', description: 'All of it.', max_workers: 2, ...fields })).epic
    return this
  }

  async task(title: string, fields: object = {}) {
    return (await this.app.owner.call('task_create', { epic_id: this.epic.id, title, ...fields })).task
  }

  status = async (task: { id: string }) => (await this.app.owner.call('task_get', { task_id: task.id })).task
  runs = async (task: { id: string }): Promise<Run[]> => (await this.app.owner.call('run_list', { task_id: task.id, limit: 50 })).runs
  jobs = async (task: { id: string }) => (await this.app.owner.call('job_list', { task_id: task.id })).jobs
  lead = () => ({ id: this.epic.lead_task_id as string })

  /** The run of a task that lives now, when there is one. */
  async living(task: { id: string }): Promise<Run | undefined> {
    return (await this.runs(task)).find(({ state }) => state === 'running')
  }

  async started(task: { id: string }, nth = 1): Promise<Run> {
    await until(async () => (await this.runs(task)).length >= nth && (await this.living(task)) !== undefined)
    return (await this.living(task)) as Run
  }

  async ended(task: { id: string }): Promise<void> {
    await until(async () => (await this.jobs(task)).every(({ state }: { state: string }) => state !== 'queued' && state !== 'running'))
  }

  /** With the token that its run was given. */
  as(run: Run): Caller {
    return new Caller(this.app.app, this.runner.kept.get(`${run.id}/token`) as string, run.agent_id, 'agent')
  }

  brief(run: Run): string {
    return this.runner.kept.get(`${run.id}/brief`) as string
  }

  /** Hands in and ends, as a worker does. */
  async handIn(task: { id: string }, nth = 1): Promise<Run> {
    const run = await this.started(task, nth)
    await this.as(run).call('review_request', { summary: 'done' })
    this.runner.exit(run.id)
    await this.ended(task)
    return run
  }

  /** The supervisor has looked and has nothing more to do. */
  async leadEnds(nth = 1): Promise<void> {
    const run = await this.started(this.lead(), nth)
    this.runner.exit(run.id)
    // A letter that it did not read may have started the next one by then.
    const { job_id } = (await this.runs(this.lead())).find(({ id }) => id === run.id) as Run
    await until(async () => !['queued', 'running'].includes((await this.app.owner.call('job_get', { job_id })).job.state))
  }

  /** All that was to be done about what has happened so far is done. */
  async settled(): Promise<void> {
    await this.reconcile()
    await until(async () => {
      const { effects } = await this.app.owner.call('effect_list', { states: ['waiting', 'running'] })
      return effects.every(({ type }: { type: string }) => LATER.includes(type))
    })
    await this.reconcile()
  }

  async reconcile(): Promise<void> {
    const input = { epic_id: this.epic.id }
    const answer = await this.app.app.kernel.invoke({ tool: 'epic_reconcile', input, credential: 'system', surface: 'daemon' })
    expect(answer).toMatchObject({ ok: true })
  }

  letters = async (to: string) => (await this.app.owner.call('mail_inbox', { include_read: true }, { actFor: to })).letters
  events = (type: string): Promise<LoggedEvent[]> => this.app.events({ type })
  agent = async (id: string) =>
    (await this.app.owner.call('agent_list', { limit: 100 })).agents.find((agent: { id: string }) => agent.id === id)
}

const test = base.extend<{ ground: Ground }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  ground: async ({}, use) => {
    const [runner, git] = [new FakeRunner(), new FakeGit()]
    const app = await openTestApp({ ports: { runner, git, harnesses: harnessesOf(fakeHarness()) }, effectTimes: QUICK })
    await use(new Ground(app, runner, git))
    await app.close()
  },
})

describe('a supervisor', () => {
  test('[EP7] is made with the epic, leads it, and waits when it has done its part', async ({ ground }) => {
    const { app } = await ground.begin()
    const { supervisor_id, lead_task_id } = ground.epic
    const run = await ground.started(ground.lead())
    expect(run.agent_id).toBe(supervisor_id)
    expect(await ground.agent(supervisor_id)).toMatchObject({ role: 'supervisor', epic_id: ground.epic.id, state: 'BUSY', managed: true })
    expect(await ground.status(ground.lead())).toMatchObject({
      lead: true,
      title: 'Lead: Passkeys',
      status: 'IN_PROGRESS',
      epic_id: ground.epic.id,
    })
    expect(ground.brief(run)).toMatch(
      /supervisor of the epic E-1[\s\S]*All of it\.[\s\S]*task_create[\s\S]*review_decide[\s\S]*epic_finish/,
    )
    expect(ground.brief(run)).not.toContain('review_request')
    expect(ground.git.branches).toContain(ground.epic.branch)
    const supervisor = ground.as(run)
    const { task } = await supervisor.call('task_create', { title: 'a part' })
    expect((await supervisor.call('epic_get')).tasks).toMatchObject([{ id: task.id }])
    expect(await supervisor.refused('review_request', { summary: 'x' })).toMatchObject({ code: 'CONFLICT' })
    expect(await supervisor.refused('task_close', { task_id: lead_task_id, reason: 'x' })).toMatchObject({ code: 'CONFLICT' })
    expect(await supervisor.refused('task_assign', { task_id: lead_task_id, agent_id: null })).toMatchObject({ code: 'CONFLICT' })
    ground.git.work = { ...ground.git.work, ahead: 2 }
    await ground.leadEnds()
    expect(await ground.jobs(ground.lead())).toMatchObject([{ state: 'succeeded', reason: null }])
    expect(await ground.status(ground.lead())).toMatchObject({ status: 'IN_PROGRESS', attention: 'dependency' })
    expect((await ground.agent(supervisor_id)).state).toBe('IDLE')
    expect((await app.owner.call('review_list', { task_id: lead_task_id })).reviews).toEqual([])
  })

  test('[EP7] is not begun where nobody could be started', async ({ ground }) => {
    const { owner } = ground.app
    await ground.app.project()
    expect(await owner.refused('epic_create', { title: 'x', supervisor: { harness: 'none' } })).toMatchObject({
      code: 'INVALID_INPUT',
      suggestions: ['fake'],
    })
    await owner.call('setting_update', { key: 'runs.default_harness', value: 'fake' })
    expect(await owner.refused('epic_create', { title: 'x' })).toMatchObject({ code: 'RESOURCE_NOT_FOUND', next_tool: 'repo_add' })
    expect((await owner.call('epic_list')).epics).toEqual([])
  })

  test('[EP10] is started once for what was handed in, and not again for what it left', async ({ ground }) => {
    await ground.begin()
    await ground.leadEnds()
    const one = await ground.task('one')
    await ground.settled()
    expect(await ground.runs(ground.lead())).toHaveLength(1)
    await ground.handIn(one)
    const second = await ground.started(ground.lead(), 2)
    expect(ground.brief(second)).toContain(`${one.handle} was handed in.`)
    const finish = { idempotency_key: 'the same in every life' }
    expect(await ground.as(second).refused('epic_finish', finish)).toMatchObject({ code: 'CONFLICT' })
    await ground.leadEnds(2)
    await ground.settled()
    expect(await ground.runs(ground.lead())).toHaveLength(2)
    const two = await ground.task('two')
    await ground.handIn(two)
    const third = await ground.started(ground.lead(), 3)
    for (const task of [one, two]) await ground.as(third).call('review_decide', { task_id: task.id, decision: 'approve' })
    await ground.leadEnds(3)
    // It came to an end while it ran: it is asked once more, to finish.
    const fourth = await ground.started(ground.lead(), 4)
    expect(ground.brief(fourth)).toContain('All its tasks are done.')
    await ground.as(fourth).call('epic_finish', finish)
    await ground.leadEnds(4)
    await ground.settled()
    expect(await ground.runs(ground.lead())).toHaveLength(4)
    expect(await ground.status(ground.lead())).toMatchObject({ attention: 'human', attention_detail: expect.stringContaining('handed in') })
  })

  test('[EP10] [EP11] is started by a letter, once', async ({ ground }) => {
    const { app } = await ground.begin()
    await ground.leadEnds()
    await ground.task('open', { task_type: 'PAIR' })
    await app.owner.call('mail_send', { to_agent_id: ground.epic.supervisor_id, subject: 'Hello', body: 'Also for phones.' })
    const run = await ground.started(ground.lead(), 2)
    expect(ground.brief(run)).toContain('unread letters')
    expect(ground.brief(run)).not.toContain('phones')
    const supervisor = ground.as(run)
    for (const { id } of (await supervisor.call('mail_inbox')).letters) await supervisor.call('mail_read', { mail_id: id })
    await ground.leadEnds(2)
    await ground.settled()
    expect(await ground.runs(ground.lead())).toHaveLength(2)
  })
})

describe('a supervisor that is woken by a letter', () => {
  test('[EP10] also hears what was handed in meanwhile, since it is not started for that again', async ({ ground }) => {
    const { app } = await ground.begin()
    const one = await ground.task('one')
    const worker = await ground.started(one)
    const lead = await ground.started(ground.lead())
    await ground.as(worker).call('review_request', { summary: 'done' })
    await app.owner.call('mail_send', { to_agent_id: ground.epic.supervisor_id, subject: 'Hello', body: 'Also for phones.' })
    await app.app.kernel.invoke({
      tool: 'agent_wake',
      input: { agent_id: ground.epic.supervisor_id, task_id: ground.lead().id },
      credential: 'system',
      surface: 'daemon',
    })
    ground.runner.exit(lead.id)
    const next = await ground.started(ground.lead(), 2)
    expect(ground.brief(next)).toContain(`${one.handle} was handed in.`)
    ground.runner.exit(worker.id)
    await ground.ended(one)
    await ground.leadEnds(2)
    await app.owner.call('mail_send', { to_agent_id: ground.epic.supervisor_id, subject: 'Hello', body: 'And for watches.' })
    const two = await ground.started(ground.lead(), 3)
    expect(ground.brief(two)).toContain('unread letters')
    expect(ground.brief(two)).not.toContain('was handed in.')
  })
})

describe('workers', () => {
  test('[EP8] are started by themselves, so many at a time, in order', async ({ ground }) => {
    await ground.begin()
    const first = await ground.task('first')
    const second = await ground.task('second')
    for (const task of [first, second]) await ground.started(task)
    const waits = await ground.task('waits', { blocked_by: [first.id], priority: 'high' })
    const [third, urgent] = [await ground.task('third'), await ground.task('urgent', { priority: 'high' })]
    const byHand = await ground.task('by hand', { task_type: 'PAIR' })
    await ground.settled()
    for (const task of [waits, third, urgent, byHand]) expect(await ground.runs(task)).toEqual([])
    expect(await ground.status(third)).toMatchObject({ attention: 'queued', attention_detail: expect.stringContaining('one of 2') })
    expect(await ground.status(waits)).toMatchObject({ attention: 'dependency' })
    await ground.handIn(second)
    await ground.started(urgent)
    expect(await ground.runs(third)).toEqual([])
    await ground.handIn(first)
    await ground.started(third)
    await ground.app.owner.call('review_decide', { task_id: first.id, decision: 'approve' })
    await ground.app.owner.call('epic_update', { epic_id: ground.epic.id, max_workers: 3 })
    await ground.started(waits)
    expect(await ground.runs(byHand)).toEqual([])
    const [worker] = await ground.runs(waits)
    expect(await ground.agent(worker?.agent_id as string)).toMatchObject({ role: 'worker', epic_id: ground.epic.id, task_id: waits.id })
    expect((await ground.events('epic.worker_started')).map(({ data }) => data.handle)).toEqual(
      [first, second, urgent, third, waits].map(({ handle }) => handle),
    )
  })

  test('[EP8] of an epic that is not in progress are not started, and later are', async ({ ground }) => {
    await ground.begin({ start: false })
    const task = await ground.task('one')
    await ground.settled()
    expect(await ground.runs(task)).toEqual([])
    await ground.app.owner.call('epic_update', { epic_id: ground.epic.id, state: 'IN_PROGRESS' })
    await ground.started(task)
    await ground.app.owner.call('epic_update', { epic_id: ground.epic.id, state: 'PLANNING' })
    const late = await ground.task('late')
    await ground.settled()
    expect(await ground.runs(late)).toEqual([])
    expect(await ground.living(task)).toBeDefined()
  })

  test('[EP8] are started for what changed while no daemon lived', async ({ ground }) => {
    await ground.begin({ max_workers: 1 })
    const [one, two] = [await ground.task('one'), await ground.task('two')]
    const run = await ground.started(one)
    await ground.as(run).call('review_request', { summary: 'done' })
    await ground.app.reopen(() => ground.runner.exit(run.id))
    await ground.started(two)
  })

  test('[EP8] leave those alone who work in a window of their own', async ({ ground }) => {
    const { app } = await ground.begin({ start: false })
    const task = await ground.task('one')
    await app.worker(task.id)
    await app.owner.call('epic_update', { epic_id: ground.epic.id, state: 'IN_PROGRESS' })
    ground.epic = (await app.owner.call('epic_get', { epic_id: ground.epic.id })).epic
    await ground.started(ground.lead())
    await ground.settled()
    expect(await ground.runs(task)).toEqual([])
  })

  test('[EP8] [EP9] what was sent back goes on first, by the same worker, in the same place', async ({ ground }) => {
    await ground.begin({ max_workers: 1 })
    const [one, two] = [await ground.task('one'), await ground.task('two')]
    const run = await ground.handIn(one)
    const other = await ground.started(two)
    const feedback = 'A wrong passkey is not refused.'
    await ground.app.owner.call('review_decide', { task_id: one.id, decision: 'request_changes', feedback })
    expect(await ground.status(one)).toMatchObject({ status: 'IN_PROGRESS', attention: 'queued' })
    await ground.task('three', { priority: 'high' })
    ground.runner.exit(other.id)
    const again = await ground.started(one, 2)
    expect(again.agent_id).toBe(run.agent_id)
    expect(ground.brief(again)).toMatch(/A wrong passkey is not refused\.[\s\S]*was sent back/)
    expect(new Set(ground.git.added.filter((path) => path.endsWith('-one'))).size).toBe(1)
  })

  test('[EP11] what was sent back says so also to a worker whom the letter about it wakes first', async ({ ground }) => {
    const { app } = await ground.begin()
    const one = await ground.task('one')
    const { agent_id } = await ground.handIn(one)
    await ground.settled()
    // As it is between the decision and the look at the epic that follows it.
    await app.app.engine.write((tx) => sql`UPDATE tasks SET status = 'IN_PROGRESS' WHERE id = ${one.id}`.execute(tables(tx)))
    const input = { agent_id, task_id: one.id }
    await app.app.kernel.invoke({ tool: 'agent_wake', input, credential: 'system', surface: 'daemon' })
    expect(ground.brief(await ground.started(one, 2))).toContain('was sent back')
  })

  test('[EP9] [EP17] that lead an epic and give up are told of to the human, once, with the command that helps', async ({ ground }) => {
    const { owner } = (await ground.begin()).app
    for (const nth of [1, 2]) ground.runner.exit((await ground.started(ground.lead(), nth)).id, 1)
    await ground.ended(ground.lead())
    await until(async () => (await owner.call('mail_inbox')).unread_count > 0)
    await ground.settled()
    const { letters } = await owner.call('mail_inbox')
    expect(letters).toMatchObject([{ from: 'system', subject: 'Supervisor gave up: E-1' }])
    const [, typed] = /`signalbox agent start (\S+)`/.exec(letters[0].body) ?? []
    expect(letters[0].body).not.toContain('agent_start')
    await owner.call('agent_start', { agent_id: typed })
  })

  test('[EP17] that cannot be started to lead are told of to the human, with the command that helps', async ({ ground }) => {
    const { owner } = (await ground.begin()).app
    await ground.leadEnds()
    const project_id = await ground.app.project()
    await owner.call('budget_set', { project_id, turns: 1 })
    const run = await ground.started(await ground.task('one'))
    ground.runner.print(run.id, { type: 'turn_started' }, { type: 'turn_started' })
    await until(async () => (await owner.call('mail_inbox')).unread_count > 0)
    const { letters } = await owner.call('mail_inbox')
    expect(letters).toMatchObject([
      { subject: expect.stringContaining('Cannot start'), body: expect.stringContaining('`signalbox budget get') },
    ])
    expect(letters[0].body).not.toMatch(/budget_get/)
  })

  test('[EP9] that die go on in the same place; one that gives up is told of once', async ({ ground }) => {
    await ground.begin()
    const task = await ground.task('one')
    const first = await ground.started(task)
    await ground.as(first).call('task_note', { task_id: task.id, body: 'The port is 7.' })
    ground.runner.exit(first.id, 1)
    const second = await ground.started(task, 2)
    expect([second.agent_id, second.id === first.id]).toEqual([first.agent_id, false])
    expect(ground.brief(second)).toContain('The port is 7.')
    expect(new Set(ground.git.added.filter((path) => path.endsWith('-one'))).size).toBe(1)
    ground.git.work = { ...ground.git.work, fingerprint: 'changed' }
    ground.runner.exit(second.id, 2)
    await ground.ended(task)
    await until(async () => (await ground.letters(ground.epic.supervisor_id)).length > 0)
    await ground.settled()
    expect(await ground.runs(task)).toHaveLength(2)
    expect(await ground.letters(ground.epic.supervisor_id)).toMatchObject([
      {
        subject: `Worker gave up: ${task.handle}`,
        body: expect.stringMatching(/It died 2 times[\s\S]* with agent_start, close it with task_close/),
      },
    ])
    expect(await ground.status(task)).toMatchObject({ status: 'BACKLOG', attention: 'human' })
    expect((await ground.agent(first.agent_id)).state).toBe('CRASHED')
    await ground.app.owner.call('agent_start', { agent_id: first.agent_id })
    expect((await ground.started(task, 3)).agent_id).toBe(first.agent_id)
  })

  test('[EP11] are not started by a letter when they have handed in or were stopped', async ({ ground }) => {
    await ground.begin()
    const [one, two] = [await ground.task('one'), await ground.task('two')]
    const [handedIn, stopped] = [await ground.handIn(one), await ground.started(two)]
    await ground.app.owner.call('agent_stop', { agent_id: stopped.agent_id })
    await ground.ended(two)
    for (const { agent_id } of [handedIn, stopped])
      await ground.app.owner.call('mail_send', { to_agent_id: agent_id, subject: 'Hello', body: 'There?' })
    await ground.settled()
    expect([(await ground.runs(one)).length, (await ground.runs(two)).length]).toEqual([1, 1])
    expect(await ground.status(one)).toMatchObject({ status: 'REVIEW' })
  })
})

describe('what is wanted of an agent', () => {
  test('[EP12] is another thing than what is observed', async ({ ground }) => {
    const { owner } = (await ground.begin()).app
    const task = await ground.task('one')
    const { agent_id } = await ground.started(task)
    const state = async () => (({ state, desired }) => [state, desired])(await ground.agent(agent_id))
    expect(await state()).toEqual(['BUSY', 'running'])
    expect((await owner.call('agent_start', { agent_id })).message).toContain('already')
    await owner.call('agent_stop', { agent_id })
    await ground.ended(task)
    expect(await state()).toEqual(['STOPPED', 'stopped'])
    expect(await ground.status(task)).toMatchObject({ status: 'BACKLOG' })
    await owner.call('task_update', { task_id: task.id, priority: 'high' })
    await ground.settled()
    expect(await ground.runs(task)).toHaveLength(1)
    await owner.call('agent_start', { agent_id })
    const again = await ground.started(task, 2)
    expect([again.agent_id, ...(await state())]).toEqual([agent_id, 'BUSY', 'running'])
    await ground.as(again).call('task_note', { task_id: task.id, body: 'here again' })
    expect(await ground.as(again).call('agent_me')).toMatchObject({
      epic_id: ground.epic.id,
      task_id: task.id,
      state: 'BUSY',
      worktree: expect.stringContaining('/worktrees/'),
      branch: expect.stringContaining('signalbox/task-'),
      last_active_at: expect.any(String),
    })
    await ground.handIn(task, 2)
    expect(await state()).toEqual(['WAITING_REVIEW', 'running'])
    expect((await owner.call('agent_start', { agent_id })).message).toContain('review')
    expect(await ground.runs(task)).toHaveLength(2)
    const window = await ground.app.agent('worker')
    for (const tool of ['agent_start', 'agent_stop'])
      expect(await owner.refused(tool, { agent_id: window.id })).toMatchObject({ code: 'INVALID_AGENT_STATE' })
    const supervisor = await ground.started(ground.lead())
    expect(await ground.as(supervisor).refused('agent_stop', { agent_id: window.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    await ground.as(supervisor).call('agent_stop', { agent_id })
  })
})

describe('an epic that ends', () => {
  test('[EP13] ends its tasks, and whoever is at work on them', async ({ ground }) => {
    const { owner } = (await ground.begin()).app
    const [one, two] = [await ground.task('one'), await ground.task('two')]
    await ground.started(one)
    await ground.started(ground.lead())
    await ground.handIn(two)
    const pr = async () => (await owner.call('pr_get', { task_id: two.id })).pr.state
    expect(await pr()).toBe('OPEN')
    await owner.call('epic_update', { epic_id: ground.epic.id, state: 'CANCELLED' })
    expect(await pr()).toBe('CLOSED')
    await until(() => ground.runner.living.length === 0)
    for (const task of [one, two, ground.lead()])
      expect(await ground.status(task)).toMatchObject({ status: 'DONE', closed_reason: 'The epic was cancelled.', attention: null })
    await ground.settled()
    expect(ground.runner.living).toEqual([])
    expect(await owner.refused('task_move', { task_id: one.id, status: 'BACKLOG' })).toMatchObject({ code: 'CONFLICT' })
  })

  test('[EP7] is led on a task that nobody moves, and that stays one for an agent', async ({ ground }) => {
    const { owner } = (await ground.begin()).app
    const supervisor = ground.as(await ground.started(ground.lead()))
    for (const caller of [owner, supervisor]) {
      for (const status of ['REVIEW', 'BACKLOG'])
        expect(await caller.refused('task_move', { task_id: ground.lead().id, status })).toMatchObject({ code: 'CONFLICT' })
      expect(await caller.refused('task_update', { task_id: ground.lead().id, task_type: 'PAIR' })).toMatchObject({ code: 'CONFLICT' })
    }
  })
})

describe('what moves it next', () => {
  test('[EP14] is a person, when its supervisor has left what was handed in, or was stopped', async ({ ground }) => {
    const { owner } = (await ground.begin()).app
    await ground.leadEnds()
    const one = await ground.task('one')
    expect(one).toMatchObject({ attention: 'queued' })
    await ground.handIn(one)
    await ground.started(ground.lead(), 2)
    expect(await ground.status(one)).toMatchObject({ attention: 'reviewer' })
    await ground.leadEnds(2)
    await ground.settled()
    expect(await ground.status(one)).toMatchObject({
      attention: 'human',
      attention_detail: expect.stringContaining('ended without a decision'),
    })
    await owner.call('mail_send', { to_agent_id: ground.epic.supervisor_id, subject: 'T-2', body: 'Decide.' })
    await ground.started(ground.lead(), 3)
    expect(await ground.status(one)).toMatchObject({ attention: 'reviewer' })
    await owner.call('agent_stop', { agent_id: ground.epic.supervisor_id })
    await ground.ended(ground.lead())
    expect(await ground.status(one)).toMatchObject({ attention: 'human', attention_detail: expect.stringContaining('was stopped') })
    await owner.call('epic_update', { epic_id: ground.epic.id, state: 'PLANNING' })
    expect(await ground.status(one)).toMatchObject({ attention: 'human', attention_detail: expect.stringContaining('not in progress') })
  })

  test('[EP14] is the next step of the epic, when its supervisor has failed and nothing is left to supervise', async ({ ground }) => {
    const { owner } = (await ground.begin()).app
    const one = await ground.task('one')
    await ground.started(one)
    for (const nth of [1, 2]) ground.runner.exit((await ground.started(ground.lead(), nth)).id, 1)
    await ground.ended(ground.lead())
    expect(await ground.status(ground.lead())).toMatchObject({ attention: 'human', attention_detail: expect.stringContaining('failed') })
    await owner.call('task_close', { task_id: one.id, reason: 'enough' })
    for (const nth of [3, 4]) ground.runner.exit((await ground.started(ground.lead(), nth)).id, 1)
    await ground.ended(ground.lead())
    await ground.settled()
    const lead = () => owner.call('task_get', { task_id: ground.lead().id })
    const steps = [{ tool: 'epic_finish', arguments: { epic_id: ground.epic.handle } }]
    await until(async () => (await lead()).task.attention_detail?.includes('All its tasks are done'))
    expect((await lead()).task).toMatchObject({ attention: 'human', attention_steps: steps })
    expect(await owner.refused('epic_update', { epic_id: ground.epic.id, state: 'COMPLETED' })).toMatchObject({ next_tool: 'epic_finish' })
  })

  test('[EP14] is told of every open task', async ({ ground }) => {
    const { owner } = (await ground.begin({ start: false, max_workers: 1 })).app
    const one = await ground.task('one')
    expect(await ground.status(one)).toMatchObject({ attention: 'human' })
    await owner.call('epic_update', { epic_id: ground.epic.id, state: 'IN_PROGRESS' })
    ground.epic = (await owner.call('epic_get', { epic_id: ground.epic.id })).epic
    await ground.started(one)
    expect(await ground.status(one)).toMatchObject({ attention: 'running' })
    const two = await ground.task('two')
    expect(await ground.status(two)).toMatchObject({ attention: 'queued' })
    await ground.leadEnds()
    expect(await ground.status(ground.lead())).toMatchObject({
      attention: 'dependency',
      attention_detail: expect.stringContaining('2 open tasks'),
    })
    await ground.handIn(one)
    expect(await ground.status(one)).toMatchObject({ attention: 'reviewer' })
    await ground.started(two)
    await ground.started(ground.lead(), 2)
    for (const task of [one, two]) await owner.call('task_close', { task_id: task.id, reason: 'enough' })
    await ground.leadEnds(2)
    await ground.leadEnds(3)
    await ground.settled()
    expect(await ground.status(ground.lead())).toMatchObject({
      attention: 'human',
      attention_detail: expect.stringContaining('All its tasks'),
    })
  })
})
