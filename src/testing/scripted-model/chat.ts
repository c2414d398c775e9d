import { type Answer, words } from './answer.ts'
import { type Api, type Body, type Chunk, freshId, listIn, messageOf, textIn } from './api.ts'
import { type Conversation, callId, type Entry, spokenWords, stepOf } from './conversation.ts'
import type { Fault } from './script.ts'

/** OpenAI chat/completions. */
export const chat: Api = {
  name: 'chat',
  path: /\/chat\/completions$/,
  read: (body) => ({
    entries: listIn(body.messages).flatMap(entriesOf),
    tools: listIn(body.tools).map((tool) => String(tool.function?.name)),
    model: String(body.model),
    stream: body.stream === true,
    schema: body.response_format?.json_schema?.schema,
  }),
  whole(answer, conversation) {
    const message = {
      role: 'assistant',
      content: answer.text || null,
      ...reasoning(answer),
      ...(answer.calls.length ? toolCalls(answer) : {}),
    }
    const choices = [{ index: 0, finish_reason: finishOf(answer), message }]
    return { ...head(conversation, 'chat.completion'), choices, usage: usageOf(answer) }
  },
  stream(answer, conversation) {
    const common = head(conversation, 'chat.completion.chunk')
    const chunk = (delta: Body, finish_reason: string | null = null): Chunk => ({
      data: { ...common, choices: [{ index: 0, delta, finish_reason }] },
    })
    return [
      chunk({ role: 'assistant', content: '' }),
      ...words(answer.think).map((reasoning_content) => chunk({ reasoning_content })),
      ...words(answer.text).map((content) => chunk({ content })),
      ...toolCalls(answer).tool_calls.map((call, index) => chunk({ tool_calls: [{ index, ...call }] })),
      chunk({}, finishOf(answer)),
      { data: { ...common, choices: [], usage: usageOf(answer) } },
      { data: '[DONE]' },
    ]
  },
  refusal: openAiRefusal,
}

/** The same for both APIs of OpenAI. */
export function openAiRefusal(fault: Omit<Fault, 'times'>): unknown {
  const message = messageOf(fault)
  if (fault.status === 401) return { error: { message, type: 'invalid_request_error', code: 'invalid_api_key' } }
  const kind = fault.status === 429 ? 'rate_limit_exceeded' : 'server_error'
  return { error: { message, type: kind, code: kind } }
}

function entriesOf(message: Body): Entry[] {
  if (message.role === 'tool') return [{ from: 'tool', text: textIn(message.content) }]
  const text = spokenWords(textIn(message.content))
  if (message.role === 'user') return text ? [{ from: 'person', text }] : []
  if (message.role !== 'assistant') return []
  const calls: Entry[] = listIn(message.tool_calls).map((call) => ({ from: 'call', step: stepOf(call.id) }))
  return [...(text ? [{ from: 'model' as const, text }] : []), ...calls]
}

function head({ model }: Conversation, object: string) {
  return { id: freshId('chatcmpl-'), object, created: Math.floor(Date.now() / 1000), model }
}

function reasoning({ think }: Answer) {
  return think ? { reasoning_content: think } : {}
}

function toolCalls({ calls, step }: Answer) {
  const tool_calls = calls.map(({ name, args, patch }, i) => ({
    id: `call_${callId(step, i)}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(patch === undefined ? args : { patchText: patch }) },
  }))
  return { tool_calls }
}

function finishOf({ calls }: Answer): string {
  return calls.length > 0 ? 'tool_calls' : 'stop'
}

function usageOf({ usage: { input, output, cached } }: Answer) {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached ?? 0 },
  }
}
