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
 * | kept  | when                                                                                              |
 * |-------|---------------------------------------------------------------------------------------------------|
 * | none  | somebody may have worked in it: nothing there is replaced                                         |
 * | given | nobody has, but not all of it has landed: scripts in it decide what a package manager makes there |
 * | made  | it has what has landed and nothing else: what is made there may be given to others                |
 */
export const KEPT = ['none', 'given', 'made'] as const
export type KeptUse = (typeof KEPT)[number]

const About = z.strictObject({ handle: z.string(), work_id: z.string(), command: z.string().nullable() })

export const setupStarted = defineEvent('setup.started', About)
export const setupEnded = defineEvent('setup.ended', About.extend({ state: z.enum(SETUP_STATES), how: z.enum(['made', 'kept']).nullable(), reason: z.string().nullable() }))
