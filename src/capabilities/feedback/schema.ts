import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { FEEDBACK_TYPES } from '../review/index.ts'

const Round = z.strictObject({ handle: z.string(), round: z.int() })

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
