import type { Refusal } from '../../kernel/error.ts'
import type { EventType } from '../../kernel/event.ts'
import { definePoint } from '../../kernel/point.ts'
import type { Reading, RunContext } from '../../kernel/tool.ts'
import type { TaskRow } from '../task/index.ts'

// A review knows the jobs, not the other way round.

export interface HandIn {
  round: number
  requested_by: string
  requested_at: number
  /** The task on which its reviewer runs. */
  reviewer_task_id: string | null
}

/** Each time that the work on a task was handed in, oldest first. */
export const handIns = definePoint.one<(ctx: Reading, task: string) => Promise<HandIn[]>>('job.hand_ins', async () => [])

/** Events that tell of one more. */
export const handInNews = definePoint.all<() => Promise<EventType[]>>('job.hand_in_news')

type HandingIn = (ctx: RunContext, task: TaskRow, what: { summary: string; requested_by: string }) => Promise<boolean>

/** Of an agent that ended without asking for review. False: it was refused, or nobody reviews. */
export const handIn = definePoint.one<HandingIn>('job.hand_in', async () => false)

/** Why no agent may begin on a task in REVIEW: it would take it out of review, and the round would be lost. */
export const inReview = definePoint.one<(ctx: Reading, task: TaskRow) => Promise<Refusal | undefined>>(
  'job.in_review',
  async () => undefined,
)

export async function isInReview(ctx: Reading, task: TaskRow): Promise<Refusal | undefined> {
  return task.status === 'REVIEW' ? ctx.ask(inReview, task) : undefined
}
