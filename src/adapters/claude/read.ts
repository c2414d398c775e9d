import { type HarnessEvent, MOST_QUESTIONS } from '../../ports/harness.ts'
import { clean, clip, type Line as Printed, printable, visible } from '../harness-shared/lines.ts'
import { parsed } from '../harness-shared/rpc.ts'
import { notAskedAnyMore } from '../harness-shared/story.ts'
import { failureOf, limitOf } from './failures.ts'
import { answer, askUsage, type Block, isUsage, Line, type Models, type Of, refusal } from './protocol.ts'
import type { State } from './state.ts'
import { totalsOf, usedSince, without } from './usage.ts'

/** What one line leaves. The events are as the program would have them; the story makes them fit together. */
export interface Read {
  state: State
  events: HarnessEvent[]
  send?: string[]
  close?: boolean
}

/** An input that is longer is granted without being repeated, which older programs take for a no. */
const LONGEST_INPUT = 64 * 1024
/** A long turn is counted in between; asking after every call would be a message a second. */
const COUNT_EVERY_MS = 20_000

export function readLine(state: State, printed: Printed, at: number): Read {
  if (printed.dropped) return tooLong(state, printed)
  const value = parsed(printed.text)
  const line = Line.safeParse(value).data
  if (line) return meaning(state, line, at)
  const isOther = typeof value === 'object' && value !== null && 'type' in value
  return { state, events: isOther || !printed.text.trim() ? [] : [{ type: 'text', from: 'program', text: printable(printed) }] }
}

function meaning(state: State, line: Line, at: number): Read {
  switch (line.type) {
    case 'system':
      return system(state, line, at)
    case 'assistant':
      // The result that follows says the same as a failure.
      return { state, events: line.error === undefined ? line.message.content.flatMap(said) : [] }
    case 'user':
      return user(state, line, at)
    case 'command_lifecycle':
      return { state: line.state === 'queued' ? state : taken(state, [line.command_uuid]), events: [] }
    case 'rate_limit_event': {
      const { status, resetsAt = null } = line.rate_limit_info
      return { state: { ...state, resetsAt: status === 'rejected' && resetsAt !== null ? Math.round(resetsAt * 1_000) : null }, events: [] }
    }
    case 'control_request':
      return asked(state, line)
    case 'control_cancel_request':
      return withdrawn(state, line.request_id)
    case 'control_response': {
      const used = isUsage(line) ? line.response.response?.session.model_usage : undefined
      return used ? counted(state, used) : { state, events: [] }
    }
    case 'result':
      return result(state, line)
  }
}

function system(state: State, line: Of<'system'>, at: number): Read {
  switch (line.subtype) {
    case 'init': {
      const events: HarnessEvent[] = [{ type: 'ready', session: line.session_id ?? null }, { type: 'turn_started' }]
      const ours = line.mcp_servers.find(({ name }) => name === 'signalbox')
      const missed = ours !== undefined && (ours.status === 'failed' || ours.status === 'needs-auth')
      if (missed && !state.toolsMissed) events.push(note(`It goes on without the tools of Signalbox: they are "${ours.status}".`, 'error'))
      return { state: { ...state, toolsMissed: missed, resetsAt: null }, events }
    }
    case 'api_retry': {
      const { attempt, max_retries, error_status, error, retry_delay_ms } = line
      const resetsAt = error_status === 429 && retry_delay_ms !== null ? Math.round(at + retry_delay_ms) : state.resetsAt
      const why = [error_status, error].filter(Boolean).join(' ')
      return { state: { ...state, resetsAt }, events: [note(`The model did not answer (${why}); attempt ${attempt} of ${max_retries}.`)] }
    }
    case 'compact_boundary':
      return { state, events: [note('It made its conversation shorter, to have room for more.')] }
    default:
      return { state, events: [] }
  }
}

function user(state: State, line: Of<'user'>, at: number): Read {
  if (line.isReplay) return { state: line.uuid ? taken(state, [line.uuid]) : state, events: [] }
  const events = line.message.content.flatMap(resulted)
  if (!events.length || state.closed || at - state.usageAskedAt < COUNT_EVERY_MS) return { state, events }
  return { state: { ...state, usageAskedAt: at }, events, send: [askUsage()] }
}

/** Also what somebody typed in between goes into the turn that runs: a result is no answer to one message. */
function result(state: State, line: Of<'result'>): Read {
  const used = line.modelUsage ? counted(state, line.modelUsage, line.model_usage_since_last_result) : { state, events: [] }
  const interrupted = line.terminal_reason.startsWith('aborted')
  const last = interrupted ? 'interrupted' : line.is_error ? 'failed' : 'well'
  const left = taken({ ...used.state, asked: {}, last }, line.user_message_uuids)
  const events: HarnessEvent[] = [
    ...used.events,
    ...denials(line),
    { type: 'turn_ended', how: last === 'well' ? 'completed' : last },
    ...(last === 'failed' ? failures(state, line) : []),
  ]
  const close = !interrupted && !left.closed && !left.waiting.length && line.queued_turn_count <= 0
  return { state: close ? { ...left, closed: true } : left, events, ...(close ? { close } : {}) }
}

