import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { Timestamp } from '../../kernel/schema.ts'
import { DECISIONS, FEEDBACK_PRIORITIES, FEEDBACK_STATES, FEEDBACK_TYPES, READERS } from './store.ts'

export const FeedbackView = z.strictObject({
  id: z.string(),
  from_id: z.string(),
  feedback_type: z.enum(FEEDBACK_TYPES),
  priority: z.enum(FEEDBACK_PRIORITIES).nullable(),
  feedback: z.string(),
  actionable_items: z.array(z.string()),
  state: z.enum(FEEDBACK_STATES).describe('sent: it is a commit on the branch of the work'),
  commit_hash: z.string().nullable(),
  reason: z.string().nullable(),
  created_at: Timestamp,
})

export const ReviewView = z.strictObject({
  id: z.string(),
  task_id: z.string(),
  round: z.int(),
  summary: z.string(),
  reviewer_prompt: z.string().nullable(),
  requested_by: z.string(),
  requested_at: Timestamp,
  handed_in: z.string().nullable().describe('The commit that was there'),
  reviewer_task_id: z.string().nullable().describe('The task on which its reviewer runs'),
  reader: z.enum(READERS).nullable().describe('human: a person decides, as the rounds are used up; null: as the settings say'),
  refused: z.int().describe('Further rounds that were asked for, and refused'),
  decision: z.enum(DECISIONS).nullable(),
  decided_by: z.string().nullable(),
  decided_at: Timestamp.nullable(),
  feedback: z.string().nullable(),
  feedbacks: z.array(FeedbackView),
  outcome: z.enum(['merged', 'conflict', 'red', 'failed']).nullable().describe('What became of an approval; null while it is being merged'),
  merge_commit: z.string().nullable(),
  reason: z.string().nullable(),
})

/** Of a task whose rounds are used up. */
export const LimitView = z.strictObject({
  current_iteration: z.int(),
  max_iterations: z.int(),
  refused: z.int().describe('Further rounds that were asked for since'),
  suggestions: z.array(z.string()),
})

/** What somebody can decide; the others come by themselves. */
export const Decision = z.enum(['approve', 'request_changes'])

const Round = z.strictObject({ handle: z.string(), round: z.int() })

export const reviewRequested = defineEvent('review.requested', Round.extend({ requested_by: z.string() }))
export const reviewDecided = defineEvent('review.decided', Round.extend({ decision: Decision, decided_by: z.string() }))
export const reviewRefused = defineEvent('review.refused', Round.extend({ refused: z.int(), requested_by: z.string() }))
export const reviewTimedOut = defineEvent('review.timed_out', Round.extend({ reason: z.string() }))

export const REBASE_RESULTS = ['rebased', 'even', 'conflict', 'failed'] as const
export const reviewRebased = defineEvent(
  'review.rebased',
  Round.extend({
    request: z.string(),
    onto: z.string(),
    result: z.enum(REBASE_RESULTS),
    commit: z.string().nullable(),
    files: z.array(z.string()),
    reason: z.string().nullable(),
  }),
)
export const reviewFeedback = defineEvent(
  'review.feedback',
  Round.extend({
    feedback_id: z.string(),
    feedback_type: z.enum(FEEDBACK_TYPES),
    from: z.string(),
    to: z.string().nullable(),
    commit: z.string().nullable(),
    reason: z.string().nullable(),
  }),
)
export const reviewAbandoned = defineEvent('review.abandoned', Round.extend({ reason: z.string(), by: z.string() }))
export const reviewerStarted = defineEvent(
  'reviewer.started',
  Round.extend({ agent_id: z.string(), reviewer: z.string(), reviewer_task_id: z.string() }),
)
export const reviewerEnded = defineEvent('reviewer.ended', Round.extend({ reviewer_task_id: z.string(), reason: z.string() }))
