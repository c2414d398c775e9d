import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from '@photostructure/sqlite'
import { vi } from 'vitest'
import type { TestDaemon } from '../../src/testing/daemon.ts'

// A machine that does much else at the same time is slow, not wrong.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

export interface Sent {
  method?: string
  path: string
  headers?: OutgoingHttpHeaders
  body?: string | Buffer
}

export interface Answered {
  status: number
  headers: IncomingMessage['headers']
  text: string
  json: Any
}

/** A request as it is on the wire: fetch forbids a forged Host and tidies up paths. */
export async function send(url: string, sent: Sent): Promise<Answered> {
  const outgoing = hold(url, sent)
  const failed = once(outgoing, 'error').then(([error]) => Promise.reject(error))
  failed.catch(() => {})
  const [response] = (await Promise.race([once(outgoing, 'response'), failed])) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('utf8')
  return { status: response.statusCode as number, headers: response.headers, text, json: parsed(text) }
}

/** Sends it and leaves the answer alone. */
export function hold(url: string, { method = 'GET', path, headers = {}, body }: Sent): ClientRequest {
  const { hostname, port } = new URL(url)
  const length = body === undefined || headers['transfer-encoding'] ? {} : { 'content-length': Buffer.byteLength(body) }
  const outgoing = request({ hostname, port, method, path, headers: { ...length, ...headers }, agent: false })
  outgoing.on('error', () => {})
  outgoing.end(body)
  return outgoing
}

/** Bytes to the port and whatever comes back until it is closed. */
export async function exchange(daemon: TestDaemon, bytes: string | Buffer): Promise<string> {
  const socket = await dial(daemon)
  socket.write(bytes)
  let text = ''
  for await (const chunk of socket.setEncoding('utf8')) text += chunk
  return text
}

