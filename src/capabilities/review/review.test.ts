import { describe, expect, onTestFinished } from 'vitest'
import { openTestApp, test } from '../../testing/app.ts'
import { FakeGit } from '../../testing/fakes/runs.ts'
import { until } from '../../testing/signals.ts'

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
