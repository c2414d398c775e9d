import type { Reactor, ReactorContext } from '../../kernel/reactor.ts'
import { jobEnded } from '../job/index.ts'
import { mergeStuck } from '../merge/index.ts'
import { OneAtATime } from '../one-at-a-time.ts'
import { settingChanged } from '../system/index.ts'
import { taskCreated, taskDeleted, taskMoved, taskStore, taskUpdated } from '../task/index.ts'
import { reconcileEpic } from './reconcile.ts'
import { epicCreated, epicMoved, epicUpdated } from './schema.ts'
import { epicStore } from './store.ts'

/** After any of these somebody may have to be started, in the epic of the task. */
const OF_TASKS = [taskCreated, taskUpdated, taskMoved, taskDeleted, jobEnded, mergeStuck]
const OF_EPICS = [epicCreated, epicUpdated, epicMoved]

/** Hears what happens in epics, and has each compared with what it wants. All is in rows: what was missed is seen at the next start. */
export const watcher: Reactor = {
  name: 'epics',
  async start(ctx) {
    const one = new OneAtATime(ctx, (epic_id) => ctx.report(reconcileEpic, { epic_id }))
    for (const type of OF_EPICS) ctx.on(type, (event) => one.ask(event.subject))
    for (const type of OF_TASKS) ctx.on(type, (event) => void ofTask(ctx, event.task).then((epic) => epic && one.ask(epic)))
    const askAll = async () => {
      for (const { id } of await epicStore(ctx.view).inProgress()) one.ask(id)
    }
    // Those whose program nobody had named.
    ctx.on(settingChanged, (event) => {
      if (event.subject === 'runs.default_harness') void askAll().catch(ctx.defect)
    })
    await askAll()
    return { ended: () => one.idle() }
  },
}

async function ofTask(ctx: ReactorContext, id: string | null | undefined): Promise<string | null | undefined> {
  const task = id ? await taskStore(ctx.view).find(id).catch(ctx.defect) : undefined
  return task?.epic_id
}
