import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import { type Delivery, GitRefusal } from '../../ports/git.ts'
import { agentStore } from '../agent/index.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { placeOf, workOf } from '../work/index.ts'
import { sent as feedbackSent } from './feedback-sent.ts'
import { type FeedbackRow, feedbackStore } from './store.ts'

/** A git that somebody holds may be free at the third attempt. */
const FAILS_BEFORE_GIVING_UP = 3
/** Daemons that are killed in the middle of it do not count. */
const MANY = 100

/** The commit is known again by its trailer, and what is told twice is told once. */
export const deliverFeedback = defineEffect({
  type: 'feedback.deliver',
  payload: z.strictObject({ feedback_id: z.string() }),
  attempts: MANY,
  async do(ctx, { feedback_id }) {
    const row = await feedbackStore(ctx.view).find(feedback_id)
    if (row?.state !== 'sending') return
    await ctx.report(feedbackSent, { feedback_id, task_id: row.task_id, ...(await committed(ctx, row)) })
  },
})

async function committed(ctx: EffectContext, row: FeedbackRow): Promise<{ commit: string | null; problem: string | null }> {
  const work = await workOf(ctx.view, row.task_id)
  const place = work && (await placeOf(ctx, work))
  if (!place) return { commit: null, problem: 'The work has no branch of its own.' }
  try {
    return { ...(await ctx.ports.git.deliver(place, await deliveryOf(ctx, row))), problem: null }
  } catch (error) {
    const passes = !(error instanceof GitRefusal) || error.reason === 'busy' || error.reason === 'failed'
    if ((passes && ctx.attempt < FAILS_BEFORE_GIVING_UP) || ctx.signal.aborted) throw error
    return { commit: null, problem: (error as Error).message.slice(0, 1_000) }
  }
}

async function deliveryOf(ctx: EffectContext, row: FeedbackRow): Promise<Delivery> {
  const task = await taskStore(ctx.view).find(row.task_id)
  if (!task) throw new Error(`the task of ${row.id} is not there`)
  const store = agentStore(ctx.view)
  const from = (row.from_id.startsWith('agent_') ? await store.agent(row.from_id) : await store.person(row.from_id))?.handle
  return {
    path: fileOf(row),
    text: `# Feedback on ${handleOf(task)}, round ${row.round}\n\nFrom ${from ?? row.from_id}: ${wordsOf(row)}.\n\n${textOf(row)}\n`,
    message: `Feedback on ${handleOf(task)}, round ${row.round}`,
    trailers: { 'Signalbox-Feedback': row.id, 'Signalbox-Task': row.task_id },
  }
}

export function fileOf({ round }: FeedbackRow): string {
  return `.signalbox/feedback/${round}.md`
}

/** What a worker reads, in the file and in the letter. */
export function textOf(row: FeedbackRow): string {
  const items = (JSON.parse(row.actionable_items) as string[]).map((item) => `- [ ] ${item}`)
  return [row.feedback.trim(), ...(items.length ? ['To do:', items.join('\n')] : [])].join('\n\n')
}

function wordsOf({ feedback_type, priority }: FeedbackRow): string {
  return `${feedback_type.replace('_', ' ')}${priority ? `, priority ${priority}` : ''}`
}