export async function dial(daemon: TestDaemon): Promise<Socket> {
  const { hostname, port } = new URL(daemon.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

export function bearer(token: string): OutgoingHttpHeaders {
  return { authorization: `Bearer ${token}` }
}

export const JSON_BODY = { 'content-type': 'application/json' }

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const PATIENCE_MS = 60_000

/** Asks again until it is so, less and less often: whoever answers is mostly the one that has to get there. */
export async function until(holds: () => unknown, what: string | (() => string | Promise<string>)): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  for (let asked = 1; !(await holds()); asked++) {
    if (performance.now() > deadline) throw new Error(`this never came true: ${typeof what === 'string' ? what : await what()}`)
    await new Promise((resolve) => setTimeout(resolve, Math.min(5 * asked, 40)))
  }
}

export async function waiting(daemon: TestDaemon, token?: string): Promise<number> {
  return (await daemon.call('system_health', {}, token)).waiting_calls
}

export interface StreamedEvent {
  id: string
  type: string
  data: Any
}

export interface StreamOptions {
  token?: string
  after?: string
  query?: string
}

/** A reader of GET /api/events. */
export class Stream {
  readonly events: StreamedEvent[] = []
  /** What a client sends as Last-Event-ID when it comes back. */
  last: string | undefined
  readonly ended: Promise<void>
  readonly #response: IncomingMessage
  readonly #heard = new Set<() => void>()

  private constructor(response: IncomingMessage, after: string | undefined) {
    this.#response = response
    this.last = after
    let rest = ''
    response.setEncoding('utf8').on('data', (chunk: string) => {
      const frames = (rest + chunk).split('\n\n')
      rest = frames.pop() as string
      for (const frame of frames) this.#take(frame)
      for (const tell of this.#heard) tell()
    })
    response.on('error', () => {})
    // A cut is an error to a response; here it is an ending like any other.
    this.ended = new Promise((resolve) => response.once('close', resolve))
  }

  static async open(daemon: TestDaemon, { token = daemon.token, after, query = '' }: StreamOptions = {}): Promise<Stream> {
    const { hostname, port } = new URL(daemon.url)
    const headers = { ...bearer(token), ...(after === undefined ? {} : { 'last-event-id': after }) }
    const outgoing = request({ hostname, port, path: `/api/events${query}`, headers, agent: false })
    outgoing.end()
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    if (response.statusCode !== 200) throw new Error(`the stream was refused with ${response.statusCode}`)
    return new Stream(response, after)
  }

  /** Resolves when what was heard so far is enough. */
  async heard(enough: (events: StreamedEvent[]) => boolean): Promise<void> {
    if (enough(this.events)) return
    let tell = () => {}
    const came = new Promise<void>((resolve) => {
      tell = () => enough(this.events) && resolve()
    })
    this.#heard.add(tell)
    const over = this.ended.then(() => {
      if (!enough(this.events)) throw new Error(`the stream ended after ${this.events.length} events`)
    })
    try {
      await Promise.race([came, over])
    } finally {
      this.#heard.delete(tell)
      over.catch(() => {})
    }
  }

  pause(): void {
    this.#response.pause()
  }

  resume(): void {
    this.#response.resume()
  }

  close(): void {
    this.#response.destroy()
  }

  #take(frame: string): void {
    const field = (name: string) =>
      frame
        .split('\n')
        .find((line) => line.startsWith(`${name}: `))
        ?.slice(name.length + 2)
    const data = field('data')
    this.last = field('id') ?? this.last
    if (data !== undefined) this.events.push({ id: field('id') as string, type: field('event') as string, data: JSON.parse(data) })
  }
}

export const LEGACY = '2025-06-18'
const MODERN = '2026-07-28'
const CLIENT = { name: 'e2e', version: '1' }

/** JSON-RPC over POST /mcp, without an SDK in between that would tidy up what a test sends. */
export class Mcp {
  readonly #daemon: TestDaemon
  readonly token: string
  session: string | undefined
  #ids = 0

  constructor(daemon: TestDaemon, token: string, session?: string) {
    this.#daemon = daemon
    this.token = token
    this.session = session
  }

  static async begin(daemon: TestDaemon, token: string = daemon.token): Promise<Mcp> {
    const client = new Mcp(daemon, token)
    const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT }
    const answer = await client.rpc('initialize', params)
    client.session = answer.headers['mcp-session-id'] as string
    if (!client.session) throw new Error(`no MCP session: ${answer.status} ${answer.text}`)
    await client.post({ jsonrpc: '2.0', method: 'notifications/initialized' })
    return client
  }

  rpc(method: string, params: object = {}): Promise<Answered> {
    return this.post({ jsonrpc: '2.0', id: ++this.#ids, method, params })
  }

  async post(message: unknown): Promise<Answered> {
    const body = typeof message === 'string' ? message : JSON.stringify(message)
    return unwrapped(await send(this.#daemon.url, { method: 'POST', path: '/mcp', headers: this.#headers(), body }))
  }

  /** The result of a tool, refused or not. */
  async tool(name: string, args: object = {}): Promise<{ isError?: boolean; structuredContent: Any }> {
    const answer = await this.rpc('tools/call', { name, arguments: args })
    if (!answer.json?.result) throw new Error(`${name}: ${answer.status} ${answer.text}`)
    return answer.json.result
  }

  /** One request of the 2026 era: it stands alone. */
  async modern(method: string, params: object = {}, name = ''): Promise<Answered> {
    return unwrapped(await send(this.#daemon.url, this.#standingAlone(method, params, name)))
  }

  /** A call whose answer nobody waits for; destroy it to hang up. */
  hold(tool: string): ClientRequest {
    const body = JSON.stringify({ jsonrpc: '2.0', id: ++this.#ids, method: 'tools/call', params: { name: tool, arguments: {} } })
    return hold(this.#daemon.url, { method: 'POST', path: '/mcp', headers: this.#headers(), body })
  }

  holdModern(tool: string): ClientRequest {
    return hold(this.#daemon.url, this.#standingAlone('tools/call', { name: tool, arguments: {} }, tool))
  }

  #headers(): OutgoingHttpHeaders {
    return {
      ...bearer(this.token),
      ...JSON_BODY,
      accept: 'application/json, text/event-stream',
      ...(this.session ? { 'mcp-session-id': this.session } : {}),
    }
  }

  #standingAlone(method: string, params: object, name: string): Sent {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientInfo': CLIENT,
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const { 'mcp-session-id': _, ...headers } = this.#headers()
    const named = { ...headers, 'mcp-protocol-version': MODERN, 'mcp-method': method, ...(name ? { 'mcp-name': name } : {}) }
    const body = JSON.stringify({ jsonrpc: '2.0', id: ++this.#ids, method, params: { ...params, _meta: meta } })
    return { method: 'POST', path: '/mcp', headers: named, body }
  }
}

/** An answer may come as JSON or as a stream of one message. */
function unwrapped(answer: Answered): Answered {
  if (!answer.headers['content-type']?.startsWith('text/event-stream')) return answer
  const data = answer.text.split('\n').filter((line) => line.startsWith('data: '))
  return { ...answer, json: parsed(data.at(-1)?.slice(6) ?? '') }
}

/** The line protocol of the daemon's unix socket. */
export class Line {
  readonly socket: Socket
  readonly lines: Any[] = []
  readonly closed: Promise<void>
  readonly #heard = new Set<() => void>()
  #ids = 0

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()))
    const lines = createInterface({ input: socket })
    // It passes on the socket's own errors.
    lines.on('error', () => {})
    lines.on('line', (line) => {
      this.lines.push(JSON.parse(line))
      for (const tell of this.#heard) tell()
    })
  }

  /** Says hello, as given or `raw`, and returns the first answer with the connection. */
  static async open(daemon: TestDaemon, path: string, hello: object = {}, raw?: string): Promise<{ line: Line; welcome: Any }> {
    const socket = connect(path)
    await once(socket, 'connect')
    const line = new Line(socket)
    line.write(raw ?? { signalbox: 1, home: daemon.home, token: daemon.token, lane: 'admin', ...hello })
    const welcome = await line.find((message) => 'ok' in message)
    return { line, welcome }
  }

  static async begin(daemon: TestDaemon, path: string, hello: object = {}): Promise<Line> {
    const { line, welcome } = await Line.open(daemon, path, hello)
    if (!welcome.ok) throw new Error(`not welcome: ${JSON.stringify(welcome)}`)
    await line.rpc('initialize', { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT })
    line.write({ jsonrpc: '2.0', method: 'notifications/initialized' })
    return line
  }

  write(message: unknown): void {
    this.socket.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
  }

  async find(fits: (message: Any) => boolean): Promise<Any> {
    let tell = () => {}
    const found = new Promise<Any>((resolve) => {
      tell = () => {
        const message = this.lines.find(fits)
        if (message) resolve(message)
      }
    })
    this.#heard.add(tell)
    tell()
    const over = this.closed.then(() => this.lines.find(fits) ?? Promise.reject(new Error('the connection was closed')))
    try {
      return await Promise.race([found, over])
    } finally {
      this.#heard.delete(tell)
      over.catch(() => {})
    }
  }

  rpc(method: string, params: object = {}): Promise<Any> {
    const id = ++this.#ids
    this.write({ jsonrpc: '2.0', id, method, params })
    return this.find((message) => message.id === id)
  }
}

/** As the daemon computes it: $XDG_RUNTIME_DIR is the state folder in these tests. */
export function socketOf(daemon: { home: string }): string {
  const name = createHash('sha256').update(daemon.home).digest('hex').slice(0, 16)
  return join(daemon.home, `signalbox-${userInfo().uid}`, `${name}.sock`)
}

export function databaseOf(daemon: TestDaemon): string {
  return join(daemon.home, 'signalbox.db')
}

/** Looks into the database from outside, as it is committed. */
export function look<T>(path: string, read: (db: InstanceType<typeof DatabaseSync>) => T): T {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    db.exec('PRAGMA busy_timeout = 60000')
    return read(db)
  } finally {
    db.close()
  }
}

/** Rows of every table but those in which a refusal itself is recorded. */
export function rowCounts(path: string, leaveOut: string[] = ['calls', 'refusals', 'seals', 'mcp_sessions']): Record<string, number> {
  return look(path, (db) => {
    const tables = db.prepare(`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`).all() as { name: string }[]
    const counted = tables.filter(({ name }) => !leaveOut.includes(name))
    return Object.fromEntries(
      counted.map(({ name }) => [name, Number((db.prepare(`SELECT count(*) AS n FROM "${name}"`).get() as { n: number }).n)]),
    )
  })
}

export function rows(path: string, sql: string, ...values: (string | number)[]): Any[] {
  return look(path, (db) => db.prepare(sql).all(...values))
}

/** Left out by `npm test -- --without NAME`; said aloud, because a skipped line is easily overlooked. */
export function leftOut(name: string, what: string): boolean {
  const left = (process.env.SIGNALBOX_TEST_WITHOUT ?? '').split(',').includes(name)
  if (left) console.warn(`NOT RUN: ${what} (needs ${name})`)
  return left
}
