import type { Reactor, ReactorContext } from '../../kernel/reactor.ts'
import { admitNow, type Message, type RunRow } from '../run/index.ts'
import { taskDeleted, taskMoved, taskStore } from '../task/index.ts'
import { handInNews } from './handed-in.ts'
import { reported, taskOver, unheard } from './reports.ts'
import { isSaid, type JobArguments, taskOf } from './rules.ts'
import { jobStore } from './store.ts'

/** Hears what makes room for a job, or ends one. */
export const watcher: Reactor = {
  name: 'jobs',
  async start(ctx) {
    ctx.on(taskDeleted, ({ subject }) => void tellOver(ctx, subject))
    ctx.on(taskMoved, ({ subject, data: { to } }) => {
      if (to === 'DONE' || to === 'BACKLOG') void tellOver(ctx, subject)
    })
    for (const type of (await ctx.ask(handInNews)).flat())
      ctx.on(type, ({ task }) => void ctx.report(reported, { task_id: task as string }).catch(ctx.defect))
    void endWhatIsOver(ctx)
    return { ended: async () => {} }
  },
}

async function tellOver(ctx: ReactorContext, task_id: string): Promise<void> {
  await ctx.report(taskOver, { task_id }).catch(ctx.defect)
}

/** A task that was closed while nobody was there to hear of it. And a place may have become free. */
async function endWhatIsOver(ctx: ReactorContext): Promise<void> {
  try {
    const open = await jobStore(ctx.view).list({ states: ['queued', 'running'] }, undefined, 1_000)
    for (const id of new Set(open.map((job) => job.task_id))) {
      const task = await taskStore(ctx.view).find(id)
      if (task && (task.status === 'DONE' || task.deleted_at !== null)) await tellOver(ctx, id)
    }
    if (open.some((job) => job.state === 'queued')) await ctx.report(admitNow, {})
  } catch (error) {
    ctx.defect(error)
  }
}

/** The jobs that say something to the agent of a run. */
export async function messagesOf({ view, report }: ReactorContext, run: RunRow): Promise<Message[]> {
  const open = await jobStore(view).list({ task: taskOf(run), states: ['running'] }, undefined, 100)
  const waiting = open.filter((job) => isSaid(job) && job.run_id === run.id).reverse()
  return waiting.map(({ id, action, arguments: given }) => ({
    id,
    kind: action === 'message_agent' ? ('message' as const) : ('interrupt' as const),
    text: (JSON.parse(given) as JobArguments).message ?? '',
    unheard: async (reason) => void (await report(unheard, { job_id: id, reason })),
  }))
}
