import { describe, expect, onTestFinished, test } from 'vitest'
import type { Capability } from '../kernel/capability.ts'
import { openTestApp } from '../testing/app.ts'
import { FakeRunner } from '../testing/fakes/runs.ts'
import { until } from '../testing/signals.ts'
import { WorkGround } from '../testing/work.ts'
import { capabilities } from './index.ts'

async function appOf(chosen: (capability: Capability) => boolean, runner = new FakeRunner()) {
  const app = await openTestApp({ capabilities: capabilities.filter(chosen), dialects: [], ports: { runner } })
  onTestFinished(() => app.close())
  return app
}

describe('an app of some of the capabilities', () => {
  test('[K38] of identity and settings alone, which the kernel needs itself', async () => {
    const app = await appOf(({ name }) => ['agent', 'system'].includes(name))
    const ann = await app.agent('worker')
    expect(await ann.call('agent_me')).toMatchObject({ id: ann.id, state: 'IDLE' })
    await app.owner.call('setting_update', { key: 'limits.agent_burst', value: 7 })
    expect((await app.owner.call('setting_get', { key: 'limits.agent_burst' })).settings).toMatchObject([{ value: 7 }])
  })

  test('[K38] without epics: work is handed in and lands', async () => {
    const ground = await new WorkGround(await appOf(({ name }) => name !== 'epic')).prepare()
    const { task } = await ground.handedIn('one.txt')
    expect(await ground.app.owner.call('review_decide', { task_id: task.id, decision: 'approve' })).toMatchObject({ merged: true })
  })

  test('[K38] without pull requests: work is handed in, sent back and lands', async () => {
    const ground = await new WorkGround(await appOf(({ name }) => name !== 'pr')).prepare()
    const work = await ground.handedIn('one.txt')
    const { owner } = ground.app
    const task_id = work.task.id
    await owner.call('review_decide', { task_id, decision: 'request_changes', feedback: 'Mend it.' })
    await ground.handIn(work, 'mended')
    expect((await owner.call('review_queue')).queue).toMatchObject([{ round: 2, pr_number: null, pr_url: null }])
    expect(await owner.call('review_decide', { task_id, decision: 'approve' })).toMatchObject({ merged: true, pr_url: null })
  })

  test('[K38] without reviews: an agent ends well all the same, and a person goes on with what it left', async () => {
    const runner = new FakeRunner()
    const ofReviews = ['review', 'merge', 'pr', 'epic']
    const ground = await new WorkGround(await appOf(({ name }) => !ofReviews.includes(name), runner)).prepare()
    const { owner } = ground.app
    const { task, path } = await ground.begun()
    ground.commit(path, 'one.txt', 'x\n')
    const [run] = (await owner.call('run_list', { task_id: task.id })).runs
    runner.exit(run.id, 0)
    await until(async () => (await ground.app.events({ type: 'job.ended' })).length === 1)
    expect((await owner.call('job_list', { task_id: task.id })).jobs).toMatchObject([{ state: 'succeeded' }])
    expect((await owner.call('task_get', { task_id: task.id })).task.status).toBe('IN_PROGRESS')
    expect((await owner.call('diff_get', { task_id: task.id })).files).toMatchObject([{ path: 'one.txt' }])
  })

  test('[K38] without mail: what would be written to a worker is told by its task', async () => {
    const ground = await new WorkGround(await appOf(({ name }) => name !== 'mail')).prepare()
    const { task } = await ground.handedIn('one.txt')
    const { owner } = ground.app
    await owner.call('review_decide', { task_id: task.id, decision: 'request_changes', feedback: 'Mend it.' })
    expect(await owner.call('task_get', { task_id: task.id })).toMatchObject({
      task: { status: 'IN_PROGRESS', notes: [{ body: expect.stringContaining('Mend it.') }] },
    })
  })

  test('[K38] [ND6] without mail and without the line there are no letters and no lines that need a person', async () => {
    const app = await appOf(({ name }) => ['agent', 'system', 'need', 'project', 'task'].includes(name))
    await app.task({ title: 'Task' })
    expect(await app.owner.call('need_list')).toMatchObject({
      kinds: [{ kind: 'ready', title: 'Ready to hand out', count: 1 }],
      needs: [{ kind: 'ready', title: 'Task', steps: [] }],
    })
  })
})
