import { z } from 'zod'

/**
 * As much of the Agent Client Protocol, version 1, as is read here. Looser than its own schema: a field that a program got wrong must not
 * hide the rest of what it said. acp.test.ts holds the official types against these.
 */
export const PROTOCOL_VERSION = 1

const Meta = z.record(z.string(), z.unknown()).nullish().catch(undefined)
const text = z.string().nullish().catch(undefined)
const listOf = <T extends z.ZodType>(item: T) => z.array(item.nullable().catch(null as never)).catch([])

const Block = z.object({ type: z.string(), text })

export const Initialized = z.object({
  protocolVersion: z.number(),
  agentInfo: z.object({ name: z.string() }).nullish().catch(undefined),
  agentCapabilities: z
    .object({
      loadSession: z.boolean().nullish().catch(undefined),
      sessionCapabilities: z.object({ resume: z.unknown().optional() }).nullish().catch(undefined),
    })
    .nullish()
    .catch(undefined),
  authMethods: listOf(z.object({ name: text, description: text })).nullish(),
})

const Mode = z.object({ id: z.string() })
const Choice = z.object({ id: z.string(), category: text, type: text })

/** The answer to session/new, session/load and session/resume; the last two name no session. */
export const Opened = z.object({
  sessionId: text,
  modes: z
    .object({ availableModes: listOf(Mode) })
    .nullish()
    .catch(undefined),
  configOptions: listOf(Choice).nullish().catch(undefined),
  /** Older than the options, and no part of the stable protocol any more; programs still have it. */
  models: z.unknown().optional(),
})
export type Opened = z.output<typeof Opened>

export const Prompted = z.object({ stopReason: z.string(), usage: z.unknown().optional(), _meta: Meta })
export type Prompted = z.output<typeof Prompted>

/** Of a diff: the whole file as it was and as it will be. */
const Content = z.object({ type: z.string(), content: Block.nullish().catch(undefined), path: text, oldText: text, newText: text })
export type Content = z.output<typeof Content>

export const Call = z.object({
  toolCallId: z.string(),
  name: text,
  title: text,
  kind: text,
  status: text,
  rawInput: z.unknown().optional(),
  rawOutput: z.unknown().optional(),
  content: listOf(Content).nullish(),
  _meta: Meta,
})
export type Call = z.output<typeof Call>

export const Update = z.discriminatedUnion('sessionUpdate', [
  z.object({ sessionUpdate: z.enum(['agent_message_chunk', 'agent_thought_chunk']), content: Block, messageId: text }),
  Call.extend({ sessionUpdate: z.enum(['tool_call', 'tool_call_update']) }),
])
export type Update = z.output<typeof Update>

export const Updated = z.object({ sessionId: z.string(), update: z.unknown().optional() })

const Option = z.object({ optionId: z.string(), kind: z.string() })
export const Asked = z.object({ toolCall: Call, options: listOf(Option) })
export type Asked = z.output<typeof Asked>