function failures(state: State, line: Of<'result'>): HarnessEvent[] {
  const limit = limitOf(line, state.resetsAt)
  if (limit) return [limit]
  const forgotten = state.resumes !== null && line.errors.some((error) => error.includes(state.resumes as string))
  // So that the next life begins anew instead of asking for the same session again.
  const anew: HarnessEvent[] = forgotten ? [{ type: 'ready', session: null }] : []
  return [...anew, { type: 'failed', reason: failureOf(line, forgotten) }]
}

/** `sinceResult`: what is new in them, by its own account, which is needed where nobody knows what was there before. */
function counted(state: State, models: Models, sinceResult?: Models): Read {
  const now = totalsOf(models)
  const before = state.told ?? (sinceResult ? without(now, totalsOf(sinceResult)) : now)
  return { state: { ...state, told: now }, events: usedSince(before, now) }
}

function asked(state: State, { request_id, request }: Of<'control_request'>): Read {
  const reply = (text: string): Read => ({ state, events: [], send: state.closed ? [] : [text] })
  if (request.subtype !== 'can_use_tool') return reply(refusal(request_id, 'Nobody is here to answer that.'))
  if (Object.hasOwn(state.asked, request_id)) return { state, events: [] }
  if (Object.keys(state.asked).length >= MOST_QUESTIONS)
    return reply(answer(request_id, { behavior: 'deny', message: 'Too many questions are open; ask again later.' }))
  const input = JSON.stringify(request.input)
  const asked = { ...state.asked, [request_id]: input.length > LONGEST_INPUT ? null : input }
  const name = clip(visible(request.tool_name))
  return { state: { ...state, asked }, events: [{ type: 'approval_asked', id: request_id, name, input: clip(visible(input)) }] }
}

/** It goes on without an answer. */
function withdrawn(state: State, id: string): Read {
  if (!Object.hasOwn(state.asked, id)) return { state, events: [] }
  return { state: unasked(state, id), events: [notAskedAnyMore(id)] }
}

export function unasked(state: State, id: string): State {
  const { [id]: _, ...asked } = state.asked
  return { ...state, asked }
}

function taken(state: State, uuids: string[]): State {
  return { ...state, waiting: state.waiting.filter((uuid) => !uuids.includes(uuid)) }
}

function said(block: Block): HarnessEvent[] {
  if (block.type === 'text' && block.text) return [{ type: 'text', from: 'agent', text: clip(clean(block.text)) }]
  if (block.type === 'thinking' && block.thinking) return [{ type: 'text', from: 'thought', text: clip(clean(block.thinking)) }]
  if (block.type.endsWith('tool_use') && block.id)
    return [{ type: 'tool_call', id: block.id, name: clip(visible(block.name ?? '')), input: clip(visible(asText(block.input))) }]
  // What the provider's own tools found stands in what the model says.
  return resulted(block)
}

function resulted(block: Block): HarnessEvent[] {
  if (!block.type.endsWith('tool_result') || !block.tool_use_id) return []
  return [{ type: 'tool_result', id: block.tool_use_id, ok: !block.is_error, output: clip(clean(shown(block.content))) }]
}

/** A picture says nothing as text. */
function shown(content: unknown): string {
  if (!Array.isArray(content)) return asText(content)
  return content
    .map((part) => (typeof part?.text === 'string' ? part.text : `(${typeof part?.type === 'string' ? part.type : 'something'})`))
    .join('\n')
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function denials({ permission_denials }: Of<'result'>): HarnessEvent[] {
  const names = [...new Set(permission_denials.map(({ tool_name }) => tool_name))]
  return names.length ? [note(`It was not allowed to use: ${names.join(', ')}.`)] : []
}

/** As of a picture that it looked at, or of a file that it wants to write. Neither the call nor the question that it belongs to must stay open. */
function tooLong(state: State, printed: Printed): Read {
  const beginning = printed.text.slice(0, 10_000)
  const bytes = printed.text.length + printed.dropped
  const question = /^\{"type":"control_request","request_id":"([\w.:-]{1,200})"/.exec(beginning)?.[1]
  if (question) {
    const message = 'It was refused: it is too long to be shown to anybody. Ask for it in smaller parts.'
    const events = [note(`It asked permission for something of ${bytes} bytes, which nobody could read: refused.`)]
    return { state, events, send: state.closed ? [] : [answer(question, { behavior: 'deny', message })] }
  }
  const over = cutResult(beginning)
  if (over) return result(state, over)
  const id = /^\{"type":"user".*?"tool_use_id":"([\w.:-]{1,200})"/.exec(beginning)?.[1]
  if (!id) return { state, events: [note(`A line of it was too long to be read (${bytes} bytes).`)] }
  return { state, events: [{ type: 'tool_result', id, ok: true, output: '(too long to be shown)' }] }
}

/** It repeats what was refused, at any length; what stands behind that is lost, as whether it failed. Without it the turn would never end. */
function cutResult(beginning: string): Of<'result'> | undefined {
  const end = beginning.indexOf('"permission_denials":[')
  const head = end === -1 ? undefined : parsed(`${beginning.slice(0, end)}"permission_denials":[]}`)
  if (typeof head !== 'object' || head === null) return undefined
  const { stop_reason } = head as { stop_reason?: unknown }
  const line = Line.safeParse({ type: 'result', subtype: 'success', is_error: typeof stop_reason !== 'string', ...head }).data
  return line?.type === 'result' ? line : undefined
}

function note(text: string, from: 'program' | 'error' = 'program'): HarnessEvent {
  return { type: 'text', from, text: clip(clean(text)) }
}
