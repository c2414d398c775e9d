import { describe, expect, onTestFinished, test } from 'vitest'
import type { Capability } from '../kernel/capability.ts'
import { openTestApp } from '../testing/app.ts'
import { WorkGround } from '../testing/work.ts'
import { capabilities } from './index.ts'

async function appOf(chosen: (capability: Capability) => boolean) {
  const app = await openTestApp({ capabilities: capabilities.filter(chosen), dialects: [] })
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
