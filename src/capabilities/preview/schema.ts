import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { Timestamp } from '../../kernel/schema.ts'

/**
 * | state    | means                                                       |
 * |----------|-------------------------------------------------------------|
 * | starting | its worktree is made ready, or its program has not answered |
 * | ready    | its program answers at `url`                                |
 * | ended    | somebody ended it, or its time was over                     |
 * | failed   | its program ended by itself, or never answered              |
 */
export const PREVIEW_STATES = ['starting', 'ready', 'ended', 'failed'] as const
export type PreviewState = (typeof PREVIEW_STATES)[number]

export const PreviewView = z.strictObject({
  id: z.string(),
  task_id: z.string(),
  handle: z.string(),
  state: z.enum(PREVIEW_STATES),
  url: z.string().nullable().describe('While it is ready; on its machine'),
  command: z.string(),
  host: z.string().nullable().describe('The daemon on whose machine it runs'),
  reason: z.string().nullable().describe('Why it is over'),
  started_by: z.string(),
  started_at: Timestamp,
  ended_at: Timestamp.nullable(),
})

const About = z.strictObject({ handle: z.string(), command: z.string() })

export const previewStarting = defineEvent('preview.starting', About)
export const previewStarted = defineEvent('preview.started', About.extend({ host: z.string() }))
export const previewReady = defineEvent('preview.ready', About.extend({ url: z.string() }))
export const previewEnded = defineEvent('preview.ended', About.extend({ state: z.enum(['ended', 'failed']), reason: z.string() }))
