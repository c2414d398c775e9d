import { type Approvals, type HarnessEvent, type HarnessState, MOST_QUESTIONS, type Step } from '../../ports/harness.ts'
import { clip, noLine, type OpenLine } from '../harness-shared/lines.ts'
import { answer, failure, type Message, notification, request } from '../harness-shared/rpc.ts'
import { newStory, notAskedAnyMore, type Story, tellAll } from '../harness-shared/story.ts'
import { questionOf } from './asking.ts'
import { begun, changesOf, ended, fieldOf, Item, open as openly, plain, result, said, textOf } from './items.ts'
import { resetOf, retryOf, troubleOf, waitOf } from './trouble.ts'
import { Totals, type Used, usedSince } from './usage.ts'

/** In the words of `thread/start`. */
export type Opening = Record<string, string | null>

/**
 * A text for the agent: its brief, or what a person says to it.
 *
 * | way       | means                                                                                                 |
 * |-----------|-------------------------------------------------------------------------------------------------------|
 * | `waiting` | it goes with the turn that runs, or with a new one when none does                                      |
 * | `steered` | it was sent into the turn, which has not taken it up yet; when the turn ends without, it waits again   |
 * | `begins`  | a turn was asked for with it                                                                           |
 * | `held`    | it was said before an interrupt, and goes with what is said next                                       |
 */
interface Letter {
  id: string
  text: string
  way: 'waiting' | 'steered' | 'begins' | 'held'
}

type Asked = { what: 'initialize' | 'start' | 'resume' | 'steer' | 'interrupt' } | { what: 'begin'; letter: string }

/** What it wants to know from us, and waits for. */
interface Wish {
  rpc: string | number
  yes: unknown
  no: unknown
}

export interface State extends HarnessState {
  story: Story
  out: OpenLine
  err: OpenLine
  /** When it last printed something. */
  at: number
  opening: Opening
  session: string | null
  approvals: Approvals
  /** Our requests without an answer, by their id. */
  asked: Record<string, Asked>
  next: number
  thread: string | null
  /** The turn that runs. */
  turn: string | null
  /** How the last one ended. */
  last: 'completed' | 'interrupted' | 'failed' | null
  letters: Letter[]
  /** How many there were from people. */
  written: number
  /** `wanted`: it goes as soon as there is a turn that can be interrupted. */
  interrupt: 'wanted' | 'sent' | null
  wishes: Record<string, Wish>
  /** What open edits would change. */
  changes: Record<string, string>
  used: Record<string, Used>
  resetsAt: number | null
  /** The turn is being interrupted because of it. */
  limit: HarnessEvent | null
  /** Why it cannot go on. Told when it is over: a message may still begin another turn. */
  trouble: HarnessEvent | null
  /** What it said before it was ready. */
  early: HarnessEvent[]
  /** Its input was ended. */
  over: boolean
}

export type Next = Step & { state: State; send: string[] }

const MOST_LETTERS = 20
const MOST_CHANGES = 20
const MOST_THREADS = 20
const MOST_EARLY = 50
const LONGEST_KEPT = 8_000

/** Told word by word, these would be most of all that it prints; the whole comes afterwards in any case. */
const NOT_WANTED = [
  'item/agentMessage/delta',
  'item/commandExecution/outputDelta',
  'item/fileChange/outputDelta',
  'item/fileChange/patchUpdated',
  'item/plan/delta',
  'item/reasoning/summaryPartAdded',
  'item/reasoning/summaryTextDelta',
  'item/reasoning/textDelta',
  'thread/started',
  'turn/diff/updated',
]

const FIRST_ID = 1

/** The first line to it. */
export function hello(): string {
  const clientInfo = { name: 'signalbox', title: 'Signalbox', version: '1' }
  const capabilities = { experimentalApi: false, requestAttestation: false, optOutNotificationMethods: NOT_WANTED }
  return request(FIRST_ID, 'initialize', { clientInfo, capabilities })
}

