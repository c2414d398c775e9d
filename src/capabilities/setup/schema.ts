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

/**
 * What kept packages are to a checkout:
 *
 * | kept     | when                                                                                           |
 * |----------|------------------------------------------------------------------------------------------------|
 * | none     | somebody may have worked in it: nothing there is replaced or kept                              |
 * | by_tree  | nobody has, but not all of it has landed: what its own scripts make there is for the same tree |
 * | by_files | it has what has landed and nothing else: what is made there is for all whose packages are decided by the same files |
 */
export const KEPT = ['none', 'by_tree', 'by_files'] as const
export type KeptUse = (typeof KEPT)[number]

const About = z.strictObject({ handle: z.string(), work_id: z.string(), command: z.string().nullable() })

export const setupCleaned = defineEvent(
  'setup.cleaned',
  z.strictObject({ handle: z.string(), work_id: z.string().nullable(), command: z.string(), failure: z.string().nullable() }),
)
export const setupStarted = defineEvent('setup.started', About)
export const setupEnded = defineEvent(
  'setup.ended',
  About.extend({ state: z.enum(SETUP_STATES), how: z.enum(['made', 'kept']).nullable(), reason: z.string().nullable() }),
)
