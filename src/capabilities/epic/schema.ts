import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { Timestamp } from '../../kernel/schema.ts'
import { EpicId } from '../ids.ts'

/**
 * | state       | means                                                                    |
 * |-------------|--------------------------------------------------------------------------|
 * | PLANNING    | tasks may be written; nobody is started                                  |
 * | IN_PROGRESS | its supervisor and its workers are started as there is work for them     |
 * | REVIEW      | all is merged into its branch, and a person is asked to merge that       |
 * | COMPLETED   | a person has said that it is                                             |
 * | CANCELLED   | a person has given it up                                                 |
 */
export const EPIC_STATES = ['PLANNING', 'IN_PROGRESS', 'REVIEW', 'COMPLETED', 'CANCELLED'] as const
export type EpicState = (typeof EPIC_STATES)[number]
export const EpicStateName = z.enum(EPIC_STATES)

const Count = z.int().min(0).max(1_000_000)

export const EpicSummary = z.strictObject({
  id: EpicId,
  handle: z.string(),
  project_id: z.string(),
  repo_id: z.string().nullable(),
  title: z.string(),
  state: EpicStateName,
  branch: z.string(),
  base_branch: z.string(),
  supervisor_id: z.string().nullable(),
  lead_task_id: z.string().nullable().describe('The task on which its supervisor runs; none of its own'),
  max_workers: z.int(),
  progress: z.strictObject({ total: Count, backlog: Count, in_progress: Count, review: Count, done: Count }),
  version: z.int(),
  created_at: Timestamp,
  updated_at: Timestamp,
})

export const EpicView = EpicSummary.extend({
  description: z.string(),
  supervisor_harness: z.string().nullable(),
  worker_harness: z.string().nullable(),
  created_by: z.string(),
  completed_at: Timestamp.nullable(),
})

const Versioned = z.strictObject({ handle: z.string(), version: z.int() })

export const epicCreated = defineEvent('epic.created', Versioned.extend({ title: z.string(), state: EpicStateName, branch: z.string() }))
export const epicUpdated = defineEvent('epic.updated', Versioned.extend({ fields: z.array(z.string()) }))
/** Subject is the epic: it has given one of its tasks a worker. */
export const workerStarted = defineEvent('epic.worker_started', z.strictObject({ handle: z.string(), job_id: z.string() }))
export const epicMoved = defineEvent('epic.moved', Versioned.extend({ from: EpicStateName, to: EpicStateName }))
