import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as base, describe, expect, onTestFinished } from 'vitest'
import { EFFECT_TIMES } from '../../kernel/effect.ts'
import { type Git, GitRefusal } from '../../ports/git.ts'
import { type Caller, openTestApp } from '../../testing/app.ts'
import { realGit } from '../../testing/git.ts'
import { deferred, until } from '../../testing/signals.ts'
import { type Work, WorkGround } from '../../testing/work.ts'

/** A real repository, an epic in it, and a supervisor who leads it from a window of their own. */
class Ground extends WorkGround {
  // biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
  epic: any
  supervisor!: Caller

  override async prepare(): Promise<this> {
    await super.prepare()
    const { app } = this
    this.epic = (await app.owner.call('epic_create', { title: 'Passkeys', start: false })).epic
    this.supervisor = await app.agent('supervisor')
    await app.owner.call('epic_update', { epic_id: this.epic.id, supervisor_id: this.supervisor.id })
    return this
  }

  override begun(title = 'Do it', fields: object = {}): Promise<Work> {
    return super.begun(title, { epic_id: this.epic.id, ...fields })
  }

  decide({ task }: Work, decision: string, more: object = {}) {
    return this.supervisor.call('review_decide', { task_id: task.id, decision, ...more })
  }

  async queue(): Promise<string[]> {
    const { queue } = await this.supervisor.call('review_queue')
    return queue.map(({ handle }: { handle: string }) => handle)
  }

  override landed(branch = this.epic.branch): string[] {
    return super.landed(branch)
  }
}

const test = base.extend<{ ground: Ground }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  ground: async ({}, use) => {
    const app = await openTestApp()
    await use(await new Ground(app).prepare())
    await app.close()
  },
})

