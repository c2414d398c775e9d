import { describe, expect, onTestFinished } from 'vitest'
import { type Caller, openTestApp, type TestApp, test } from '../../testing/app.ts'
import { FakeGit } from '../../testing/fakes/git.ts'
import { mergeGround } from '../../testing/merge-ground.ts'
import { until } from '../../testing/signals.ts'
import { WorkGround } from '../../testing/work.ts'

describe('handing in work', () => {
  test('[V1] moves the own task to REVIEW and keeps the summary of each round', async ({ app }) => {
    const task = await app.task()
    const worker = await app.worker(task.id)
    await worker.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    expect(await worker.call('review_request', { summary: 'done' })).toMatchObject({
      status: 'REVIEW',
      review: { round: 1, requested_by: worker.id },
    })
    expect((await app.owner.call('task_get', { task_id: task.id })).task.status).toBe('REVIEW')
    await app.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    await worker.call('review_request', { task_id: task.handle, summary: 'again', reviewer_prompt: 'Look at the tests.' })
    expect(await app.owner.call('review_list', { task_id: task.id })).toMatchObject({
      reviews: [
        { round: 1, summary: 'done', reviewer_prompt: null },
        { round: 2, summary: 'again', reviewer_prompt: 'Look at the tests.' },
      ],
    })
    expect((await app.events({ type: 'review.requested' })).map((event) => event.data.round)).toEqual([1, 2])
  })

  test("[V2] is refused for what is not IN_PROGRESS, for nobody's task and for another's", async ({ app }) => {
    const [task, other] = [await app.task(), await app.task()]
    const worker = await app.worker(task.id)
    expect(await worker.refused('review_request', { summary: 'x' })).toMatchObject({ code: 'INVALID_TRANSITION' })
    expect(await worker.refused('review_request', { task_id: other.id, summary: 'x' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await app.owner.refused('review_request', { summary: 'x' })).toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('[V3] is refused while files are not committed, unless they may stay', async () => {
    const git = new FakeGit()
    const app = await openTestApp({ ports: { git } })
    onTestFinished(() => app.close())
    await app.owner.call('repo_add', { path: '/repo', project_id: await app.project() })
    const task = await app.task()
    await app.owner.call('job_submit', { task_id: task.id, action: 'start_agent', harness: 'fake' })
    const runs = async () => (await app.owner.call('run_list', { task_id: task.id })).runs as { state: string }[]
    await until(async () => (await runs())[0]?.state === 'running')
    git.work = { ...git.work, dirty: 2 }
    const handedIn = { task_id: task.id, summary: 'x' }
    expect(await app.owner.refused('review_request', handedIn)).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('2 files'),
    })
    expect((await app.owner.call('task_get', { task_id: task.id })).task.status).toBe('IN_PROGRESS')
    expect(await app.owner.call('review_request', { ...handedIn, leave_uncommitted: true })).toMatchObject({ status: 'REVIEW' })
  })
})

describe('a reviewer agent', () => {
  const asked = { summary: 'done', reviewer_agent: true }

  test('[V30] starts one where the settings name none, and tells of it when it is there', async ({ app }) => {
    const ground = await new WorkGround(app).prepare()
    await app.owner.call('setting_update', { key: 'runs.default_harness', value: 'fake' })
    const work = await ground.begun()
    const head = ground.commit(work.path, 'b.txt', 'x\n')
    const { reviewer, branch, review } = await app.owner.call('review_request', asked, { actFor: work.worker })
    expect(branch).toBe(ground.git(work.path, 'branch', '--show-current'))
    expect(review).toMatchObject({ round: 1, reader: 'agent' })
    expect(reviewer).toMatchObject({ agent_id: expect.stringMatching(/^agent_/), state: 'running', reason: null })
    expect(ground.git(reviewer.worktree_path, 'rev-parse', 'HEAD')).toBe(head)
    expect((await app.owner.call('task_get', { task_id: reviewer.session_name })).task.id).toBe(reviewer.task_id)
    const { runs } = await app.owner.call('run_list', { task_id: reviewer.task_id })
    expect(runs).toMatchObject([{ agent_id: reviewer.agent_id, state: 'running' }])
  })

  test('[V30] is refused where none could be started, before anything is handed in', async ({ app }) => {
    const ground = await new WorkGround(app).prepare()
    await app.owner.call('setting_update', { key: 'runs.default_harness', value: 'nobody' })
    const work = await ground.begun()
    ground.commit(work.path, 'b.txt', 'x\n')
    expect(await app.owner.refused('review_request', asked, { actFor: work.worker })).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('nobody'),
    })
    await app.owner.call('setting_update', { key: 'runs.default_harness', value: 'fake' })
    const bare = await app.task()
    await app.owner.call('task_move', { task_id: bare.id, status: 'IN_PROGRESS' })
    expect(await app.owner.refused('review_request', { ...asked, task_id: bare.id })).toMatchObject({ code: 'CONFLICT' })
    expect(await app.owner.call('review_list', { task_id: work.task.id })).toMatchObject({ reviews: [] })
    expect((await app.owner.call('task_get', { task_id: work.task.id })).task.status).toBe('IN_PROGRESS')
  })

  test('[V30] that is still queued is told with the path where its worktree will be', async ({ app }) => {
    const ground = await new WorkGround(app).prepare()
    const set = (key: string, value: unknown) => app.owner.call('setting_update', { key, value })
    await set('runs.default_harness', 'fake')
    await set('runs.linger_seconds', 600)
    await set('runs.max_per_project', 1)
    const work = await ground.begun()
    ground.commit(work.path, 'b.txt', 'x\n')
    const asked = { summary: 'done', reviewer_agent: true, idempotency_key: 'once' }
    const ask = () => app.owner.call('review_request', asked, { actFor: work.worker, holdMs: 1 })
    await ask()
    await until(async () => (await app.events({ type: 'reviewer.started' })).length === 1)
    const { reviewer } = await ask()
    expect(reviewer).toMatchObject({ state: 'starting', worktree_path: expect.any(String) })
    await set('runs.max_per_project', 2)
    const made = async () => (await app.owner.call('work_get', { task_id: reviewer.task_id })).work
    await until(async () => (await made()).state === 'made')
    expect((await made()).path).toBe(reviewer.worktree_path)
  })
})

