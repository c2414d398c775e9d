import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { Timestamp } from '../../kernel/schema.ts'
import { MERGE_STATES } from './store.ts'

const Merge = z.strictObject({ handle: z.string(), into: z.string() })
const Line = z.strictObject({ repo_id: z.string(), target: z.string() })

/** Their subject is the merge. */
export const mergeQueued = defineEvent('merge.queued', Merge)
export const mergeChecking = defineEvent('merge.checking', Merge.extend({ commit: z.string(), on: z.string() }))
export const mergeLanded = defineEvent('merge.landed', Merge.extend({ commit: z.string(), rebase_requests: z.int() }))
export const mergeConflicted = defineEvent('merge.conflicted', Merge.extend({ files: z.array(z.string()) }))
export const mergeRed = defineEvent('merge.red', Merge.extend({ reason: z.string() }))
export const mergeStuck = defineEvent('merge.stuck', Merge.extend({ reason: z.string() }))
export const mergeWithdrawn = defineEvent('merge.withdrawn', Merge.extend({ reason: z.string() }))
/** Their subject is the repository. */
export const lineHeld = defineEvent('line.held', Line.extend({ reason: z.string() }))
export const lineFreed = defineEvent('line.freed', Line)
export const lineMoved = defineEvent('line.moved', Line.extend({ from: z.string(), to: z.string() }))
export const lineFollowed = defineEvent(
  'line.followed',
  Line.extend({ request: z.string(), behind: z.int(), reason: z.string().nullable() }),
)

/** After any of these a merge is over. */
export const ENDS = [mergeLanded, mergeConflicted, mergeRed, mergeStuck, mergeWithdrawn]

export const MergeView = z.strictObject({
  id: z.string(),
  position: z.int().nullable().describe('In its line, from 1; null when it is over'),
  task_id: z.string(),
  handle: z.string(),
  title: z.string(),
  review_id: z.string(),
  target: z.string(),
  state: z.enum(MERGE_STATES),
  head_commit: z.string().describe('What was approved'),
  commit: z.string().nullable().describe('What it is on the line, or would be'),
  on: z.string().nullable().describe('The commit of the line that it was built on'),
  reason: z.string().nullable(),
  can_retry: z.boolean().describe('Whether merge_retry would put it back into the line'),
  files: z.array(z.string()).describe('Those in conflict'),
  log: z.string().nullable().describe('The end of what the checks printed'),
  submitted_by: z.string(),
  submitted_at: Timestamp,
  began_at: Timestamp.nullable(),
  ended_at: Timestamp.nullable(),
})

export const LineView = z.strictObject({
  repo_id: z.string(),
  repo: z.string(),
  target: z.string(),
  head: z.string().nullable(),
  green: z.string().nullable().describe('The last commit of it that the checks passed on'),
  held: z.string().nullable().describe('Why nothing moves until a person has done something'),
  behind: z.int().describe('How many commits the branch itself is behind the line'),
  behind_reason: z.string().nullable(),
  waiting: z.array(MergeView).describe('In the order of their turns'),
  ended: z.array(MergeView).describe('The last that are over, newest first'),
})
