import { type Answer, words } from './answer.ts'
import { type Api, type Body, type Chunk, freshId, listIn, messageOf, textIn } from './api.ts'
import { type Conversation, callId, type Entry, spokenWords, stepOf } from './conversation.ts'

const KINDS: Record<number, string> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}
/** Claude Code folds what a person says in mid-turn into a reminder, as the person or as the system. */
const IN_MID_TURN =
  /The user sent a new message while you were working:\n([\s\S]*?)(?:\n\n(?:IMPORTANT:|This is how Claude Code)[\s\S]*)?(?:<\/system-reminder>|$)/

/** Anthropic Messages. */
export const anthropic: Api = {
  name: 'anthropic',
  path: /\/messages$/,
  read: (body) => ({
    entries: listIn(body.messages).flatMap(entriesOf),
    tools: listIn(body.tools).map((tool) => String(tool.name)),
    model: String(body.model),
    stream: body.stream === true,
    schema: (body.output_config?.format ?? body.output_format)?.schema,
  }),
  whole: (answer, conversation) => ({
    ...head(conversation),
    content: blocks(answer),
    stop_reason: stopOf(answer),
    usage: usageOf(answer),
  }),
  stream: (answer, conversation) => [
    started(answer, conversation),
    ...blocks(answer).flatMap(blockChunks),
    named({
      type: 'message_delta',
      delta: { stop_reason: stopOf(answer), stop_sequence: null },
      usage: { output_tokens: answer.usage.output },
    }),
    named({ type: 'message_stop' }),
  ],
  refusal: (fault) => ({ type: 'error', error: { type: KINDS[fault.status] ?? 'api_error', message: messageOf(fault) } }),
}

function entriesOf(message: Body): Entry[] {
  const parts = typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : listIn(message.content)
  if (message.role === 'assistant') return parts.flatMap(saidByModel)
  const results: Entry[] = parts.filter((part) => part.type === 'tool_result').map((part) => ({ from: 'tool', text: textIn(part.content) }))
  return [...results, ...saidByPerson(message.role, textIn(parts.filter((part) => part.type === 'text')))]
}

function saidByModel(part: Body): Entry[] {
  if (part.type === 'tool_use') return [{ from: 'call', step: stepOf(part.id) }]
  return part.type === 'text' && part.text ? [{ from: 'model', text: part.text }] : []
}

function saidByPerson(role: string, text: string): Entry[] {
  const folded = IN_MID_TURN.exec(text)?.[1]?.trim()
  if (folded) return [{ from: 'person', text: folded }]
  const own = role === 'user' ? spokenWords(text) : ''
  return own ? [{ from: 'person', text: own }] : []
}

function head({ model }: Conversation) {
  return { id: freshId('msg_'), type: 'message', role: 'assistant', model, stop_sequence: null }
}

function stopOf({ calls }: Answer): string {
  return calls.length > 0 ? 'tool_use' : 'end_turn'
}

function usageOf({ usage }: Answer) {
  return {
    input_tokens: usage.input,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cached ?? 0,
    output_tokens: usage.output,
  }
}

function blocks({ think, text, calls, step }: Answer): Body[] {
  return [
    ...(think ? [{ type: 'thinking', thinking: think, signature: 'c2NyaXB0ZWQ=' }] : []),
    ...(text ? [{ type: 'text', text }] : []),
    ...calls.map(({ name, args, patch }, i) => ({
      type: 'tool_use',
      id: `toolu_${callId(step, i)}`,
      name,
      input: patch === undefined ? args : { patch },
    })),
  ]
}

function started(answer: Answer, conversation: Conversation): Chunk {
  const usage = { ...usageOf(answer), output_tokens: 1 }
  return named({ type: 'message_start', message: { ...head(conversation), content: [], stop_reason: null, usage } })
}

function blockChunks(block: Body, index: number): Chunk[] {
  return [
    named({ type: 'content_block_start', index, content_block: emptied(block) }),
    ...deltas(block).map((delta) => named({ type: 'content_block_delta', index, delta })),
    named({ type: 'content_block_stop', index }),
  ]
}

function emptied(block: Body): Body {
  if (block.type === 'text') return { type: 'text', text: '' }
  return block.type === 'thinking' ? { type: 'thinking', thinking: '', signature: '' } : { ...block, input: {} }
}

function deltas(block: Body): Body[] {
  if (block.type === 'text') return words(block.text).map((text) => ({ type: 'text_delta', text }))
  if (block.type === 'tool_use') return [{ type: 'input_json_delta', partial_json: JSON.stringify(block.input) }]
  return [
    ...words(block.thinking).map((thinking) => ({ type: 'thinking_delta', thinking })),
    { type: 'signature_delta', signature: block.signature },
  ]
}

function named(data: { type: string } & Record<string, unknown>): Chunk {
  return { event: data.type, data }
}
