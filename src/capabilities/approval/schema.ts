import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { Timestamp } from '../../kernel/schema.ts'
import { ApprovalId } from '../ids.ts'

/**
 * | state           | means                                                                    |
 * |-----------------|--------------------------------------------------------------------------|
 * | pending         | the program waits for the answer                                         |
 * | allowed, denied | a person decided; `delivered` when the program has the answer            |
 * | expired         | nobody did in time: the program is told that it was denied               |
 * | withdrawn       | the program does not wait any more, and no answer has reached it         |
 *
 * pending → allowed, denied, expired, withdrawn; what is decided and not delivered → withdrawn.
 */
export const APPROVAL_STATES = ['pending', 'allowed', 'denied', 'expired', 'withdrawn'] as const
export type ApprovalState = (typeof APPROVAL_STATES)[number]

export const ApprovalView = z.strictObject({
  id: ApprovalId,
  handle: z.string(),
  title: z.string().describe('What the agent wants to do, in one line'),
  state: z.enum(APPROVAL_STATES),
  task_id: z.string(),
  task: z.string().describe('Its handle'),
  expires_at: Timestamp,
  message: z.string().nullable().describe('What the agent is told with the answer, or why there is none'),
  decided_by: z.string().nullable(),
  decided_at: Timestamp.nullable(),
  delivered: z.boolean().describe('Whether the answer has reached the program'),
  tool: z.string().describe('What it wants to use'),
  input: z.string().describe('What the tool would be given'),
  task_title: z.string(),
  asked_at: Timestamp,
  kind: z.literal('agent_tool'),
  run_id: z.string(),
})

const About = z.strictObject({ handle: z.string(), name: z.string(), run_id: z.string() })

export const approvalAsked = defineEvent('approval.asked', About.extend({ expires_at: Timestamp }))
export const approvalDecided = defineEvent('approval.decided', About.extend({ decision: z.enum(['allow', 'deny']) }))
export const approvalExpired = defineEvent('approval.expired', About)
export const approvalWithdrawn = defineEvent('approval.withdrawn', About.extend({ reason: z.string() }))