/** After that line. */
export function newState(given: { opening: Opening; session: string | null; approvals: Approvals; brief: string }): State {
  const { brief, ...rest } = given
  return {
    ...rest,
    story: newStory(),
    out: noLine(),
    err: noLine(),
    at: 0,
    asked: { [FIRST_ID]: { what: 'initialize' } },
    next: FIRST_ID + 1,
    thread: null,
    turn: null,
    last: null,
    letters: [{ id: 'brief', text: brief, way: 'waiting' }],
    written: 0,
    interrupt: null,
    wishes: {},
    changes: {},
    used: {},
    resetsAt: null,
    limit: null,
    trouble: null,
    early: [],
    over: false,
  }
}

export function heard(state: State, message: Message): Next {
  switch (message.kind) {
    case 'answer':
      return answered(state, String(message.id), { result: message.result })
    case 'failure':
      return answered(state, String(message.id), { error: message.message })
    case 'request':
      return wished(state, message)
    case 'notification':
      return noticed(state, message.method, message.params)
  }
}

/** A person says something; undefined when nobody will hear it. */
export function addLetter(state: State, text: string): Next | undefined {
  if (state.over || state.letters.length >= MOST_LETTERS) return undefined
  const letter: Letter = { id: `signalbox-${state.written}`, text, way: 'waiting' }
  return then(
    stay({ ...state, written: state.written + 1, letters: [...state.letters, letter] }),
    (now) => tell(now, [said('person', text)]),
    onward,
  )
}

/** Undefined when there is nothing to interrupt. What was said before it is held; but a turn that was not asked for yet has to begin first. */
export function wantInterrupt(state: State): Next | undefined {
  const isAtWork = state.turn !== null || state.letters.some(({ way }) => way !== 'held')
  if (state.over || !isAtWork || state.interrupt) return undefined
  const begins = state.turn || state.letters.some(({ way }) => way === 'begins') ? undefined : state.letters[0]
  const letters = state.letters.map((one) => (one.way === 'waiting' && one !== begins ? { ...one, way: 'held' as const } : one))
  return onward({ ...state, letters, story: { ...state.story, interrupted: true }, interrupt: 'wanted' })
}

export function decided(state: State, id: string, { allow, message }: { allow: boolean; message: string }): Next | undefined {
  const wish = Object.hasOwn(state.wishes, id) ? state.wishes[id] : undefined
  if (!wish || state.over) return undefined
  const now = { ...state, wishes: without(state.wishes, id) }
  const answers = { ...stay(now), send: [answer(wish.rpc, allow ? wish.yes : wish.no)] }
  // A refusal has no room for a reason, but the turn has.
  return !allow && message ? then(answers, (after) => addLetter(after, message) ?? stay(after)) : answers
}

/** The events as they fit in. What comes before it is ready waits until then. */
export function tell(state: State, events: HarnessEvent[]): Next {
  const isReady = state.story.ready || events.some(({ type }) => type === 'ready')
  if (!isReady && events.every(({ type }) => type === 'text'))
    return stay({ ...state, early: [...state.early, ...events.map(short)].slice(-MOST_EARLY) })
  const { story, events: told } = tellAll(state.story, [
    ...events.filter(isFirst),
    ...state.early,
    ...events.filter((one) => !isFirst(one)),
  ])
  return { ...stay({ ...state, story, early: [] }), events: told }
}

const isFirst = ({ type }: HarnessEvent) => type === 'ready'

function short(event: HarnessEvent): HarnessEvent {
  return event.type === 'text' ? { ...event, text: clip(event.text, 0, LONGEST_KEPT) } : event
}

/** A line of which only the beginning is here: whoever waits for it must not wait for ever. A command that prints much makes one. */
export function heardInPart(state: State, text: string): Next | undefined {
  const [, method, id] = CUT_REQUEST.exec(text) ?? []
  if (method && id) return { ...stay(state), send: [failure(JSON.parse(id), REFUSED, 'This request is too long.')] }
  if (CUT_TURN.test(text)) return turnEnded(state, 'completed', null)
  const [, when, type, item] = CUT_ITEM.exec(text) ?? []
  if (!when || !type || !item) return undefined
  const shown = `It is too long to be shown. It begins: ${beginningOf(text)}`
  if (type === 'agentMessage') return tell(state, when === 'completed' ? [said('agent', shown)] : [])
  if (when === 'completed') return tell(state, [result(item, text.includes('"status":"completed"'), shown)])
  return tell(state, [{ type: 'tool_call', id: plain(item), name: type, input: openly(shown) }])
}

