import { z } from 'zod'
import type { LoggedEvent } from './event.ts'

/** Text that a person or a model wrote. Always bounded: an unbounded field is a way to fill the disk. */
export const text = (max: number) => z.string().min(1).max(max)
export const optionalText = (max: number) => z.string().max(max)

export const Timestamp = z.iso.datetime().describe('ISO 8601, UTC')
export const iso = (ms: number) => new Date(ms).toISOString()
export const isoOrNull = (ms: number | null) => (ms === null ? null : iso(ms))

export const PageSize = z.int().min(1).max(200).default(50).describe('How many at the most')
export const PageToken = z.string().max(100).describe('`next` of the page before')

export const TimeoutSeconds = z
  .number({ error: 'INVALID_TIMEOUT: a timeout is a number of seconds above 0' })
  .gt(0, 'INVALID_TIMEOUT: a timeout is a number of seconds above 0')
  .describe('How long to wait; capped by the server')

export const CursorText = z.string().max(64).describe('From an earlier answer: resume there and miss nothing')

export const EventView = z.strictObject({
  cursor: CursorText,
  at: Timestamp,
  type: z.string(),
  subject: z.string(),
  actor: z.string(),
  project_id: z.string().nullable(),
  task_id: z.string().nullable(),
  data: z.record(z.string(), z.unknown()),
})

export function eventView(event: LoggedEvent): z.output<typeof EventView> {
  const { cursor, type, subject, actor, data } = event
  return { cursor, at: iso(event.at), type, subject, actor, project_id: event.project ?? null, task_id: event.task ?? null, data }
}
