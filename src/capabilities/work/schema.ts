import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { Timestamp } from '../../kernel/schema.ts'
import { BASE_STRATEGIES } from '../../ports/git.ts'
import { WorkId } from '../ids.ts'

export const WORK_STATES = ['planned', 'made', 'removed'] as const
export const WorkStateName = z.enum(WORK_STATES)
export const Strategy = z.enum(BASE_STRATEGIES)

/** All that is needed to make a worktree, away from the database. */
export const WorkPlan = z.strictObject({
  work_id: z.string(),
  repo: z.string(),
  repo_handle: z.string(),
  name: z.string(),
  path: z.string().nullable(),
  branch: z.string(),
  base: z.string(),
  /** The base is a branch of ours, to be made from this one when it is not there. */
  base_from: z.string().nullish(),
  strategy: Strategy,
})
export type WorkPlan = z.output<typeof WorkPlan>

export const RescueView = z.strictObject({ ref: z.string(), commit: z.string(), branch: z.string(), at: Timestamp })

export const FileChange = z.strictObject({
  path: z.string(),
  from: z.string().nullable().describe('Its name before it was moved'),
  status: z.string().describe('A added, M changed, D deleted, R moved, T another kind of file'),
  added: z.int().nullable().describe('Lines; null of a binary file'),
  removed: z.int().nullable(),
})

export const WorkPlace = z.strictObject({
  name: z.string(),
  state: WorkStateName,
  path: z.string().nullable().describe('Once it was made, and until it is taken away'),
  host: z.string().nullable().describe('The daemon on whose disk it is'),
  branch: z.string(),
  base_branch: z.string(),
})

export const PullRequest = z.strictObject({ id: z.string(), number: z.int(), state: z.string(), url: z.string() })

export const WorkView = z.strictObject({
  id: WorkId,
  task_id: z.string(),
  handle: z.string(),
  repo_id: z.string(),
  state: WorkStateName,
  path: z.string().nullable(),
  host: z.string().nullable(),
  branch: z.string(),
  base_branch: z.string(),
  base_commit: z.string().nullable(),
  on_disk: z.enum(['present', 'missing', 'foreign', 'unknown']).describe('foreign: something else is in its place'),
  size_bytes: z.int().nullable(),
  dirty: z.int().nullable().describe('Files that are not committed'),
  ahead: z.int().nullable().describe('Commits that the base branch does not have'),
  collectable: z.boolean(),
  reason: z.string().describe('Why it is kept, or may go'),
  created_at: Timestamp,
  updated_at: Timestamp,
})

const About = z.strictObject({ handle: z.string(), branch: z.string() })

export const workMade = defineEvent('work.made', About.extend({ path: z.string(), base_commit: z.string() }))
export const workRemoved = defineEvent('work.removed', About.extend({ rescue: z.string().nullable() }))
export const workRescued = defineEvent('work.rescued', About.extend({ ref: z.string(), commit: z.string() }))
export const workRestored = defineEvent('work.restored', About.extend({ ref: z.string(), request: z.string() }))
export const workFailed = defineEvent('work.failed', About.extend({ what: z.string(), message: z.string(), request: z.string() }))
