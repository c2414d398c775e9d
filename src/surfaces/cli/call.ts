import { randomUUID } from 'node:crypto'
import { CODES, type ErrorBody, Refusal, refuse } from '../../kernel/error.ts'
import type { Tool } from '../../kernel/tool.ts'
import { inCommands, named } from './names.ts'
import { commandLine } from './shell.ts'
import { painter } from './style.ts'
import type { Terminal } from './terminal.ts'
import { plain, plainJson } from './text.ts'

/** Where the daemon is, and who calls. Asked for only when something is sent. */
export interface Reach {
  version: string
  daemon(): Daemon
}

export interface Daemon {
  url: string
  /** None: no daemon of ours runs, so whoever listens there is a stranger and hears nothing. */
  token: string | undefined
  /** Others that may hold in its place: one that was rotated a moment ago. Asked for when it is refused. */
  others?(): string[]
  /** Why this address, and where else it might be: said when nobody answers there. */
  why: string
  /** Why nothing is said to that address although a daemon of ours runs, and what to do. */
  withheld?: Withheld | undefined
}

export interface Withheld {
  message: string
  hint: string
}

export type Row = Record<string, unknown>
type Answered = { ok: true; result: Row } | { ok: false; error: ErrorBody }

export interface CallOptions {
  actFor?: string
  signal?: AbortSignal
}

/** One call; a refusal is thrown. */
export async function call(reach: Reach, name: string, input: object, options: CallOptions = {}): Promise<Row> {
  const daemon = reach.daemon()
  const headers = { ...headersFor(daemon, reach), ...(options.actFor ? { 'signalbox-act-for': options.actFor } : {}) }
  const init = { method: 'POST', headers, body: JSON.stringify(input), signal: options.signal }
  const response = await request(daemon, `/api/tools/${name}`, init)
  const answer = await (response.json() as Promise<Answered>).catch(() => stranger(daemon))
  if (!answer.ok) throw new Refusal(answer.error ?? stranger(daemon))
  return answer.result
}

/**
 * A wait that the server cut short is taken up again until the time that was asked for is over: a look where it stopped, by its cursor; what
 * was written by the key under which it was, so that it is not written again.
 */
export async function callUntilAnswered(reach: Reach, tool: Tool, given: Row, options: CallOptions = {}): Promise<Row> {
  const began = performance.now()
  const input = tool.run && tool.watch ? { idempotency_key: randomUUID(), ...given } : given
  let next = input
  for (;;) {
    const result = await call(reach, tool.name, next, options)
    if (result.resume !== true) return result
    if (tool.run) continue
    const asked = input.timeout_seconds
    const left = typeof asked === 'number' ? asked - (performance.now() - began) / 1_000 : undefined
    if (left !== undefined && left <= 0) return result
    next = { ...input, cursor: result.cursor, ...(left === undefined ? {} : { timeout_seconds: left }) }
  }
}

/** The live stream of events, from `last` on. Undefined: nobody answered. */
export async function openStream(reach: Reach, last: string | undefined, signal?: AbortSignal): Promise<Response | undefined> {
  const daemon = reach.daemon()
  if (!daemon.token) return undefined
  const headers = { ...headersFor(daemon, reach), ...(last ? { 'last-event-id': last } : {}) }
  const response = await asOneOf(daemon, '/api/events', { headers, signal }).catch(() => undefined)
  if (response && !response.ok) throw new Refusal(((await response.json()) as { error: ErrorBody }).error)
  return response
}

/** It passes by itself: who goes on looking tries again. */
export function isBusy(error: unknown): boolean {
  return error instanceof Refusal && ['SHUTTING_DOWN', 'RATE_LIMITED', 'TRANSIENT_ERROR'].includes(error.body.code)
}

export function unreachable({ url, why, withheld }: Daemon): never {
  if (withheld) throw refuse('DISCONNECTED', withheld.message, { hint: withheld.hint })
  throw refuse('DISCONNECTED', `No Signalbox answers at ${new URL(url).origin} (${why}).`, {
    hint: 'Start it with: signalbox serve   (in a checkout: npm start)',
  })
}

/** Says what went wrong and returns the exit code of its class. */
export function report({ body }: Refusal, json: boolean, terminal: Terminal, help?: string): number {
  if (json) terminal.out(`${plainJson(JSON.stringify({ error: body }, null, 2))}\n`)
  else terminal.err(inWords(body, terminal) + (help && body.code === 'INVALID_INPUT' ? `${help}\n` : ''))
  return CODES[body.code]?.exit ?? 1
}

function inWords(error: ErrorBody, terminal: Terminal): string {
  const paint = painter(terminal.colours && terminal.tty.err)
  const next = error.next_tool ? named(error.next_tool) : undefined
  // A hint that names the command already says it.
  const command = next && !error.hint?.includes(next.name) ? commandLine(next, error.next_arguments ?? {}) : undefined
  return [
    `${paint('red', error.code)}: ${plain(inCommands(error.message))}`,
    error.hint && plain(inCommands(error.hint)),
    error.suggestions?.length && `Perhaps: ${plain(inCommands(error.suggestions.join(', ')))}`,
    command && `Next: ${plain(command)}`,
  ]
    .filter(Boolean)
    .map((line) => `${line}\n`)
    .join('')
}

function headersFor(daemon: Daemon, reach: Reach): Record<string, string> {
  if (!daemon.token) unreachable(daemon)
  return {
    authorization: `Bearer ${daemon.token}`,
    'content-type': 'application/json',
    'user-agent': `signalbox-cli/${reach.version}`,
  }
}

async function request(daemon: Daemon, path: string, init: RequestInit): Promise<Response> {
  return (await asOneOf(daemon, path, init).catch(() => undefined)) ?? unreachable(daemon)
}

/** With a token that does not hold nothing was done, so the same may be asked again with another. */
async function asOneOf({ url, others }: Daemon, path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url + path, init)
  if (response.status !== 401) return response
  for (const token of others?.() ?? []) {
    const again = await fetch(url + path, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } })
    if (again.status !== 401) return again
  }
  return response
}

function stranger({ url, why }: Daemon): never {
  throw refuse('DISCONNECTED', `What answers at ${new URL(url).origin} (${why}) is not Signalbox.`)
}
