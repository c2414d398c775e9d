import { z } from 'zod'
import { defineTool } from '../../kernel/tool.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { reviewTimedOut } from './schema.ts'
import { feedbackStore, reviewStore } from './store.ts'

const Told = z.strictObject({ review_id: z.string(), hours: z.number() })

/** Called for each round, when its time is up. */
export const timedOut = defineTool({
  name: 'review_time_out',
  title: 'Nobody has decided in time',
  description: 'The round is over for whoever reads it; a person can still decide about the work.',
  input: Told,
  output: z.strictObject({}),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  later: 'review.time_out',
  async run(ctx, { review_id, hours }) {
    const round = await reviewStore(ctx.tx).find(review_id)
    const task = round && (await taskStore(ctx.tx).find(round.task_id))
    if (!round || !task || round.decision !== null || task.status !== 'REVIEW' || task.deleted_at !== null) return {}
    const last = (await reviewStore(ctx.tx).ofTask(task.id)).at(-1)
    if (last?.id !== round.id || (await feedbackStore(ctx.tx).sendingOf(task.id))) return {}
    const reason = `Nobody has decided in ${hours} hours.`
    await reviewStore(ctx.tx).update(round.id, { decision: 'timed_out', decided_by: ctx.principal.id, decided_at: ctx.now, reason })
    const about = { subject: round.id, project: task.project_id, task: task.id }
    ctx.emit(reviewTimedOut(about, { handle: handleOf(task), round: round.round, reason }))
    return {}
  },
})
