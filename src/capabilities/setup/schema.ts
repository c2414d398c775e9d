import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'

/**
 * | state   | means                                                |
 * |---------|------------------------------------------------------|
 * | running | it waits for its turn in the repository, or runs     |
 * | ready   | it has passed: whoever waited for it has begun       |
 * | failed  | it did not pass; the next one who begins there tries again |
 */
export const SETUP_STATES = ['running', 'ready', 'failed'] as const
export type SetupState = (typeof SETUP_STATES)[number]

const About = z.strictObject({ work_id: z.string(), command: z.string().nullable() })

export const setupStarted = defineEvent('setup.started', About)
export const setupEnded = defineEvent('setup.ended', About.extend({ state: z.enum(SETUP_STATES), reason: z.string().nullable() }))
