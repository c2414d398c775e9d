import type { Approvals, HarnessEvent, HarnessState, Step } from '../../ports/harness.ts'
import { noLine, type OpenLine } from '../harness-shared/lines.ts'
import { newStory, type Story, tellAll } from '../harness-shared/story.ts'
import type { McpServer } from './tools-server.ts'

/**
 * | stage        | waits for the answer to        | then                                        |
 * |--------------|--------------------------------|---------------------------------------------|
 * | greeting     | initialize                     | opening                                     |
 * | opening      | session/new, /load, /resume    | setting; a session that is gone: opening    |
 * | setting      | session/set_mode, the model    | setting, then working                       |
 * | working      | session/prompt                 | working (words wait), idle (interrupted) or over |
 * | idle         | nobody: a message              | working                                     |
 * | over         | the end of the program         |                                             |
 */
export type Stage = 'greeting' | 'opening' | 'setting' | 'working' | 'idle' | 'over'

/** What the launch said, kept until it is needed. The token is not in it: what is sent is kept in the spool. */
export interface Wishes {
  cwd: string
  session: string | null
  model: string | null
  approvals: Approvals
  servers: McpServer[]
  meta: Record<string, unknown> | null
}

/** A call that was announced and whose input is not known yet. */
export interface Held {
  id: string
  name: string
  input: string
}

export interface Permission {
  id: string
  /** As the program numbered its question. */
  asked: string | number
  name: string
  allow: string | null
  reject: string | null
}

export interface State extends HarnessState {
  story: Story
  out: OpenLine
  err: OpenLine
  wishes: Wishes
  stage: Stage
  /** The number of the request that is waited for; the next one gets the next. */
  request: number
  /** Requests that are still to be made before the first words. */
  settings: { method: string; params: Record<string, unknown>; must: string | null }[]
  session: string | null
  /** Who it says it is. */
  program: string
  /** How it says that one logs in. */
  logins: string
  /** The brief, then what people said meanwhile. */
  words: string[]
  speech: { from: 'agent' | 'thought'; text: string; message: string } | null
  held: Held[]
  /** Calls whose result was told, the last few: what is said of them afterwards is no new call. */
  done: string[]
  permissions: Permission[]
  /** We asked it to stop its turn. */
  cancelled: boolean
  /** Something was refused in this turn. */
  refused: boolean
  /** How often the model could not be reached since something came from it. */
  attempts: number
  failure: string | null
}

export const newState = (wishes: Wishes = NOTHING_WISHED, words: string[] = []): State => ({
  story: newStory(),
  out: noLine(),
  err: noLine(),
  wishes,
  stage: 'greeting',
  request: 1,
  settings: [],
  session: null,
  program: '',
  logins: '',
  words,
  speech: null,
  held: [],
  done: [],
  permissions: [],
  cancelled: false,
  refused: false,
  attempts: 0,
  failure: null,
})

const NOTHING_WISHED: Wishes = { cwd: '/', session: null, model: null, approvals: 'ask', servers: [], meta: null }

/** A step under way: each part of it takes the state as the one before left it. Its lists are its own, and grow in place. */
export interface Doing {
  state: State
  events: HarnessEvent[]
  send: string[]
  close: boolean
}

export const begun = (state: State): Doing => ({ state, events: [], send: [], close: false })

export const withState = (doing: Doing, changed: Partial<State>): Doing => ({ ...doing, state: { ...doing.state, ...changed } })

export function sending(doing: Doing, ...lines: string[]): Doing {
  doing.send.push(...lines)
  return doing
}

export function telling(doing: Doing, ...told: HarnessEvent[]): Doing {
  const { story, events } = tellAll(doing.state.story, told)
  doing.events.push(...events)
  return withState(doing, { story })
}

export function stepOf({ state, events, send, close }: Doing, signal?: Step['signal']): Step {
  return { state, events, ...(send.length ? { send } : {}), ...(close ? { close, ...(signal ? { signal } : {}) } : {}) }
}
