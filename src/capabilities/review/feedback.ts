import { z } from 'zod'
import { Refusal } from '../../kernel/error.ts'
import { text } from '../../kernel/schema.ts'
import { defineTool, type WatchContext } from '../../kernel/tool.ts'
import { TaskId } from '../ids.ts'
import { runStore } from '../run/index.ts'
import { Body } from '../task/index.ts'
import { watchUntil } from '../until.ts'
import { toDecide } from './decide.ts'
import { deliverFeedback } from './deliver.ts'
import { beingMerged, isBeingMerged, isReviewerOf } from './rules.ts'
import { reviewFeedback } from './schema.ts'
import { FEEDBACK_PRIORITIES, FEEDBACK_TYPES, type FeedbackRow, feedbackStore, reviewStore } from './store.ts'

const SENDING_MS = 120_000

const Given = z.strictObject({
  task_id: TaskId.optional().describe('Default: the work that you were started to review'),
  feedback: Body.describe('What is to be done, in detail'),
  feedback_type: z.enum(FEEDBACK_TYPES),
  priority: z.enum(FEEDBACK_PRIORITIES).optional(),
  actionable_items: z.array(text(1_000)).max(50).default([]).describe('One thing to do each'),
})

export const feedback = defineTool({
  name: 'review_feedback',
  title: 'Send feedback on work',
  description: 'Send work back with feedback: a commit on its branch and a letter to its worker. It ends the review.',
  input: Given,
  output: z.strictObject({
    feedback_id: z.string(),
    task_id: TaskId,
    review_id: z.string(),
    status: z.enum(['sent', 'failed', 'pending']).describe('failed: its worker has the letter, but the branch not the commit'),
    git_commit_hash: z.string().nullable(),
    target_agent_id: z.string().nullable().describe('The worker that it goes to'),
    cleanup_status: z.enum(['terminating', 'terminated', 'none']).describe('Of the reviewer of the round'),
    message: z.string(),
    cursor: z.string().describe('Where to go on waiting with event_wait'),
  }),
  example: { task_id: 'T-1', feedback: 'A wrong passkey is not refused yet.', feedback_type: 'needs_work' },
  impact: 'write',
  // A reviewer is no operator, and what it reviews is not its own task: toDecide says who may.
  profile: 'pair_worker',
  scope: 'open',
  async run(ctx, { task_id, ...given }) {
    const handedIn = await toDecide(ctx, task_id)
    if (handedIn instanceof Refusal) return handedIn
    const { task, round } = handedIn
    if (isBeingMerged(round)) return beingMerged(task)
    const row: FeedbackRow = {
      id: ctx.id('feedback'),
      review_id: round.id,
      task_id: task.id,
      project_id: task.project_id,
      round: round.round,
      from_id: ctx.principal.id,
      to_id: task.assignee_id,
      feedback: given.feedback,
      feedback_type: given.feedback_type,
      priority: given.priority ?? null,
      actionable_items: JSON.stringify(given.actionable_items),
      state: 'sending',
      commit_hash: null,
      reason: null,
      created_at: ctx.now,
      sent_at: null,
    }
    await feedbackStore(ctx.tx).insert(row)
    ctx.enqueue(deliverFeedback({ feedback_id: row.id }, { queue: `feedback:${task.id}` }))
    return { feedback_id: row.id, reviewer: isReviewerOf(ctx.principal, round) }
  },
  watch: (ctx, _input, begun: { feedback_id: string; reviewer: boolean }) => delivered(ctx, begun),
})

const MESSAGES = {
  sent: 'Feedback sent to worker. Task returned to IN_PROGRESS.',
  failed: 'Feedback sent to worker as a letter only. Task returned to IN_PROGRESS.',
  pending: 'The feedback is stored and on its way; review.feedback tells when it has arrived.',
}

async function delivered(ctx: WatchContext, { feedback_id, reviewer }: { feedback_id: string; reviewer: boolean }) {
  const find = async () => {
    const row = await feedbackStore(ctx.view).find(feedback_id)
    if (!row) throw new Error(`the feedback ${feedback_id} is not there`)
    return row
  }
  const { review_id } = await find()
  const { cursor } = await watchUntil(ctx, {
    about: { subject: review_id },
    types: [reviewFeedback],
    withinMs: SENDING_MS,
    look: async () => ((await find()).state === 'sending' ? undefined : true),
  })
  const row = await find()
  const status = row.state === 'sending' ? ('pending' as const) : row.state
  return {
    feedback_id,
    task_id: row.task_id,
    review_id,
    status,
    git_commit_hash: row.commit_hash,
    target_agent_id: row.to_id,
    cleanup_status: reviewer ? ('terminating' as const) : await cleanupOf(ctx, review_id),
    message: row.reason ? `${MESSAGES[status]} ${row.reason}` : MESSAGES[status],
    cursor,
  }
}

async function cleanupOf(ctx: WatchContext, review: string) {
  const hidden = (await reviewStore(ctx.view).find(review))?.reviewer_task_id
  if (!hidden) return 'none' as const
  return (await runStore(ctx.view).livingOf(hidden)) ? ('terminating' as const) : ('terminated' as const)
}
