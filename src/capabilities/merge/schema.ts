import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'

export const DECISIONS = ['approve', 'request_changes'] as const
export const Decision = z.enum(DECISIONS)

const Round = z.strictObject({ handle: z.string(), round: z.int() })

export const reviewDecided = defineEvent('review.decided', Round.extend({ decision: Decision, decided_by: z.string() }))
export const reviewMerged = defineEvent('review.merged', Round.extend({ commit: z.string(), into: z.string(), rebase_requests: z.int() }))
export const reviewConflicted = defineEvent('review.conflicted', Round.extend({ into: z.string(), files: z.array(z.string()) }))
export const reviewStuck = defineEvent('review.stuck', Round.extend({ into: z.string(), reason: z.string() }))