const CUT_REQUEST = /^\{(?:"jsonrpc":"2\.0",)?"method":"([\w/]+)","id":(\d{1,9}|"[\w-]{1,200}"),/
const CUT_TURN = /^\{(?:"jsonrpc":"2\.0",)?"method":"turn\/completed",/
const CUT_ITEM =
  /^\{(?:"jsonrpc":"2\.0",)?"method":"item\/(started|completed)","params":\{"item":\{"type":"(\w{1,100})","id":"([^"\\]{1,500})"/

const REFUSED = -32_601

function beginningOf(text: string): string {
  const field = ['"aggregatedOutput":"', '"text":"', '"diff":"', '"arguments":'].find((name) => text.includes(name))
  const from = field ? text.indexOf(field) + field.length : 0
  return text.slice(from, from + LONGEST_KEPT).replaceAll('\\n', '\n')
}

const stay = (state: State): Next => ({ state, events: [], send: [] })

function then(first: Next, ...more: ((state: State) => Next)[]): Next {
  return more.reduce((so, act) => {
    const { state, events, send, close } = act(so.state)
    return { state, events: [...so.events, ...events], send: [...so.send, ...send], ...(so.close || close ? { close: true } : {}) }
  }, first)
}

function ask(state: State, asked: Asked, method: string, params: unknown): Next {
  const now = { ...state, next: state.next + 1, asked: { ...state.asked, [state.next]: asked } }
  return { ...stay(now), send: [request(state.next, method, params)] }
}

/** It can do no more. */
function finish(state: State, trouble: HarnessEvent | null): Next {
  if (state.over) return stay(state)
  const now = { ...state, over: true, trouble: null, letters: [], wishes: {} }
  return { ...tell(now, trouble ? [trouble] : []), close: true }
}

const fail = (state: State, reason: string) => finish(state, { type: 'failed', reason: plain(reason) })

function answered(before: State, id: string, { result, error }: { result?: unknown; error?: string }): Next {
  const asked = Object.hasOwn(before.asked, id) ? before.asked[id] : undefined
  if (!asked) return stay(before)
  const state = { ...before, asked: without(before.asked, id) }
  switch (asked.what) {
    case 'initialize':
      return error === undefined ? open(state) : fail(state, `Codex does not begin: ${error}`)
    case 'start':
      return opened(state, result, error ?? 'it does not say which thread it is')
    case 'resume':
      return error === undefined ? opened(state, result, 'it does not say which thread it is') : openAnew(state, error)
    case 'begin':
      return error === undefined ? stay(dropLetter(state, asked.letter)) : fail(state, `Codex takes no work: ${error}`)
    // Refused, it has not been taken up when the turn ends, and then begins another.
    case 'steer':
      return stay(state)
    case 'interrupt':
      return error === undefined ? stay(state) : onward({ ...state, interrupt: null })
  }
}

function open(state: State): Next {
  const { opening, session } = state
  const hail = { ...stay(state), send: [notification('initialized')] }
  return then(hail, (now) =>
    session
      ? ask(now, { what: 'resume' }, 'thread/resume', { ...opening, threadId: session, excludeTurns: true })
      : ask(now, { what: 'start' }, 'thread/start', opening),
  )
}

/** What it knew is lost, but the work is not: its worktree and its brief say all that is needed. */
function openAnew(state: State, error: string): Next {
  const text = `The earlier conversation could not be taken up again, so a new one begins: ${error}`
  return then(tell({ ...state, session: null }, [said('program', text)]), (now) => ask(now, { what: 'start' }, 'thread/start', now.opening))
}

function opened(state: State, result: unknown, why: string): Next {
  const thread = fieldOf(fieldOf(result, 'thread'), 'id')
  if (typeof thread !== 'string' || !thread || thread.length > 200) return fail(state, `Codex opens no thread: ${why}`)
  return then(tell({ ...state, thread }, [{ type: 'ready', session: plain(thread) }]), onward)
}

/** Sends what can be sent now: an interrupt or letters into the turn that runs, a turn when none does. */
function onward(state: State): Next {
  const { thread, turn, letters, interrupt } = state
  if (state.over || !thread) return stay(state)
  if (turn && interrupt === 'wanted')
    return ask({ ...state, interrupt: 'sent' }, { what: 'interrupt' }, 'turn/interrupt', { threadId: thread, turnId: turn })
  if (turn && !interrupt) return then(stay(state), ...letters.filter(({ way }) => way === 'waiting').map(({ id }) => steer(id)))
  const isBusy = turn || letters.some(({ way }) => way === 'begins')
  const hasNews = letters.some(({ way }) => way !== 'held')
  return isBusy || !hasNews ? stay(state) : begin(state)
}

function begin(state: State): Next {
  const [first, ...rest] = state.letters as [Letter, ...Letter[]]
  const letters: Letter[] = [{ ...first, way: 'begins' }, ...rest.map((letter) => ({ ...letter, way: 'waiting' as const }))]
  return ask({ ...state, letters }, { what: 'begin', letter: first.id }, 'turn/start', { threadId: state.thread, ...inputOf(first) })
}

const steer = (id: string) => (state: State) => {
  const letter = state.letters.find((one) => one.id === id) as Letter
  const params = { threadId: state.thread, expectedTurnId: state.turn, ...inputOf(letter) }
  const letters = state.letters.map((one) => (one === letter ? { ...one, way: 'steered' as const } : one))
  return ask({ ...state, letters }, { what: 'steer' }, 'turn/steer', params)
}

/** By its id the turn says when it takes the text up. */
const inputOf = ({ id, text }: Letter) => ({ clientUserMessageId: id, input: [{ type: 'text', text }] })

function dropLetter(state: State, id: string): State {
  return { ...state, letters: state.letters.filter((letter) => letter.id !== id) }
}

function wished(state: State, { id, method, params }: Extract<Message, { kind: 'request' }>): Next {
  const question = questionOf(method, params, state.changes)
  const now = stay(state)
  if (!question) return { ...now, send: [failure(id, REFUSED, `Nobody here can answer ${method.slice(0, 100)}.`)] }
  const { yes, no, name, input } = question
  if (state.approvals !== 'ask') return { ...now, send: [answer(id, state.approvals === 'allow' ? yes : no)] }
  if (Object.keys(state.wishes).length >= MOST_QUESTIONS) return { ...now, send: [answer(id, no)] }
  const wish = plain(String(id))
  const wishes = { ...state.wishes, [wish]: { rpc: id, yes, no } }
  return tell({ ...state, wishes }, [{ type: 'approval_asked', id: wish, name, input }])
}

type Params = Record<string, unknown>

/** Sub-agents have threads of their own: what they do is not what the agent does, but they use tokens in its name. */
function noticed(state: State, method: string, params: Params): Next {
  if (method === 'thread/tokenUsage/updated') return counted(state, params)
  if (method === 'serverRequest/resolved') return withdrawn(state, plain(textOf(params.requestId)))
  const isElsewhere = typeof params.threadId === 'string' && params.threadId !== state.thread
  return isElsewhere || !Object.hasOwn(NOTICES, method) ? stay(state) : (NOTICES[method]?.(state, params) ?? stay(state))
}

/** It says so also of what was answered. */
function withdrawn(state: State, wish: string): Next {
  if (!Object.hasOwn(state.wishes, wish)) return stay(state)
  return tell({ ...state, wishes: without(state.wishes, wish) }, [notAskedAnyMore(wish)])
}

const NOTICES: Record<string, (state: State, params: Params) => Next> = {
  'turn/started': (state, { turn }) => turnStarted(state, textOf(fieldOf(turn, 'id'))),
  'turn/completed': (state, { turn }) => turnEnded(state, textOf(fieldOf(turn, 'status')), fieldOf(turn, 'error')),
  'item/started': (state, { item }) => withItem(state, item, itemStarted),
  'item/completed': (state, { item }) => withItem(state, item, itemEnded),
  'account/rateLimits/updated': (state, { rateLimits }) => stay({ ...state, resetsAt: resetOf(rateLimits, state.resetsAt) }),
  // When it does not try again, the end of the turn says so too.
  error: (state, { error, willRetry }) => (willRetry === true ? retrying(state, error) : stay(state)),
  warning: (state, { message }) => tell(state, [said('program', textOf(message))]),
  configWarning: (state, { summary, details }) => tell(state, [said('program', [summary, details].map(textOf).filter(Boolean).join('\n'))]),
  'mcpServer/startupStatus/updated': (state, { name, status, error }) =>
    status === 'failed' ? tell(state, [said('error', `The MCP server "${textOf(name)}" did not start: ${textOf(error)}`)]) : stay(state),
}

/** Asked by its provider to wait, it would do so in silence for as long as the provider says, which it does not tell. */
function retrying(state: State, error: unknown): Next {
  const told = tell(state, [said('program', retryOf(error))])
  const limit = state.turn ? waitOf(error, state.at) : undefined
  return limit ? then(told, (now) => onward({ ...now, limit, interrupt: 'wanted' })) : told
}

function turnStarted(state: State, turn: string): Next {
  if (!state.thread || !turn || turn.length > 200) return stay(state)
  const interrupted = state.interrupt === 'wanted'
  const told = tell({ ...state, turn, trouble: null, last: null }, [{ type: 'turn_started' }])
  return then(told, (now) => onward(interrupted ? { ...now, story: { ...now.story, interrupted } } : now))
}

function turnEnded(state: State, status: string, error: unknown): Next {
  if (!state.thread || state.over) return stay(state)
  const limit = status === 'interrupted' ? state.limit : null
  const last = !limit && (status === 'completed' || status === 'interrupted') ? status : 'failed'
  const trouble = last === 'failed' ? (limit ?? troubleOf(error, state.resetsAt)) : null
  const letters = state.letters.map(afterTurn(state, last))
  const now: State = { ...state, turn: null, interrupt: null, limit: null, last, trouble, changes: {}, letters }
  const open = state.story.open.map((id) => result(id, false, 'It had not ended when the turn did.'))
  return then(tell(now, [{ type: 'turn_started' }, ...open, { type: 'turn_ended', how: last }]), afterwards)
}

/** What was said after an interrupt begins a new turn; what was said before it waits until something is. */
function afterTurn({ interrupt }: State, last: State['last']) {
  return (letter: Letter): Letter => {
    if (letter.way === 'begins') return letter
    const isBefore = last === 'interrupted' && (letter.way !== 'waiting' || !interrupt)
    return { ...letter, way: isBefore ? 'held' : 'waiting' }
  }
}

function afterwards(state: State): Next {
  const isDone = state.letters.length === 0 && state.last !== 'interrupted'
  return isDone ? finish(state, state.trouble) : onward(state)
}

function withItem(state: State, given: unknown, act: (state: State, item: Item) => Next): Next {
  const item = Item.safeParse(given).data
  return item ? act(state, item) : stay(state)
}

function itemStarted(state: State, item: Item): Next {
  const changes = changesOf(item)
  const kept = changes === undefined ? state.changes : { ...state.changes, [item.id]: changes }
  return tell({ ...takenUp(state, item), changes: newest(kept, MOST_CHANGES) }, begun(item))
}

function itemEnded(state: State, item: Item): Next {
  return tell({ ...takenUp(state, item), changes: without(state.changes, item.id) }, ended(item))
}

function takenUp(state: State, { type, clientId }: Item): State {
  return type === 'userMessage' && typeof clientId === 'string' && clientId !== 'brief' ? dropLetter(state, clientId) : state
}

/** A thread that is resumed says first what it had used before: that was counted in its earlier life. */
function counted(state: State, { threadId, tokenUsage }: Params): Next {
  const totals = Totals.safeParse(tokenUsage).data
  if (!totals || typeof threadId !== 'string' || threadId.length > 200) return stay(state)
  const before = Object.hasOwn(state.used, threadId) ? state.used[threadId] : undefined
  const used = newest({ ...state.used, [threadId]: totals.total }, MOST_THREADS)
  const event = state.story.turn || state.last ? usedSince(before, totals) : undefined
  return tell({ ...state, used }, event ? [event] : [])
}

function without<T>(all: Record<string, T>, key: string): Record<string, T> {
  if (!Object.hasOwn(all, key)) return all
  return Object.fromEntries(Object.entries(all).filter(([one]) => one !== key))
}

function newest<T>(all: Record<string, T>, most: number): Record<string, T> {
  const entries = Object.entries(all)
  return entries.length <= most ? all : Object.fromEntries(entries.slice(-most))
}
