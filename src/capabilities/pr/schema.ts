import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { Timestamp } from '../../kernel/schema.ts'
import { PrId } from '../ids.ts'

export const PrView = z.strictObject({
  id: PrId,
  number: z.int().describe('Counted in its repository'),
  repo_id: z.string(),
  project_id: z.string(),
  task_id: z.string().nullable(),
  epic_id: z.string().nullable(),
  head: z.string(),
  base: z.string(),
  title: z.string(),
  description: z.string(),
  state: z.enum(['OPEN', 'MERGED', 'CLOSED']),
  merge_commit: z.string().nullable(),
  url: z.string().describe('Where it is on the dashboard'),
  created_by: z.string(),
  created_at: Timestamp,
  updated_at: Timestamp,
  merged_at: Timestamp.nullable(),
})

export const prOpened = defineEvent('pr.opened', z.strictObject({ number: z.int(), head: z.string(), base: z.string(), title: z.string() }))
export const prMerged = defineEvent('pr.merged', z.strictObject({ number: z.int(), commit: z.string() }))

export const prClosed = defineEvent('pr.closed', z.strictObject({ number: z.int(), reason: z.string() }))
