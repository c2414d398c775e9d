import { z } from 'zod'
import type { HarnessEvent } from '../../ports/harness.ts'
import { clean, clip, visible } from '../harness-shared/lines.ts'

/** One thing in a thread. What more it has depends on its type, and on the version of the program. */
export const Item = z.looseObject({ type: z.string().max(100), id: z.string().min(1).max(500) })
export type Item = z.output<typeof Item>

/** Those that are neither said nor done by the agent. */
const QUIET = new Set(['userMessage', 'hookPrompt', 'functionCallOutput', 'subAgentActivity', 'enteredReviewMode', 'exitedReviewMode'])
const SPOKEN: Record<string, (item: Item) => HarnessEvent> = {
  agentMessage: ({ text }) => said('agent', textOf(text)),
  plan: ({ text }) => said('agent', textOf(text)),
  reasoning: ({ summary, content }) => said('thought', [...listOf(summary), ...listOf(content)].map(textOf).join('\n\n')),
  contextCompaction: () => said('program', 'What was said so far was made shorter.'),
}

interface Tool {
  name(item: Item): string
  input(item: Item): string
  ok(item: Item): boolean
  output(item: Item): string
}

const isCompleted = ({ status }: Item) => status === 'completed'

const TOOLS: Record<string, Tool> = {
  commandExecution: {
    name: () => 'command',
    input: ({ command }) => textOf(command),
    ok: (item) => isCompleted(item) && (item.exitCode ?? 0) === 0,
    output: ({ aggregatedOutput, exitCode, status }) =>
      status === 'declined' ? 'It was not allowed.' : `${textOf(aggregatedOutput)}${exitCode ? `\n(exit code ${textOf(exitCode)})` : ''}`,
  },
  fileChange: {
    name: () => 'edit',
    input: ({ changes }) => listOf(changes).map(changeOf).join('\n'),
    ok: isCompleted,
    output: ({ status }) => (status === 'declined' ? 'It was not allowed.' : textOf(status)),
  },
  mcpToolCall: {
    name: ({ server, tool }) => `${textOf(server)}.${textOf(tool)}`,
    input: (item) => textOf(item.arguments),
    ok: isCompleted,
    output: ({ result, error }) => (error ? textOf(fieldOf(error, 'message')) : contentOf(result)),
  },
  webSearch: { name: () => 'web_search', input: ({ query }) => textOf(query), ok: () => true, output: () => '' },
}

/** Tools that came after this was written are told by what they are called. */
const ANY_TOOL: Tool = {
  name: ({ type, tool }) => (typeof tool === 'string' ? tool : type),
  input: (item) => textOf(item.arguments ?? item.prompt ?? item.path),
  ok: ({ status, success }) => status !== 'failed' && status !== 'declined' && success !== false,
  output: (item) => textOf(item.contentItems ?? item.status),
}

export function begun(item: Item): HarnessEvent[] {
  const tool = toolOf(item)
  return tool ? [{ type: 'tool_call', id: plain(item.id), name: open(tool.name(item)), input: open(tool.input(item)) }] : []
}

export function ended(item: Item): HarnessEvent[] {
  const spoken = Object.hasOwn(SPOKEN, item.type) ? SPOKEN[item.type]?.(item) : undefined
  if (spoken) return spoken.type === 'text' && spoken.text === '' ? [] : [spoken]
  const tool = toolOf(item)
  return tool ? [result(item.id, tool.ok(item), tool.output(item))] : []
}

export const result = (id: string, ok: boolean, output: string): HarnessEvent => ({
  type: 'tool_result',
  id: plain(id),
  ok,
  output: plain(output),
})
export const said = (from: 'agent' | 'thought' | 'person' | 'program' | 'error', text: string): HarnessEvent => ({
  type: 'text',
  from,
  text: plain(text),
})

/** What will be changed, as the request for permission does not say it again. */
export function changesOf(item: Item): string | undefined {
  return item.type === 'fileChange' ? open(TOOLS.fileChange?.input(item) ?? '') : undefined
}

export function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export const plain = (text: string) => clip(clean(text))
/** What it wants to do: nothing of that is hidden. */
export const open = (text: string) => clip(visible(text))

export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined
}

export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

function toolOf({ type }: Item): Tool | undefined {
  if (QUIET.has(type) || Object.hasOwn(SPOKEN, type)) return undefined
  return Object.hasOwn(TOOLS, type) ? TOOLS[type] : ANY_TOOL
}

function changeOf(change: unknown): string {
  const kind = textOf(fieldOf(fieldOf(change, 'kind'), 'type'))
  return `${kind} ${textOf(fieldOf(change, 'path'))}\n${textOf(fieldOf(change, 'diff'))}`
}

function contentOf(result: unknown): string {
  const parts = listOf(fieldOf(result, 'content')).map((part) => textOf(fieldOf(part, 'text') ?? part))
  return parts.join('\n')
}
