import type { Reactor, ReactorContext } from '../../kernel/reactor.ts'
import { jobEnded } from '../job/index.ts'
import { mergeStuck, mergeWithdrawn } from '../merge/index.ts'
import { OneAtATime } from '../one-at-a-time.ts'
import { sessionClosed } from '../session/index.ts'
import { taskDeleted, taskMoved, taskStore } from '../task/index.ts'
import { reconcileReview } from './reconcile.ts'
import { reviewAbandoned, reviewDecided, reviewFeedback, reviewRefused, reviewRequested, reviewTimedOut } from './schema.ts'
import { reviewStore } from './store.ts'

/** After any of these somebody may have to be started or ended, for the review of the task. */
const EVENTS = [
  reviewRequested,
  reviewRefused,
  reviewTimedOut,
  reviewDecided,
  reviewFeedback,
  reviewAbandoned,
  mergeStuck,
  mergeWithdrawn,
  taskMoved,
  taskDeleted,
  jobEnded,
  sessionClosed,
]

/** Hears what happens to work that was handed in. All is in rows: what was missed is seen at the next start. */
export const watcher: Reactor = {
  name: 'reviews',
  async start(ctx) {
    const one = new OneAtATime(ctx, (task_id) => ctx.report(reconcileReview, { task_id }))
    for (const type of EVENTS) ctx.on(type, (event) => void reviewed(ctx, event.task).then((task) => task && one.ask(task)))
    for (const task of await reviewStore(ctx.view).unsettled()) one.ask(task)
    return { ended: () => one.idle() }
  },
}

/** The task whose rounds it is about; undefined when that has none. */
async function reviewed(ctx: ReactorContext, id: string | null | undefined): Promise<string | undefined> {
  if (!id) return undefined
  try {
    const task = (await taskStore(ctx.view).find(id))?.reviews_task_id ?? id
    return (await reviewStore(ctx.view).ofTask(task)).length ? task : undefined
  } catch (error) {
    ctx.defect(error)
    return undefined
  }
}
