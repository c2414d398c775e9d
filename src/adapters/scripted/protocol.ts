import { z } from 'zod'

const Id = z.string().max(200)

/** What the program prints, one JSON object a line. It has no times in it: the same script prints the same lines. */
export const Printed = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('ready'), session: Id }),
  z.strictObject({ type: z.literal('turn_started') }),
  z.strictObject({ type: z.literal('turn_ended'), how: z.enum(['completed', 'interrupted', 'failed']) }),
  z.strictObject({ type: z.literal('text'), from: z.enum(['agent', 'thought']), text: z.string() }),
  z.strictObject({ type: z.literal('tool_call'), id: Id, name: Id, input: z.string() }),
  z.strictObject({ type: z.literal('tool_result'), id: Id, ok: z.boolean(), output: z.string() }),
  z.strictObject({
    type: z.literal('usage'),
    input_tokens: z.int().min(0),
    output_tokens: z.int().min(0),
    cost_usd: z.number().min(0).nullable(),
  }),
  z.strictObject({ type: z.literal('limit'), message: z.string(), resets_in_seconds: z.int().min(0).max(1_000_000_000).nullable() }),
  z.strictObject({ type: z.literal('failed'), reason: z.string() }),
])
export type Printed = z.output<typeof Printed>

/** What it reads, one JSON object a line. */
export const Heard = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('message'), text: z.string() }),
  z.strictObject({ type: z.literal('interrupt') }),
])
export type Heard = z.output<typeof Heard>

/** How the program learns what to do. Its token comes by file alone. */
export const ENV = {
  url: 'SIGNALBOX_URL',
  tokenFile: 'SIGNALBOX_TOKEN_FILE',
  task: 'SIGNALBOX_TASK',
  /** A file that holds the script; without it the task's description does. */
  script: 'SIGNALBOX_SCRIPT',
  /** The same, by a path in the worktree. */
  file: 'SIGNALBOX_SCRIPT_FILE',
  /** Set when this is not its first life. */
  resumed: 'SIGNALBOX_RESUMED',
} as const

/** The provider gives no more: as sysexits call a failure that passes. */
export const EXIT_LIMIT = 75
