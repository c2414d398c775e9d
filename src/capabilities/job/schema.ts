import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { Timestamp } from '../../kernel/schema.ts'
import { JobId } from '../ids.ts'

/**
 * | job state | means                                                                          |
 * |-----------|--------------------------------------------------------------------------------|
 * | queued    | it waits for a place, for its time (a quota, a back-off), or for a dependency  |
 * | running   | its run lives, or is being made or ended                                       |
 * | succeeded, failed, cancelled | it is over, and so is its run                               |
 *
 * A job whose run died goes back to `queued`: it is over only when nothing of it will run again.
 */
export const JOB_STATES = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const
export type JobState = (typeof JOB_STATES)[number]
export const OPEN_STATES: readonly JobState[] = ['queued', 'running']

/** Of the newest job of a task: somebody is at work by it, or will be. */
export function isAtWork(job: { state: JobState } | undefined): boolean {
  return job !== undefined && OPEN_STATES.includes(job.state)
}

export const ACTIONS = ['start_agent', 'stop_agent', 'message_agent', 'interrupt_agent', 'resume_agent', 'run_checks'] as const
export type ActionName = (typeof ACTIONS)[number]
export const Action = z.enum(ACTIONS)

export const JobView = z.strictObject({
  id: JobId,
  handle: z.string(),
  task_id: z.string(),
  action: Action,
  harness: z.string().nullable().describe('The agent program that it starts; null where it starts none'),
  state: z.enum(JOB_STATES),
  code: z.string().nullable().describe('START_PENDING while it waits; the reason of a failure by its code'),
  reason: z.string().nullable(),
  position: z.int().nullable().describe('Place in the line; null when it is in none'),
  run_id: z.string().nullable(),
  lives: z.int().describe('Runs that it has had'),
  cancel_requested: z.boolean(),
  submitted_by: z.string(),
  not_before: Timestamp.nullable(),
  created_at: Timestamp,
  started_at: Timestamp.nullable(),
  ended_at: Timestamp.nullable(),
})

const About = z.strictObject({ handle: z.string(), action: Action })

export const jobSubmitted = defineEvent('job.submitted', About.extend({ state: z.enum(JOB_STATES) }))
export const jobStarted = defineEvent('job.started', About.extend({ run_id: z.string().nullable() }))
export const jobQueued = defineEvent('job.queued', About.extend({ reason: z.string(), not_before: Timestamp.nullable() }))
export const jobCancelling = defineEvent('job.cancelling', About)
/** Its agent was interrupted and waits, or goes on again. */
export const jobPaused = defineEvent('job.paused', About.extend({ paused: z.boolean() }))
export const jobEnded = defineEvent(
  'job.ended',
  About.extend({ state: z.enum(JOB_STATES), code: z.string().nullable(), reason: z.string().nullable() }),
)
