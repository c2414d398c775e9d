import { z } from 'zod'
import { Timestamp } from '../../kernel/schema.ts'

/** Now: somebody stands still until a person has answered. Soon: it does not go on without a person. Later: a person may begin it. */
export const URGENCIES = ['now', 'soon', 'later'] as const
export const Urgency = z.enum(URGENCIES)
export type UrgencyName = (typeof URGENCIES)[number]

export const StepView = z.strictObject({ tool: z.string(), arguments: z.record(z.string(), z.unknown()) })

export const NeedView = z.strictObject({
  kind: z.string(),
  urgency: Urgency,
  id: z.string(),
  handle: z.string().nullable(),
  title: z.string(),
  detail: z.string().nullable().describe('Why it is stuck'),
  by: z.string().nullable().describe('Who asks, or who it is assigned to'),
  task_id: z.string().nullable(),
  project_id: z.string().nullable(),
  began_at: Timestamp.describe('When it began to wait'),
  steps: z.array(StepView).describe('Calls that resolve it; replace `…` with your own words'),
})

export const KindView = z.strictObject({ kind: z.string(), title: z.string(), urgency: Urgency, count: z.int() })