/** Real git, whose merges wait or fail as the test says. */
async function groundWith(more: (real: Git) => Partial<Git>): Promise<Ground> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-merges-'))
  const real = realGit({ worktrees: join(folder, 'worktrees') })
  const app = await openTestApp({ ports: { git: { ...real, ...more(real) } }, effectTimes: { ...EFFECT_TIMES, backOffMs: 1 } })
  onTestFinished(async () => {
    await app.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return new Ground(app).prepare()
}

describe('the branch of an epic', () => {
  test('[ML11] that somebody deletes is there again with all that was merged, for work that begins and for the next merge', async ({
    ground,
  }) => {
    const { app } = ground
    const [one, two] = [await ground.handedIn('one'), await ground.handedIn('two')]
    const { merge_commit } = await ground.decide(one, 'approve')
    ground.git(ground.top, 'branch', '-D', ground.epic.branch)
    const three = await ground.begun('three')
    expect(existsSync(join(three.path, 'one'))).toBe(true)
    expect(ground.git(ground.top, 'rev-parse', ground.epic.branch)).toBe(merge_commit)
    ground.git(ground.top, 'branch', '-D', ground.epic.branch)
    expect(await ground.decide(two, 'approve')).toMatchObject({ status: 'merged' })
    expect(ground.landed()).toEqual([`${two.task.handle} two`, `${one.task.handle} one`])
    await app.owner.call('task_close', { task_id: three.task.id, reason: 'enough' })
  })
})

describe('the queue', () => {
  test('[V4] is in the order of handing in, whatever is edited meanwhile', async ({ ground }) => {
    const { app } = ground
    const [first, second] = [await ground.begun('first'), await ground.begun('second')]
    for (const work of [second, first]) {
      ground.commit(work.path, `${work.task.handle}.txt`, 'x')
      await ground.handIn(work, 'done')
    }
    expect(await ground.queue()).toEqual([second.task.handle, first.task.handle])
    await app.owner.call('task_update', { task_id: second.task.id, title: 'edited' })
    await app.owner.call('task_note', { task_id: second.task.id, body: 'x' })
    expect(await ground.queue()).toEqual([second.task.handle, first.task.handle])
    await ground.decide(second, 'request_changes', { feedback: 'More tests.' })
    expect(await ground.queue()).toEqual([first.task.handle])
    await ground.handIn(second, 'with tests')
    const { queue } = await ground.supervisor.call('review_queue', { epic_id: ground.epic.id })
    expect(queue).toMatchObject([
      { position: 1, handle: first.task.handle, round: 1, state: 'waiting', summary: 'done' },
      { position: 2, handle: second.task.handle, round: 2, pr_number: 1, branch: expect.stringContaining('signalbox/task-') },
    ])
    const loose = await app.task()
    await app.owner.call('task_move', { task_id: loose.id, status: 'IN_PROGRESS' })
    await app.owner.call('task_move', { task_id: loose.id, status: 'REVIEW' })
    expect(await ground.queue()).not.toContain(loose.handle)
    expect((await app.owner.call('review_queue')).queue.map(({ handle }: { handle: string }) => handle)).toContain(loose.handle)
    const moved = await app.owner.call('review_decide', { task_id: loose.id, decision: 'request_changes', feedback: 'no summary' })
    expect(moved).toMatchObject({ status: 'changes_requested', merged: false })
  })

  test('[V11] is made of pull requests, numbered in their repository', async ({ ground }) => {
    const { app } = ground
    const [one, two] = [await ground.handedIn('one'), await ground.handedIn('two')]
    const pr = async (work: Work) => (await app.owner.call('pr_get', { task_id: work.task.id })).pr
    expect([(await pr(one)).number, (await pr(two)).number]).toEqual([1, 2])
    expect(await pr(one)).toMatchObject({
      state: 'OPEN',
      base: ground.epic.branch,
      title: `${one.task.handle} one`,
      description: 'one is there',
      url: expect.stringMatching(/\/task\/task_/),
    })
    await ground.decide(one, 'request_changes', { feedback: 'again' })
    await ground.handIn(one, 'once more')
    expect(await pr(one)).toMatchObject({ number: 1, description: 'once more' })
    expect(await app.owner.refused('pr_get', { epic_id: ground.epic.id })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect(await app.owner.refused('pr_get', {})).toMatchObject({ code: 'INVALID_INPUT' })
    const { merge_commit } = await ground.decide(one, 'approve')
    expect(await pr(one)).toMatchObject({ state: 'MERGED', merge_commit })
    expect((await app.events({ type: 'pr.opened' })).map(({ data }) => data.number)).toEqual([1, 2])
  })
})

describe('a decision', () => {
  test('[V7] about work without a change says that there was nothing to merge', async ({ ground }) => {
    const work = await ground.begun('nothing')
    await ground.handIn(work, 'it was all there')
    const decided = await ground.decide(work, 'approve')
    expect(decided).toMatchObject({ status: 'merged', merge_commit: null, message: expect.stringContaining('nothing to merge') })
    expect(ground.landed()).toEqual([])
    expect(await ground.decide(await ground.handedIn('one'), 'approve')).toMatchObject({ message: expect.stringContaining('PR merged') })
  })

  test('[V5] is not for those who work, whatever their profile', async ({ ground }) => {
    const { app } = ground
    const work = await ground.handedIn('one')
    const other = await ground.begun('two')
    const approve = { task_id: work.task.id, decision: 'approve' }
    for (const worker of [work.worker, other.worker])
      expect(await app.owner.refused('review_decide', approve, { actFor: worker })).toMatchObject({ code: 'PERMISSION_DENIED' })
    const mighty = await app.agent('worker', { profile: 'maintainer' })
    await app.owner.call('task_assign', { task_id: work.task.id, agent_id: mighty.id })
    expect(await mighty.refused('review_decide', approve)).toMatchObject({ code: 'PERMISSION_DENIED' })
    const orchestrator = await app.agent('orchestrator')
    expect(await orchestrator.refused('review_decide', approve)).toMatchObject({ code: 'PERMISSION_DENIED' })
    await app.owner.call('task_assign', { task_id: work.task.id, agent_id: orchestrator.id })
    expect(await orchestrator.refused('review_decide', approve)).toMatchObject({ code: 'PERMISSION_DENIED' })
    const stranger = await app.agent('supervisor')
    const { epic } = await app.owner.call('epic_create', { title: 'Other', start: false })
    await app.owner.call('epic_update', { epic_id: epic.id, supervisor_id: stranger.id })
    expect(await stranger.refused('review_decide', approve)).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(ground.landed()).toEqual([])
    expect((await app.owner.call('review_decide', approve)).merged).toBe(true)
    expect(await app.owner.refused('review_decide', approve)).toMatchObject({ code: 'INVALID_TRANSITION' })
  })

  test('[V6] that asks for changes leaves row, note and letter', async ({ ground }) => {
    const { app } = ground
    const work = await ground.handedIn('one')
    const incomplete = { task_id: work.task.id, decision: 'request_changes' }
    expect(await ground.supervisor.refused('review_decide', incomplete)).toMatchObject({ code: 'INVALID_INPUT' })
    const feedback = 'Missing error handling'
    expect(await ground.decide(work, 'request_changes', { feedback })).toMatchObject({
      status: 'changes_requested',
      merged: false,
      message: 'Feedback sent to worker. Task returned to IN_PROGRESS.',
    })
    const { task } = await app.owner.call('task_get', { task_id: work.task.id })
    expect(task).toMatchObject({ status: 'IN_PROGRESS', notes: [{ author: ground.supervisor.id, body: feedback }] })
    expect(await ground.letters(work.worker)).toMatchObject([{ from_id: ground.supervisor.id, body: feedback }])
    const { reviews } = await app.owner.call('review_list', { task_id: work.task.id })
    expect(reviews).toMatchObject([{ decision: 'request_changes', feedback, decided_by: ground.supervisor.id, outcome: null }])
    expect(await app.events({ type: 'review.decided' })).toMatchObject([{ actor: ground.supervisor.id, data: { round: 1 } }])
    expect(ground.landed()).toEqual([])
  })

  test('[V7] that approves merges what was approved, and then it is done', async ({ ground }) => {
    const { app } = ground
    const work = await ground.handedIn('one.txt')
    writeFileSync(join(work.path, 'draft.txt'), 'not committed')
    const approved = await ground.decide(work, 'approve')
    expect(approved).toMatchObject({ status: 'merged', merged: true, conflicts: [], rebase_requests: 0 })
    expect(approved.message).toBe('PR merged successfully. 0 rebase requests sent.')
    expect(approved.merge_commit).toBe(ground.git(ground.top, 'rev-parse', ground.epic.branch))
    expect(ground.landed()).toEqual([`${work.task.handle} one.txt`])
    expect(ground.git(ground.top, 'ls-tree', '--name-only', ground.epic.branch).split('\n')).toEqual(['a.txt', 'one.txt'])
    expect((await app.owner.call('task_get', { task_id: work.task.id })).task).toMatchObject({ status: 'DONE', closed_reason: null })
    expect(ground.git(ground.top, 'status', '--porcelain')).toBe('')
    expect(existsSync(join(ground.top, 'one.txt'))).toBe(false)
    const loose = await app.task()
    await app.owner.call('task_move', { task_id: loose.id, status: 'IN_PROGRESS' })
    await app.owner.call('task_move', { task_id: loose.id, status: 'REVIEW' })
    const elsewhere = { task_id: loose.id, decision: 'approve' }
    expect(await app.owner.refused('review_decide', elsewhere)).toMatchObject({ code: 'CONFLICT' })
  })

  base('[V7] tells truly what is not merged yet, and what was committed later stays out', async () => {
    const [begun, go] = [deferred(), deferred()]
    const ground = await groundWith((real) => ({
      build: async (build) => {
        begun.resolve()
        await go.promise
        return real.build(build)
      },
    }))
    const { app } = ground
    // The merge of the first keeps that of the second waiting in line.
    const [first, work] = [await ground.handedIn('first.txt'), await ground.handedIn('one.txt')]
    const approve = { task_id: work.task.id, decision: 'approve' }
    await ground.supervisor.call('review_decide', { task_id: first.task.id, decision: 'approve' }, { holdMs: 1 })
    await begun.promise
    const pending = await ground.supervisor.call('review_decide', approve, { holdMs: 1 })
    expect(pending).toMatchObject({ status: 'pending', merged: false, merge_commit: null, resume: true })
    expect((await ground.supervisor.call('review_queue')).queue).toMatchObject([{ state: 'merging' }, { state: 'merging' }])
    expect((await app.owner.call('task_get', { task_id: work.task.id })).task.attention).toBe('merge')
    const changes = { task_id: work.task.id, decision: 'request_changes', feedback: 'x' }
    expect(await ground.supervisor.refused('review_decide', changes)).toMatchObject({ code: 'CONFLICT' })
    ground.commit(work.path, 'late.txt', 'nobody has seen it')
    const again = await ground.supervisor.call('review_decide', approve, { holdMs: 1 })
    expect(again).toMatchObject({ status: 'pending', review_id: pending.review_id })
    go.resolve()
    await until(async () => (await app.events({ type: 'merge.landed' })).length === 2)
    expect(ground.git(ground.top, 'ls-tree', '--name-only', ground.epic.branch).split('\n')).toEqual(['a.txt', 'first.txt', 'one.txt'])
    expect(ground.landed()).toHaveLength(2)
  })

  base('[ML14] has landed, whatever keeps the branch from following', async () => {
    const words = `no room for ${'\u{1f600}'.repeat(3)}\ud83d`
    const ground = await groundWith(() => ({ follow: () => Promise.reject(new GitRefusal('failed', words)) }))
    expect(await ground.decide(await ground.handedIn('one.txt'), 'approve')).toMatchObject({ status: 'merged' })
    const [line] = (await ground.app.owner.call('merge_status', { repo_id: ground.repo })).lines
    expect(line).toMatchObject({ behind: 1, behind_reason: expect.stringContaining('no room for') })
  })

  base('[ML15] has landed, also when somebody takes it out of the line in the same moment', async () => {
    let takeOut = async () => {}
    const ground = await groundWith((real) => ({
      land: async (...line) => {
        await takeOut()
        return real.land(...line)
      },
    }))
    const work = await ground.handedIn('one.txt')
    takeOut = () => ground.app.owner.call('merge_cancel', { task_id: work.task.id })
    await ground.supervisor.call('review_decide', { task_id: work.task.id, decision: 'approve' }, { holdMs: 1 })
    await until(async () => (await ground.app.events({ type: 'merge.landed' })).length === 1)
    expect((await ground.app.owner.call('task_get', { task_id: work.task.id })).task.status).toBe('DONE')
    expect((await ground.app.owner.call('merge_status', { task_id: work.task.id })).lines[0].ended).toMatchObject([{ state: 'landed' }])
  })

  test('[V8] of what does not fit any more sends it back with the files', async ({ ground }) => {
    const { app } = ground
    const [one, two] = [await ground.handedIn('same.txt', 'one\n'), await ground.handedIn('same.txt', 'two\n')]
    await ground.decide(one, 'approve')
    expect(await ground.decide(two, 'approve')).toMatchObject({ status: 'conflict', merged: false, conflicts: ['same.txt'], log: null })
    const { task } = await app.owner.call('task_get', { task_id: two.task.id })
    expect(task.status).toBe('IN_PROGRESS')
    expect(task.notes.at(-1).body).toContain('same.txt')
    const letters = await ground.letters(two.worker)
    expect(letters.map(({ subject }) => subject).sort()).toEqual([`Conflict: ${two.task.handle}`, 'Rebase Required'])
    ground.git(two.path, 'merge', '-q', '-X', 'ours', '--no-edit', ground.epic.branch)
    await ground.handIn(two, 'resolved')
    expect(await ground.decide(two, 'approve')).toMatchObject({ status: 'merged' })
    expect(ground.git(ground.top, 'show', `${ground.epic.branch}:same.txt`)).toBe('two')
  })

  base('[V8] that git will not carry out is said, and can be made again', async () => {
    const broken = { on: true }
    const ground = await groundWith((real) => ({
      build: (build) => real.build(broken.on ? { ...build, commit: 'f'.repeat(40) } : build),
    }))
    const { app } = ground
    const work = await ground.handedIn('one.txt')
    expect(await ground.decide(work, 'approve')).toMatchObject({
      status: 'stuck',
      merged: false,
      message: expect.stringContaining('no commit'),
    })
    expect((await ground.supervisor.call('review_queue')).queue).toMatchObject([
      { state: 'stuck', reason: expect.stringContaining('no commit') },
    ])
    expect((await app.owner.call('task_get', { task_id: work.task.id })).task).toMatchObject({ status: 'REVIEW', attention: 'human' })
    broken.on = false
    expect(await ground.decide(work, 'approve')).toMatchObject({ status: 'merged' })
  })

  base('[V9] that is cut off after its merge is on the branch once, and done once', async () => {
    const cut = deferred()
    let builds = 0
    const ground = await groundWith((real) => ({
      build: async (build) => {
        builds++
        return real.build(build)
      },
      land: async (...which) => {
        await real.land(...which)
        cut.resolve()
        throw new Error('killed after the merge and before anybody was told')
      },
    }))
    const { app } = ground
    const [work, other] = [await ground.handedIn('one.txt'), await ground.handedIn('two.txt')]
    expect(await ground.decide(work, 'approve')).toMatchObject({ status: 'merged', rebase_requests: 1 })
    await cut.promise
    expect(builds).toBe(2)
    expect(ground.landed()).toEqual([`${work.task.handle} one.txt`])
    expect(await app.events({ type: 'merge.landed' })).toHaveLength(1)
    const done = (await app.events({ type: 'task.moved' })).filter(({ data }) => data.to === 'DONE')
    expect(done).toHaveLength(1)
    expect(await ground.letters(other.worker)).toHaveLength(1)
  })

  test('[V10] that lands is told to those whose pull requests are open, each time, and so many letters are counted', async ({ ground }) => {
    const { app } = ground
    const [first, second, reviewed, sentBack] = [
      await ground.handedIn('one'),
      await ground.handedIn('two'),
      await ground.handedIn('three'),
      await ground.handedIn('four'),
    ]
    const running = await ground.begun('five')
    await app.owner.call('task_create', { epic_id: ground.epic.id, title: 'not begun' })
    await ground.decide(sentBack, 'request_changes', { feedback: 'More.' })
    const told = async ({ worker }: Work) => (await ground.letters(worker)).filter(({ subject }) => subject === 'Rebase Required')
    expect(await ground.decide(first, 'approve')).toMatchObject({
      rebase_requests: 3,
      message: 'PR merged successfully. 3 rebase requests sent.',
    })
    for (const work of [second, reviewed, sentBack])
      expect(await told(work)).toMatchObject([{ from_id: 'system', body: expect.stringContaining(ground.epic.branch) }])
    for (const work of [first, running]) expect(await told(work)).toEqual([])
    expect(await ground.decide(second, 'approve')).toMatchObject({ rebase_requests: 2 })
    for (const work of [reviewed, sentBack])
      expect(await told(work)).toMatchObject([second, first].map(({ task }) => ({ body: expect.stringContaining(`${task.handle} (`) })))
    expect(await told(second)).toHaveLength(1)
  })

  base('[V10] that lands is not told to those who are in the line: they are merged with it by themselves', async () => {
    const both = deferred()
    const ground = await groundWith((real) => ({ build: async (build) => both.promise.then(() => real.build(build)) }))
    const [first, second, waiting] = [await ground.handedIn('one'), await ground.handedIn('two'), await ground.handedIn('three')]
    const approved = [ground.decide(first, 'approve'), ground.decide(second, 'approve')]
    await until(async () => (await ground.app.events({ type: 'review.decided' })).length === 2)
    both.resolve()
    expect((await Promise.all(approved)).map(({ rebase_requests }) => rebase_requests)).toEqual([1, 1])
    for (const { worker } of [first, second]) expect(await ground.letters(worker)).toEqual([])
    expect(await ground.letters(waiting.worker)).toHaveLength(2)
  })
})

describe('the difference', () => {
  test('[W11] of work in an epic is its own, also when it took over what others did', async ({ ground }) => {
    const [landing, work] = [await ground.handedIn('theirs.txt'), await ground.begun('mine')]
    ground.commit(work.path, 'mine.txt', 'x\n')
    const files = async () =>
      (await ground.supervisor.call('diff_get', { task_id: work.task.id })).files.map(({ path }: { path: string }) => path)
    await ground.decide(landing, 'approve')
    expect(await files()).toEqual(['mine.txt'])
    ground.git(work.path, 'merge', '-q', '--no-edit', ground.epic.branch)
    expect(existsSync(join(work.path, 'theirs.txt'))).toBe(true)
    expect(await files()).toEqual(['mine.txt'])
    writeFileSync(join(work.path, 'draft.txt'), 'not committed')
    expect(await files()).toEqual(['draft.txt', 'mine.txt'])
  })
})

describe('what moves it next', () => {
  test('[V4] is whoever leads the epic, and without one a person', async ({ ground }) => {
    const { app } = ground
    const work = await ground.handedIn('one')
    const attention = async () => (await app.owner.call('task_get', { task_id: work.task.id })).task.attention
    expect(await attention()).toBe('reviewer')
  })
})

describe('an epic', () => {
  test('[EP6] is handed in when all is done, once, and ended by a person', async ({ ground }) => {
    const { app, supervisor, epic } = ground
    expect(await supervisor.refused('epic_finish')).toMatchObject({ code: 'INVALID_TRANSITION' })
    const [one, two] = [await ground.handedIn('one'), await ground.handedIn('two')]
    await app.owner.call('epic_update', { epic_id: epic.id, state: 'IN_PROGRESS' })
    await ground.decide(one, 'approve')
    expect(await supervisor.refused('epic_finish')).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining(`${two.task.handle} (REVIEW)`),
    })
    await ground.decide(two, 'approve')
    const finished = await supervisor.call('epic_finish', { title: '[Epic] All of it' })
    expect(finished).toMatchObject({ epic_id: epic.id, pr_number: 3, state: 'REVIEW', pr_url: expect.stringMatching(/\/epic\/epic_/) })
    expect(await supervisor.call('epic_finish')).toMatchObject({ pr_id: finished.pr_id, message: expect.stringContaining('before') })
    const { letters } = await app.owner.call('mail_inbox')
    expect(letters).toMatchObject([{ subject: 'Epic ready: Passkeys', from_id: supervisor.id, body: expect.stringContaining(epic.branch) }])
    const { pr } = await app.owner.call('pr_get', { epic_id: epic.id })
    expect(pr).toMatchObject({ head: epic.branch, base: 'main', state: 'OPEN', title: '[Epic] All of it', task_id: null })
    expect(ground.git(ground.top, 'rev-list', '--count', 'main')).toBe('1')
    expect(await supervisor.refused('epic_update', { epic_id: epic.id, state: 'COMPLETED' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await app.owner.refused('task_create', { epic_id: epic.id, title: 'late' })).toMatchObject({ code: 'CONFLICT' })
    ground.git(ground.top, 'merge', '-q', '--ff-only', epic.branch)
    await app.owner.call('epic_update', { epic_id: epic.id, state: 'COMPLETED' })
    expect((await app.owner.call('epic_get', { epic_id: epic.id })).epic.completed_at).not.toBeNull()
    expect((await app.owner.call('pr_get', { epic_id: epic.id })).pr.state).toBe('MERGED')
  })

  test('[EP6] says what was merged, and what was closed instead', async ({ ground }) => {
    const { app, supervisor, epic } = ground
    const become = (state: string) => app.owner.call('epic_update', { epic_id: epic.id, state })
    const close = (task_id: string, reason: string) => app.owner.call('task_close', { task_id, reason })
    const first = (await app.owner.call('task_create', { epic_id: epic.id, title: 'by hand', task_type: 'PAIR' })).task
    await close(first.id, 'not wanted')
    await become('IN_PROGRESS')
    expect(await supervisor.refused('epic_finish')).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('was merged') })
    await become('PLANNING')
    const [one, two] = [await ground.handedIn('one'), await ground.begun('two')]
    await close(two.task.id, 'too late')
    await ground.decide(one, 'approve')
    await become('IN_PROGRESS')
    await supervisor.call('epic_finish')
    const [letter] = (await app.owner.call('mail_inbox')).letters
    expect(letter.body).toContain(`1 of 3 tasks of ${epic.handle}`)
    expect(letter.body).toContain(`Closed without a merge: ${first.handle} (not wanted), ${two.task.handle} (too late).`)
  })
})
