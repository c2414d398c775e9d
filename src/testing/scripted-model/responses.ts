import { type Answer, words } from './answer.ts'
import { type Api, type Body, type Chunk, freshId, listIn, textIn } from './api.ts'
import { openAiRefusal } from './chat.ts'
import { type Conversation, callId, type Entry, spokenWords, stepOf } from './conversation.ts'
import type { NamedCall } from './tools.ts'

/** What Codex says in the name of its person. */
const CONTEXT = /^\s*(<(environment_context|user_instructions|turn_aborted|permissions|recommended_plugins|skills)|# AGENTS\.md)/

/** Tools in this API may stand in a namespace, may take a text, or may be reachable only from a program that a tool runs. */
interface Layout {
  names: string[]
  spaces: Map<string, { namespace: string; name: string }>
  takesText: Set<string>
  codeMode: boolean
}

interface ResponsesConversation extends Conversation {
  layout: Layout
}

/** OpenAI Responses. */
export const responses: Api = {
  name: 'responses',
  path: /\/responses$/,
  read(body): ResponsesConversation {
    const items = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : listIn(body.input)
    const layout = layoutOf(listIn(body.tools), items)
    return {
      entries: items.flatMap(entriesOf),
      tools: layout.names,
      model: String(body.model),
      stream: body.stream === true,
      schema: body.text?.format?.schema,
      layout,
    }
  },
  whole: (answer, conversation) => response(answer, conversation, outputOf(answer, conversation as ResponsesConversation)),
  stream(answer, conversation) {
    const output = outputOf(answer, conversation as ResponsesConversation)
    const whole = response(answer, conversation, output)
    const chunks = [
      { type: 'response.created', response: { ...whole, status: 'in_progress', output: [], usage: null } },
      ...output.flatMap(itemEvents),
      { type: 'response.completed', response: whole },
    ]
    return chunks.map((data, sequence_number): Chunk => ({ event: data.type, data: { ...data, sequence_number } }))
  },
  refusal: openAiRefusal,
}

function entriesOf(item: Body): Entry[] {
  const type = String(item.type ?? 'message')
  if (type.endsWith('_call_output')) return [{ from: 'tool', text: textIn(item.output?.content ?? item.output) }]
  if (type.endsWith('_call')) return [{ from: 'call', step: stepOf(item.call_id) }]
  const text = spokenWords(textIn(item.content))
  if (type !== 'message' || !text) return []
  if (item.role === 'assistant') return [{ from: 'model', text }]
  return item.role === 'user' && !CONTEXT.test(text) ? [{ from: 'person', text }] : []
}

function layoutOf(tools: Body[], items: Body[]): Layout {
  const added = items.filter((item) => item.type === 'additional_tools').flatMap((item) => listIn(item.tools))
  const codeMode = added.some((tool) => tool.name === 'functions' && listIn(tool.tools).some((inner) => inner.name === 'exec'))
  const layout: Layout = { names: codeMode ? ['exec_command', 'apply_patch'] : [], spaces: new Map(), takesText: new Set(), codeMode }
  for (const tool of tools) {
    if (tool.type === 'namespace') for (const inner of listIn(tool.tools)) addSpaced(layout, tool.name, inner.name)
    else layout.names.push(String(tool.name ?? tool.type))
    if (tool.type === 'custom') layout.takesText.add(tool.name)
  }
  return layout
}

function addSpaced(layout: Layout, namespace: string, name: string): void {
  const whole = `${namespace}${namespace.endsWith('__') ? '' : '__'}${name}`
  layout.names.push(whole)
  layout.spaces.set(whole, { namespace, name })
}

function outputOf(answer: Answer, { layout }: ResponsesConversation): Body[] {
  const { think, text, calls, step } = answer
  return [
    ...(think
      ? [{ type: 'reasoning', id: freshId('rs_'), summary: [{ type: 'summary_text', text: think }], encrypted_content: 'c2NyaXB0ZWQ=' }]
      : []),
    ...(text
      ? [
          {
            type: 'message',
            id: freshId('msg_'),
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text, annotations: [] }],
          },
        ]
      : []),
    ...calls.map((call, i) => callItem(call, `call_${callId(step, i)}`, layout)),
  ]
}

function callItem({ name, args, patch }: NamedCall, call_id: string, layout: Layout): Body {
  const common = { id: freshId('fc_'), call_id, status: 'completed' }
  if (layout.codeMode) {
    const given = JSON.stringify(patch ?? args)
    const input = `const r = await tools.${name}(${given}); text(r?.content?.[0]?.text ?? r?.output ?? r);`
    return { type: 'custom_tool_call', ...common, name: 'exec', namespace: 'functions', input }
  }
  if (patch !== undefined && layout.takesText.has(name)) return { type: 'custom_tool_call', ...common, name, input: patch }
  const where = layout.spaces.get(name) ?? (layout.names.includes(name) ? { name } : deferred(name)) ?? { name }
  return { type: 'function_call', ...common, ...where, arguments: JSON.stringify(patch === undefined ? args : { input: patch }) }
}

/** A tool that the program shows only to who searches for it: it can be called all the same. */
function deferred(name: string): { namespace: string; name: string } | undefined {
  const [, namespace, tool] = /^(mcp__.+?)__(.+)$/.exec(name) ?? []
  return namespace && tool ? { namespace, name: tool } : undefined
}

function response({ usage: { input, output: out, cached } }: Answer, { model }: Conversation, output: Body[]) {
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached ?? 0 },
    output_tokens: out,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + out,
  }
  const created_at = Math.floor(Date.now() / 1000)
  return { id: freshId('resp_'), object: 'response', created_at, model, status: 'completed', output, usage }
}

function itemEvents(item: Body, output_index: number): Body[] {
  return [
    { type: 'response.output_item.added', output_index, item: emptied(item) },
    ...partEvents(item).map((event) => ({ ...event, item_id: item.id, output_index })),
    { type: 'response.output_item.done', output_index, item },
  ]
}

function emptied(item: Body): Body {
  if (item.type === 'message') return { ...item, status: 'in_progress', content: [] }
  if (item.type === 'reasoning') return { ...item, summary: [] }
  return { ...item, status: 'in_progress', ...(item.arguments === undefined ? { input: '' } : { arguments: '' }) }
}

function partEvents(item: Body): Body[] {
  if (item.type === 'message') {
    const { text } = item.content[0]
    const deltas = words(text).map((delta) => ({ type: 'response.output_text.delta', content_index: 0, delta }))
    return [...deltas, { type: 'response.output_text.done', content_index: 0, text }]
  }
  if (item.type === 'reasoning') {
    const { text } = item.summary[0]
    const part = { summary_index: 0 }
    return [
      { type: 'response.reasoning_summary_part.added', ...part, part: { type: 'summary_text', text: '' } },
      ...words(text).map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...part, delta })),
      { type: 'response.reasoning_summary_text.done', ...part, text },
    ]
  }
  return item.type === 'function_call' ? [{ type: 'response.function_call_arguments.done', arguments: item.arguments }] : []
}
