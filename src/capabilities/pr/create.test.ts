import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test as base, describe, expect } from 'vitest'
import { Caller, openTestApp } from '../../testing/app.ts'
import { FakeRunner } from '../../testing/fakes/runs.ts'
import { until } from '../../testing/signals.ts'
import { type Work, WorkGround } from '../../testing/work.ts'

const PR = { title: 'Log in with a passkey', description: 'A wrong one is refused.' }

/** Agents are played; what they do is in a real repository. */
class Ground extends WorkGround {
  readonly runner: FakeRunner

  constructor(app: WorkGround['app'], runner: FakeRunner) {
    super(app)
    this.runner = runner
  }

  async set(key: string, value: unknown): Promise<void> {
    await this.app.owner.call('setting_update', { key, value })
  }

  create({ worker }: Work, more: object = {}) {
    return this.app.owner.call('pr_create', { ...PR, ...more }, { actFor: worker })
  }

  refused({ worker }: Work, more: object = {}) {
    return this.app.owner.refused('pr_create', { ...PR, ...more }, { actFor: worker })
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
  async get({ task }: Work): Promise<any> {
    return (await this.app.owner.call('task_get', { task_id: task.id })).task
  }

  // biome-ignore lint/suspicious/noExplicitAny: see above
  async rounds({ task }: Work): Promise<any[]> {
    return (await this.app.owner.call('review_list', { task_id: task.id })).reviews
  }

  // biome-ignore lint/suspicious/noExplicitAny: see above
  async pr({ task }: Work): Promise<any> {
    return (await this.app.owner.call('pr_get', { task_id: task.id })).pr
  }

  /** Who reads its last round, and runs. */
  async reviewer(work: Work): Promise<Caller & { run: string }> {
    await until(async () => (await this.rounds(work)).at(-1)?.reviewer_task_id)
    const hidden = (await this.rounds(work)).at(-1)?.reviewer_task_id
    const runs = async () => (await this.app.owner.call('run_list', { task_id: hidden })).runs
    await until(async () => (await runs())[0]?.state === 'running')
    const [run] = await runs()
    const secret = this.runner.kept.get(`${run.id}/token`) as string
    return Object.assign(new Caller(this.app.app, secret, run.agent_id, ''), { run: run.id })
  }

  /** Sent back by a person as often as it may be handed in. */
  async atLimit(): Promise<Work> {
    await this.set('review.max_iterations', 1)
    const work = await this.handedIn('b.txt')
    await this.app.owner.call('review_decide', { task_id: work.task.id, decision: 'request_changes', feedback: 'More.' })
    return work
  }
}

const test = base.extend<{ ground: Ground }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  ground: async ({}, use) => {
    const runner = new FakeRunner()
    const app = await openTestApp({ ports: { runner } })
    await use(await new Ground(app, runner).prepare())
    await app.close()
  },
})