describe('the rounds of a task', () => {
  /** Handed in, and taken back by hand: nobody has decided about it. */
  async function round(app: TestApp, worker: Caller, task: { id: string }): Promise<void> {
    await worker.call('review_request', { summary: 'done' })
    await app.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
  }

  async function begun(app: TestApp) {
    const task = await app.task()
    const worker = await app.worker(task.id)
    await worker.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    return { task, worker }
  }

  test('[V12] are as many as the setting says, whoever works on it: the next one is refused, as documented', async ({ app }) => {
    const { task, worker } = await begun(app)
    for (let n = 0; n < 3; n++) await round(app, worker, task)
    expect(await worker.refused('review_request', { summary: 'once more' })).toEqual({
      code: 'REVIEW_LIMIT_EXCEEDED',
      message: `Maximum review iterations (3) reached for agent ${worker.handle}`,
      hint: 'Consider creating PR or abandoning.',
      suggestions: [
        'Create pull request with current work',
        'Abandon this approach and try different solution',
        'Manually review and fix issues before requesting review',
      ],
      details: { current_iteration: 3, max_iterations: 3 },
    })
    expect((await app.owner.call('task_get', { task_id: task.id })).task.status).toBe('IN_PROGRESS')
    const another = await app.worker(task.id)
    expect(await another.refused('review_request', { summary: 'x' })).toMatchObject({ code: 'REVIEW_LIMIT_EXCEEDED' })
    await app.owner.call('setting_update', { key: 'review.max_iterations', value: 4 })
    expect(await another.call('review_request', { summary: 'x' })).toMatchObject({ review: { round: 4 } })
  })

  test('[V13] that were refused are counted, over a restart too, and told', async ({ app }) => {
    const { task, worker } = await begun(app)
    await app.owner.call('setting_update', { key: 'review.max_iterations', value: 1 })
    await round(app, worker, task)
    await worker.refused('review_request', { summary: 'x' })
    await app.reopen()
    await app.owner.refused('review_request', { task_id: task.id, summary: 'x' })
    const { reviews } = await app.owner.call('review_list', { task_id: task.id })
    expect(reviews).toMatchObject([{ round: 1, refused: 2 }])
    // A log that an older transaction holds back shows the second a moment later.
    await until(async () => (await app.events({ type: 'review.refused' })).length === 2)
    expect((await app.events({ type: 'review.refused' })).map(({ data }) => data)).toMatchObject([{ refused: 1 }, { refused: 2 }])
  })

  test('[V14] end when their time is up: it counts as one, and a person can still decide about it', async ({ app }) => {
    const { task, worker } = await begun(app)
    await app.owner.call('setting_update', { key: 'review.max_iterations', value: 1 })
    await app.owner.call('setting_update', { key: 'review.timeout_hours', value: 0.0002 })
    await worker.call('review_request', { summary: 'done' })
    await until(async () => (await app.events({ type: 'review.timed_out' })).length === 1)
    expect(await app.owner.call('review_list', { task_id: task.id })).toMatchObject({
      reviews: [{ decision: 'timed_out', reason: 'Nobody has decided in 0.0002 hours.' }],
    })
    expect((await app.owner.call('task_get', { task_id: task.id })).task).toMatchObject({ status: 'REVIEW', attention: 'human' })
    await app.owner.call('review_decide', { task_id: task.id, decision: 'request_changes', feedback: 'More tests.' })
    expect(await app.owner.call('review_list', { task_id: task.id })).toMatchObject({
      reviews: [{ round: 1, decision: 'request_changes' }],
    })
    expect(await worker.refused('review_request', { summary: 'x' })).toMatchObject({ code: 'REVIEW_LIMIT_EXCEEDED' })
  })

  test('[V14] one that was decided or taken back in time is left alone', async ({ app }) => {
    const { task, worker } = await begun(app)
    await app.owner.call('setting_update', { key: 'review.timeout_hours', value: 0.0002 })
    await round(app, worker, task)
    await worker.call('review_request', { summary: 'again' })
    await until(async () => (await app.events({ type: 'review.timed_out' })).length === 1)
    expect(await app.owner.call('review_list', { task_id: task.id })).toMatchObject({
      reviews: [{ decision: null }, { decision: 'timed_out' }],
    })
  })
})

describe('what is approved', () => {
  test('[V7] is what was handed in: what was committed later is approved only by name', async () => {
    const at = await mergeGround()
    const work = await at.handedIn('one.txt')
    const head = at.commit(work.path, 'late.txt', 'nobody has read it')
    const approve = { task_id: work.task.id, decision: 'approve' }
    expect(await at.app.owner.refused('review_decide', approve)).toMatchObject({ code: 'CONFLICT', details: { commit: head } })
    expect(await at.app.owner.refused('merge_submit', { task_id: work.task.id })).toMatchObject({ code: 'CONFLICT' })
    expect(await at.app.owner.refused('review_decide', { ...approve, commit: 'f'.repeat(12) })).toMatchObject({ code: 'CONFLICT' })
    expect(await at.app.owner.call('review_decide', { ...approve, commit: head.slice(0, 12) })).toMatchObject({ status: 'merged' })
    expect(at.files('main')).toEqual(['a.txt', 'late.txt', 'one.txt'])
  })
})
