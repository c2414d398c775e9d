import type { HarnessEvent } from '../../ports/harness.ts'
import { clean, clip, visible } from '../harness-shared/lines.ts'
import type { Call, Content, Update } from './protocol.ts'
import { type Doing, type Held, telling, withState } from './state.ts'

const MOST_HELD = 64
const MOST_DONE = 64
const MOST_ID = 200
/** So much of an input is kept for a call of which nobody says it again. */
const MOST_HELD_INPUT = 20_000
/** A long answer is told in pieces of about this length: to wait for its end would show nothing for minutes. */
const LONG_SPEECH = 4_000

export type Chunk = Extract<Update, { sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk' }>

/** A word at a time would flood the transcript: words are told together, up to a call, another message or the end of the turn. */
export function heard(doing: Doing, { sessionUpdate, content, messageId }: Chunk): Doing {
  const from = sessionUpdate === 'agent_message_chunk' ? 'agent' : 'thought'
  const message = (messageId ?? '').slice(0, MOST_ID)
  const { speech } = doing.state
  const goesOn = speech !== null && speech.from === from && speech.message === message
  const before = goesOn ? doing : spoken(doing)
  const text = (goesOn ? speech.text : '') + (content.text ?? (content.type === 'text' ? '' : `[${content.type}]`))
  const cut = text.length > LONG_SPEECH ? Math.max(text.lastIndexOf('\n') + 1, text.length - LONG_SPEECH) : 0
  const told = cut > 0 ? said(before, from, text.slice(0, cut)) : before
  return withState(told, { speech: { from, text: text.slice(cut), message } })
}

/** What was said so far is told. */
export function spoken(doing: Doing): Doing {
  const { speech } = doing.state
  return speech ? withState(said(doing, speech.from, speech.text), { speech: null }) : doing
}

function said(doing: Doing, from: 'agent' | 'thought', text: string): Doing {
  return text.trim() ? telling(doing, { type: 'text', from, text: clip(clean(text.trimEnd())) }) : doing
}

/** How a program names its tools, where the protocol's own field is empty. */
export type NameOf = (call: Call) => string | undefined

export const callId = (call: Call) => clean(call.toolCallId).slice(0, MOST_ID)

export function toolName(call: Call, nameOf: NameOf): string {
  return (
    visible(nameOf(call) ?? call.name ?? call.title ?? call.kind ?? 'tool')
      .slice(0, MOST_ID)
      .toWellFormed() || 'tool'
  )
}

/**
 * Something is said of a call. Programs announce one before its input is known, some only ask permission for it or tell its end: it is told
 * once, with its input, before its result.
 */
export function called(doing: Doing, call: Call, nameOf: NameOf, input = inputOf): Doing {
  const id = callId(call)
  const { story, held, done } = doing.state
  if (done.includes(id)) return doing
  const known = held.find((one) => one.id === id)
  const now: Held = { id, name: known?.name ?? toolName(call, nameOf), input: input(call, known) }
  const isAnnouncement = !known && !story.open.includes(id) && call.status === 'pending'
  if (isAnnouncement) return holding(spoken(doing), now)
  const told = story.open.includes(id) ? doing : begin(withState(spoken(doing), { held: held.filter((one) => one.id !== id) }), now)
  if (call.status !== 'completed' && call.status !== 'failed') return told
  return ended(told, { type: 'tool_result', id, ok: call.status === 'completed', output: outputOf(call) })
}

/** A permission is asked for it, so its input is known. */
export function calledNow(doing: Doing, call: Call, nameOf: NameOf): Doing {
  return called(doing, { ...call, status: 'in_progress' }, nameOf, askedInput)
}

/** The turn is over: what was announced is told, and no call stays without a result. */
export function settled(doing: Doing): Doing {
  const told = doing.state.held.reduce(begin, withState(spoken(doing), { held: [] }))
  return told.state.story.open.reduce(
    (now, id) => ended(now, { type: 'tool_result', id, ok: false, output: 'Its turn ended without a result of it.' }),
    told,
  )
}

function begin(doing: Doing, { id, name, input }: Held): Doing {
  return telling(doing, { type: 'tool_call', id, name, input: clip(input) })
}

function ended(doing: Doing, result: Extract<HarnessEvent, { type: 'tool_result' }>): Doing {
  const done = [...doing.state.done.filter((id) => id !== result.id), result.id].slice(-MOST_DONE)
  return telling(withState(doing, { done }), result)
}

/** When too many are held the oldest is told as it is. */
function holding(doing: Doing, call: Held): Doing {
  const held = [...doing.state.held, { ...call, input: clip(call.input, 0, MOST_HELD_INPUT) }]
  if (held.length <= MOST_HELD) return withState(doing, { held })
  return begin(withState(doing, { held: held.slice(1) }), held[0] as Held)
}

/** What the program passed on; else what it shows of it, its title too where that says more than the name. */
function inputOf(call: Call, known?: Held): string {
  const raw = shown(call.rawInput)
  if (raw) return visible(raw)
  if (known?.input) return known.input
  return visible([call.title, contentOf(call)].filter(Boolean).join('\n'))
}

/** What permission is asked for is all of that: what was announced, and what the question adds, as what would be written. */
export function askedInput(call: Call, known?: Held): string {
  const now = inputOf(call)
  if (!known?.input || shown(call.rawInput) || now.startsWith(known.input)) return now
  const more = visible(contentOf(call))
  return more ? `${known.input}\n${more}` : known.input
}

function outputOf(call: Call): string {
  const { terminal_output_delta } = (call._meta ?? {}) as { terminal_output_delta?: { data?: unknown } | null }
  return clip(clean(contentOf(call) || shown(call.rawOutput) || shown(terminal_output_delta?.data)))
}

function contentOf({ content }: Call): string {
  return (content ?? []).flatMap((part) => part?.content?.text ?? (part?.path ? [part.path, ...changeOf(part)] : [])).join('\n')
}

/** The lines that change, and how many are the same before and after them: an edit of a long file would not fit. */
function changeOf({ oldText, newText }: Content): string[] {
  if (typeof newText !== 'string') return []
  const [before, after] = [linesOf(oldText ?? ''), linesOf(newText)]
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head++
  let tail = 0
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++
  const same = (count: number) => (count ? [`  (${count} more that stay as they are)`] : [])
  return [
    ...same(head),
    ...before.slice(head, before.length - tail).map((line) => `- ${line}`),
    ...after.slice(head, after.length - tail).map((line) => `+ ${line}`),
    ...same(tail),
  ]
}

const linesOf = (text: string) => (text === '' ? [] : text.split('\n'))

function shown(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  const text = JSON.stringify(value)
  return text === '{}' || text === '[]' ? '' : text
}