describe('a pull request', () => {
  test('[PR1] of a worker is its work, handed in under its title', async ({ ground }) => {
    const work = await ground.begun()
    const head = ground.commit(work.path, 'b.txt', 'x\n')
    const branch = ground.git(work.path, 'branch', '--show-current')
    const answer = await ground.create(work)
    expect(answer).toEqual({
      pr_id: expect.stringMatching(/^pr_/),
      pr_number: 1,
      pr_url: expect.stringMatching(`/task/${work.task.id}$`),
      branch,
      base: 'main',
      task_id: work.task.id,
      review_id: expect.any(String),
      status: 'in_review',
      message: 'It waits for its review.',
    })
    expect(await ground.get(work)).toMatchObject({ status: 'REVIEW' })
    expect(await ground.rounds(work)).toMatchObject([{ round: 1, summary: PR.description, handed_in: head, reader: null }])
    expect(await ground.pr(work)).toMatchObject({ number: 1, ...PR, head: branch, base: 'main', state: 'OPEN' })
    expect(await ground.refused(work)).toMatchObject({ code: 'INVALID_TRANSITION' })
    await ground.app.owner.call('review_decide', { task_id: work.task.id, decision: 'request_changes', feedback: 'More.' })
    expect(await ground.create(work, { title: 'Again' })).toMatchObject({ pr_number: 1, pr_id: answer.pr_id })
    expect(await ground.pr(work)).toMatchObject({ number: 1, title: 'Again' })
  })

  test('[PR1] that would be empty, or leaves files behind, is refused, and the task stays where it was', async ({ ground }) => {
    const work = await ground.begun()
    const stays = async () => {
      expect(await ground.get(work)).toMatchObject({ status: 'IN_PROGRESS' })
      expect(await ground.rounds(work)).toEqual([])
      expect(await ground.app.events({ type: 'pr.opened' })).toEqual([])
    }
    expect(await ground.refused(work)).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('would be empty'),
      hint: expect.stringContaining('Commit the work'),
    })
    await stays()
    ground.commit(work.path, 'b.txt', 'x\n')
    ground.git(work.path, 'rm', '-q', 'b.txt')
    ground.git(work.path, 'commit', '-q', '-m', 'back')
    expect(await ground.refused(work)).toMatchObject({ message: expect.stringContaining('would be empty') })
    writeFileSync(join(work.path, 'c.txt'), 'x')
    expect(await ground.refused(work)).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('One file') })
    await stays()
    ground.commit(work.path, 'c.txt', 'x')
    const denied = await ground.refused(work, { base_branch: 'nowhere' })
    expect(denied).toMatchObject({ code: 'INVALID_INPUT', message: expect.stringContaining('nowhere'), suggestions: ['main'] })
    await stays()
  })

  test('[PR1] is of nobody else', async ({ ground }) => {
    const work = await ground.begun()
    ground.commit(work.path, 'b.txt', 'x\n')
    const { app } = ground
    const task_id = work.task.id
    for (const role of ['worker', 'planner', 'reviewer', 'supervisor'])
      expect(await (await app.agent(role)).refused('pr_create', { ...PR, task_id }), role).toMatchObject({ code: 'PERMISSION_DENIED' })
    const other = await ground.begun('other')
    expect(await ground.refused(other, { task_id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await (await app.agent('worker')).refused('pr_create', PR)).toMatchObject({ code: 'INVALID_INPUT' })
    const bare = await app.task()
    await app.owner.call('task_move', { task_id: bare.id, status: 'IN_PROGRESS' })
    expect(await app.owner.refused('pr_create', { ...PR, task_id: bare.id })).toMatchObject({ code: 'CONFLICT' })
    expect(await ground.get(work)).toMatchObject({ status: 'IN_PROGRESS' })
  })

  test('[PR2] at the limit waits for a person: nobody else reads it or decides', async ({ ground }) => {
    const { app } = ground
    const work = await ground.atLimit()
    const asked = { task_id: work.task.id, summary: 'x' }
    expect(await app.owner.refused('review_request', asked, { actFor: work.worker })).toMatchObject({ code: 'REVIEW_LIMIT_EXCEEDED' })
    await ground.set('review.harness', 'fake')
    expect(await ground.create(work)).toMatchObject({ pr_number: 1, status: 'waits_for_human' })
    expect(await ground.rounds(work)).toMatchObject([{ refused: 1 }, { round: 2, reader: 'human', decision: null }])
    expect(await ground.get(work)).toMatchObject({ status: 'REVIEW', attention: 'human' })
    expect((await app.owner.call('mail_inbox')).letters).toMatchObject([{ subject: `Pull request waits for you: ${work.task.handle}` }])
    await app.reopen()
    const decision = { task_id: work.task.id, decision: 'request_changes', feedback: 'Once more.' }
    expect(await app.owner.refused('review_decide', decision, { actFor: work.worker })).toMatchObject({ code: 'PERMISSION_DENIED' })
    await app.owner.call('review_decide', decision)
    expect(await app.owner.refused('review_request', asked, { actFor: work.worker })).toMatchObject({
      code: 'REVIEW_LIMIT_EXCEEDED',
      details: { current_iteration: 1, max_iterations: 1 },
    })
    expect(await ground.create(work)).toMatchObject({ status: 'waits_for_human' })
    expect(await app.owner.call('review_decide', { task_id: work.task.id, decision: 'approve' })).toMatchObject({ merged: true })
    expect(await ground.pr(work)).toMatchObject({ state: 'MERGED' })
    expect(await app.events({ type: 'reviewer.started' })).toEqual([])
  })

  test('[PR2] is not even for the supervisor of its epic', async ({ ground }) => {
    const { app } = ground
    const { epic } = await app.owner.call('epic_create', { title: 'Passkeys', start: false })
    const supervisor = await app.agent('supervisor')
    await app.owner.call('epic_update', { epic_id: epic.id, supervisor_id: supervisor.id })
    await ground.set('review.max_iterations', 1)
    const work = await ground.handedIn('b.txt', 'x\n', { epic_id: epic.id })
    const decision = { task_id: work.task.id, decision: 'request_changes', feedback: 'More.' }
    await supervisor.call('review_decide', decision)
    expect(await ground.create(work)).toMatchObject({ status: 'waits_for_human', base: epic.branch })
    expect(await supervisor.refused('review_decide', decision)).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await ground.get(work)).toMatchObject({ attention: 'human' })
  })

  test('[PR3] of the reviewer is its approval, of what it has read and nothing later', async ({ ground }) => {
    await ground.set('review.harness', 'fake')
    const work = await ground.handedIn('b.txt')
    const reviewer = await ground.reviewer(work)
    const other = await ground.handedIn('c.txt')
    expect(await reviewer.refused('pr_create', { ...PR, task_id: other.task.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await reviewer.refused('pr_create', { ...PR, base_branch: 'other' })).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await ground.rounds(work)).toMatchObject([{ decision: null }])
    ground.commit(work.path, 'late.txt', 'slipped in')
    expect(await reviewer.call('pr_create', PR)).toMatchObject({ pr_number: 1, status: 'approved', task_id: work.task.id })
    await until(async () => (await ground.get(work)).status === 'DONE')
    expect(ground.git(ground.top, 'ls-tree', '--name-only', 'main').split('\n')).toEqual(['a.txt', 'b.txt'])
    expect(await ground.rounds(work)).toMatchObject([{ decision: 'approve', decided_by: reviewer.id, outcome: 'merged' }])
    expect(await ground.pr(work)).toMatchObject({ number: 1, ...PR, state: 'MERGED' })
    ground.runner.exit(reviewer.run, 0)
    await until(async () => (await ground.app.events({ type: 'reviewer.ended' })).length === 1)
  })

  test('[PR4] is merged into the branch that its worker names; of an epic into that of the epic', async ({ ground }) => {
    const { app } = ground
    ground.git(ground.top, 'branch', 'release')
    const work = await ground.begun()
    ground.commit(work.path, 'b.txt', 'x\n')
    const other = await ground.begun('of another')
    for (const { path } of [work, other]) {
      const branch = ground.git(path, 'branch', '--show-current')
      expect(await ground.refused(work, { base_branch: branch })).toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringContaining(branch),
      })
    }
    expect(await ground.create(work, { base_branch: 'release' })).toMatchObject({ base: 'release' })
    expect(await app.owner.call('review_decide', { task_id: work.task.id, decision: 'approve' })).toMatchObject({ merged: true })
    const files = (branch: string) => ground.git(ground.top, 'ls-tree', '--name-only', branch).split('\n')
    expect([files('release'), files('main')]).toEqual([['a.txt', 'b.txt'], ['a.txt']])
    const { epic } = await app.owner.call('epic_create', { title: 'Passkeys', start: false })
    const part = await ground.begun('part', { epic_id: epic.id })
    ground.commit(part.path, 'c.txt', 'x\n')
    expect(await ground.refused(part, { base_branch: 'release' })).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining(epic.branch),
    })
    expect(await ground.create(part, { base_branch: epic.branch })).toMatchObject({ base: epic.branch })
  })
})
