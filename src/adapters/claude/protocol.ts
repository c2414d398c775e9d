import { z } from 'zod'

/** It goes back to the program, and a session even into its arguments: nothing that could be anything else. */
const Id = z.string().regex(/^[\w.:-]{1,200}$/)
const Session = z.string().regex(/^\w[\w-]{0,99}$/)
const Count = z.int().min(0).max(1e12)
const Fields = z.record(z.string(), z.unknown())

const Block = z.object({
  type: z.string(),
  id: Id.optional().catch(undefined),
  tool_use_id: Id.optional().catch(undefined),
  name: z.string().optional().catch(undefined),
  text: z.string().optional().catch(undefined),
  thinking: z.string().optional().catch(undefined),
  input: z.unknown().optional(),
  content: z.unknown().optional(),
  is_error: z.boolean().optional().catch(undefined),
})
export type Block = z.output<typeof Block>

const Blocks = z.array(z.unknown()).transform((all) => all.flatMap((one) => Block.safeParse(one).data ?? []))
/** The content of a message may also be one text. */
const Message = z.object({ content: Blocks.catch([]) })

/** What was used with one model, from the beginning of the count. */
const ModelUsage = z.object({
  inputTokens: Count,
  outputTokens: Count,
  cacheReadInputTokens: Count.catch(0),
  cacheCreationInputTokens: Count.catch(0),
  costUSD: z.number().min(0).max(1e9).catch(0),
})
const Models = z.record(z.string(), ModelUsage).refine((all) => Object.keys(all).length <= 100)
export type Models = z.output<typeof Models>

/** The lines that mean something to us. Every field may be missing in some version, or be anything when the line is somebody else's. */
export const Line = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('system'),
    subtype: z.string(),
    session_id: Session.optional().catch(undefined),
    mcp_servers: z
      .array(z.object({ name: z.string(), status: z.string() }))
      .max(1_000)
      .catch([]),
    error_status: z.int().nullable().catch(null),
    error: z.string().catch(''),
    attempt: z.int().catch(0),
    max_retries: z.int().catch(0),
    retry_delay_ms: z.number().min(0).max(1e12).nullable().catch(null),
  }),
  z.object({ type: z.literal('assistant'), message: Message, error: z.string().optional().catch(undefined) }),
  z.object({
    type: z.literal('user'),
    message: Message,
    uuid: Id.optional().catch(undefined),
    isReplay: z.boolean().optional().catch(undefined),
  }),
  z.object({ type: z.literal('command_lifecycle'), command_uuid: Id, state: z.string() }),
  z.object({
    type: z.literal('rate_limit_event'),
    rate_limit_info: z.object({ status: z.string(), resetsAt: z.number().min(0).max(1e11).optional().catch(undefined) }),
  }),
  z.object({
    type: z.literal('result'),
    subtype: z.string(),
    is_error: z.boolean().catch(false),
    api_error_status: z.int().nullable().catch(null),
    terminal_reason: z.string().catch(''),
    startup_failure_reason: z.string().optional().catch(undefined),
    result: z.string().catch(''),
    errors: z.array(z.string()).max(100).catch([]),
    modelUsage: Models.optional().catch(undefined),
    model_usage_since_last_result: Models.optional().catch(undefined),
    permission_denials: z
      .array(z.object({ tool_name: z.string() }))
      .max(10_000)
      .catch([]),
    queued_turn_count: z.int().catch(0),
    user_message_uuids: z.array(Id).max(1_000).catch([]),
  }),
  z.object({
    type: z.literal('control_request'),
    request_id: Id,
    request: z.object({ subtype: z.string(), tool_name: z.string().catch(''), input: Fields.catch({}) }),
  }),
  z.object({ type: z.literal('control_cancel_request'), request_id: Id }),
  z.object({
    type: z.literal('control_response'),
    response: z.object({
      request_id: Id,
      response: z
        .object({ session: z.object({ model_usage: Models }) })
        .optional()
        .catch(undefined),
    }),
  }),
])
export type Line = z.output<typeof Line>
export type Of<T extends Line['type']> = Extract<Line, { type: T }>

const USAGE = 'usage'

export const isUsage = ({ response }: Of<'control_response'>) => response.request_id === USAGE

/** All but what it used itself is left out: that would be looked for in every transcript of a week. */
export const askUsage = () => request(USAGE, { subtype: 'get_usage', skip_behaviors: true })
export const interruption = (id: string) => request(id, { subtype: 'interrupt' })

/** A text that begins with a slash would be taken for a command of the program's own, as "/clear", or would wait for the end of the turn. */
export function userMessage(text: string, uuid: string): string {
  const content = [{ type: 'text', text: text.trimStart().startsWith('/') ? `Message: ${text}` : text }]
  return line({ type: 'user', uuid, message: { role: 'user', content } })
}

export const answer = (request_id: string, response: object) =>
  line({ type: 'control_response', response: { subtype: 'success', request_id, response } })

export const refusal = (request_id: string, error: string) =>
  line({ type: 'control_response', response: { subtype: 'error', request_id, error } })

function request(request_id: string, request: object): string {
  return line({ type: 'control_request', request_id, request })
}

function line(message: object): string {
  return `${JSON.stringify(message)}\n`
}
