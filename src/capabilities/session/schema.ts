import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { Timestamp } from '../../kernel/schema.ts'

/**
 * | state   | means                                                             |
 * |---------|-------------------------------------------------------------------|
 * | opening | its worktree, token and terminal are being made                   |
 * | open    | its terminal is there                                             |
 * | closed  | it was closed, its program ended, or it could not be opened       |
 * | lost    | its terminal went away by itself                                  |
 */
export const SESSION_STATES = ['opening', 'open', 'closed', 'lost'] as const
export type SessionState = (typeof SESSION_STATES)[number]

/**
 * | prompt       | means                                                        |
 * |--------------|--------------------------------------------------------------|
 * | none         | the program takes none: a shell                              |
 * | waiting      | the program is starting, or the prompt is on its way         |
 * | needs_input  | a dialog waits for a person; after it the prompt is sent     |
 * | sent         | the program took it                                          |
 * | not_verified | it was pasted; whether the program took it is not known      |
 * | failed       | it was not sent                                              |
 */
export const PROMPT_STATES = ['none', 'waiting', 'needs_input', 'sent', 'not_verified', 'failed'] as const
export type PromptState = (typeof PROMPT_STATES)[number]

export const SessionView = z.strictObject({
  id: z.string(),
  task_id: z.string(),
  program: z.string(),
  name: z.string(),
  host: z.string().nullable(),
  state: z.enum(SESSION_STATES),
  reason: z.string().nullable(),
  prompt: z.enum(PROMPT_STATES),
  prompt_detail: z.string().nullable(),
  agent_id: z.string(),
  opened_by: z.string(),
  attach: z.string().nullable().describe('The command that shows it in your own terminal'),
  attach_argv: z.array(z.string()).nullable(),
  opened_at: Timestamp,
  closed_at: Timestamp.nullable(),
})

const About = z.strictObject({ handle: z.string(), program: z.string() })

export const sessionOpening = defineEvent('session.opening', About)
export const sessionOpened = defineEvent('session.opened', About.extend({ host: z.string() }))
export const sessionPrompted = defineEvent(
  'session.prompted',
  About.extend({ prompt: z.enum(PROMPT_STATES), detail: z.string().nullable() }),
)
export const sessionTyped = defineEvent(
  'session.typed',
  About.extend({ request: z.string(), by: z.string(), characters: z.int(), keys: z.array(z.string()), problem: z.string().nullable() }),
)
export const sessionClosing = defineEvent('session.closing', About)
export const sessionClosed = defineEvent('session.closed', About.extend({ state: z.enum(SESSION_STATES), reason: z.string() }))
