import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Hello, Welcome } from './socket.ts'

/** What the pipe needs from outside. It loads nothing of the protocol's SDK: it starts in a blink and stays small. */
export interface ShimParts {
  input: Readable
  output: Writable
  /** Asked for at every connection: a daemon that was restarted may be elsewhere. Throws when it is not to be trusted. */
  socketPath(): string
  /** Read again at every connection: the token may have been rotated meanwhile. */
  hello(): Hello
  /** Starts the daemon when there is none; undefined when that is not allowed. */
  startDaemon?(): void
  /** What one that was started and is not there said, for a person. */
  lastWords?(): string | undefined
  /** For an agent of ours: a daemon that is away is being restarted, and its tools would be missing for the rest of its life. */
  waits?: boolean
  log(message: string): void
}

type Id = string | number
interface Message {
  id?: Id | null
  method?: string
  params?: {
    uri?: string
    requestId?: Id
    _meta?: Record<string, unknown>
    notifications?: { toolsListChanged?: boolean; resourceSubscriptions?: string[] }
  }
}

const CONNECT_MS = 15_000
const RETRY_MS = 50
/** A daemon that is still going down holds the state folder: one that was started meanwhile has given up, so another is. */
const START_AGAIN_MS = 2_000
const DRAIN_MS = 10_000
const MAX_LINE = 1_048_576
const REPLAY = 'signalbox-replay-'
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'

/**
 * A line pipe from stdio to the daemon's socket. When the daemon goes away, what it did not answer is answered with
 * DISCONNECTED (never sent again: it may have been done), and the connection is made anew with the same initialize.
 */
export class Shim {
  readonly #parts: ShimParts
  readonly #unanswered = new Map<Id, string>()
  readonly #subscriptions = new Map<string, string>()
  /** `subscriptions/listen` of 2026 clients, by id: requests that stay open and change nothing, so they may be sent twice. */
  readonly #listens = new Map<Id, string>()
  /** Those of them whose client was told that they hold: it is not told a second time. */
  readonly #acknowledged = new Set<Id>()
  readonly #waiting: string[] = []
  #initialize: string | undefined
  #initialized: string | undefined
  #socket: Socket | undefined
  #connecting: Promise<void> | undefined
  #ended = false
  #wasLost = false
  #replays = 0
  #finish: () => void = () => {}

  constructor(parts: ShimParts) {
    this.#parts = parts
  }

  /** Resolves when the input has ended and everything was answered. */
  run(): Promise<void> {
    const lines = createInterface({ input: this.#parts.input, crlfDelay: Number.POSITIVE_INFINITY })
    lines.on('line', (line) => this.#fromClient(line))
    lines.once('close', () => this.#end())
    void this.#connect()
    return new Promise((resolve) => {
      this.#finish = () => {
        this.#socket?.destroy()
        resolve()
      }
    })
  }

  #fromClient(line: string): void {
    if (!line.trim()) return
    const message = parse(line)
    if (message === undefined) return this.#answer(notUnderstood(null, -32_700, 'Parse error: each line must be one JSON-RPC message.'))
    // The daemon drops what is no message without a word, and its sender would wait for ever.
    if (!isMessage(message)) return this.#answer(notUnderstood(idOf(message), -32_600, 'Invalid request: not one JSON-RPC 2.0 message.'))
    if (Buffer.byteLength(line) > MAX_LINE)
      return this.#refuse(message, 'PAYLOAD_TOO_LARGE', `A message may have ${MAX_LINE} bytes at the most.`)
    this.#remember(message, line)
    if (this.#socket) this.#socket.write(`${line}\n`)
    else {
      this.#waiting.push(line)
      void this.#connect()
    }
  }

  #remember(message: Message, line: string): void {
    if (message.method === 'initialize') this.#initialize = line
    if (message.method === 'notifications/initialized') this.#initialized = line
    if (message.method === 'resources/subscribe' && message.params?.uri) this.#subscriptions.set(message.params.uri, line)
    if (message.method === 'resources/unsubscribe' && message.params?.uri) this.#subscriptions.delete(message.params.uri)
    // A cancelled request is never answered.
    if (message.method === 'notifications/cancelled' && message.params?.requestId !== undefined) this.#forget(message.params.requestId)
    if (!message.method || message.id === undefined || message.id === null) return
    if (message.method === 'subscriptions/listen') this.#listens.set(message.id, line)
    else this.#unanswered.set(message.id, message.method)
  }

  #forget(id: Id): void {
    this.#unanswered.delete(id)
    this.#listens.delete(id)
    this.#acknowledged.delete(id)
  }

  #fromDaemon(line: string): void {
    const message = parse(line) as Message | undefined
    // Cut off in the middle by the daemon's end: its request is answered with DISCONNECTED.
    if (!message) return
    if (typeof message.id === 'string' && message.id.startsWith(REPLAY)) return
    if (message.method === 'notifications/subscriptions/acknowledged' && !this.#isFirst(subscriptionOf(message))) return
    if (!message.method && message.id !== undefined && message.id !== null) this.#forget(message.id)
    this.#parts.output.write(`${line}\n`)
    this.#finishWhenDrained()
  }

  #isFirst(acknowledged: Id): boolean {
    const first = !this.#acknowledged.has(acknowledged)
    this.#acknowledged.add(acknowledged)
    return first
  }

  #connect(): Promise<void> {
    this.#connecting ??= this.#reach()
      .catch((error: Error & { code?: string }) => this.#giveUp(error.code ?? 'DISCONNECTED', error.message))
      .finally(() => {
        this.#connecting = undefined
      })
    return this.#connecting
  }

  async #reach(): Promise<void> {
    const deadline = performance.now() + CONNECT_MS
    let startAt = 0
    for (;;) {
      const socket = await open(this.#parts.socketPath())
      // It may go away between the two: then it is as if it had not been there.
      if (socket && (await this.#greet(socket))) return
      if (!this.#parts.startDaemon && !(this.#parts.waits && performance.now() < deadline))
        throw new Error('No Signalbox daemon is running. Start it with: signalbox serve')
      if (this.#parts.startDaemon && performance.now() > startAt) {
        this.#parts.startDaemon()
        startAt = performance.now() + START_AGAIN_MS
      }
      if (performance.now() > deadline)
        throw new Error(
          `The Signalbox daemon did not start within ${CONNECT_MS / 1_000} s. ${this.#parts.lastWords?.() ?? 'Start it by hand to see why: signalbox serve'}`,
        )
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }

  /** False when the daemon closed the connection without a word. */
  async #greet(socket: Socket): Promise<boolean> {
    const lines = createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY })
    // readline passes a broken connection on as its own error, and that would end this process with the daemon.
    lines.on('error', () => {})
    const welcome = new Promise<Welcome | undefined>((resolve) => {
      lines.once('line', (line) => {
        lines.on('line', (next) => this.#fromDaemon(next))
        resolve(parse(line) as Welcome | undefined)
      })
      socket.once('close', () => resolve(undefined))
    })
    socket.write(`${JSON.stringify(this.#parts.hello())}\n`)
    const answer = await welcome
    if (!answer) return false
    if (!answer.ok) throw Object.assign(new Error(answer.message), { code: answer.code })
    socket.once('close', () => this.#lost())
    this.#socket = socket
    this.#replay(socket)
    if (this.#wasLost) this.#lookAgain()
    for (const line of this.#waiting.splice(0)) socket.write(`${line}\n`)
    return true
  }

  /** The new connection must know what the old one was told; the answers are ours, not the client's. */
  #replay(socket: Socket): void {
    for (const line of this.#listens.values()) if (!this.#waiting.includes(line)) socket.write(`${line}\n`)
    if (!this.#initialize || this.#waiting.includes(this.#initialize)) return
    const { id } = parse(this.#initialize) as Message
    const pending = id !== undefined && id !== null && this.#unanswered.has(id)
    socket.write(`${pending ? this.#initialize : this.#asReplay(this.#initialize)}\n`)
    if (this.#initialized) socket.write(`${this.#initialized}\n`)
    for (const line of this.#subscriptions.values()) if (!this.#waiting.includes(line)) socket.write(`${this.#asReplay(line)}\n`)
  }

  /** What happened while the connection was gone is not known: the client looks again at all that it follows. */
  #lookAgain(): void {
    const tell = (method: string, params: object) => this.#parts.output.write(`${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`)
    const tellAll = (tools: boolean, uris: Iterable<string>, more: object) => {
      if (tools) tell('notifications/tools/list_changed', more)
      for (const uri of uris) tell('notifications/resources/updated', { uri, ...more })
    }
    if (this.#initialized) tellAll(true, this.#subscriptions.keys(), {})
    for (const id of this.#acknowledged) {
      const { toolsListChanged = false, resourceSubscriptions = [] } =
        (parse(this.#listens.get(id) ?? '') as Message | undefined)?.params?.notifications ?? {}
      tellAll(toolsListChanged, resourceSubscriptions, { _meta: { [SUBSCRIPTION_ID]: id } })
    }
  }

  #asReplay(line: string): string {
    return JSON.stringify({ ...(JSON.parse(line) as object), id: `${REPLAY}${++this.#replays}` })
  }

  #lost(): void {
    this.#socket = undefined
    this.#wasLost = true
    if (this.#ended && this.#unanswered.size === 0) return this.#finish()
    this.#parts.log('the daemon went away; connecting again')
    for (const [id, method] of this.#unanswered) {
      // initialize changes nothing, so it is the one request that may be sent twice.
      if (method === 'initialize') continue
      this.#answer(
        disconnected(
          id,
          method,
          'DISCONNECTED',
          'The Signalbox daemon went away before it answered; whether the call was done is not known.',
        ),
      )
    }
    if (this.#initialize || this.#listens.size || this.#waiting.length) void this.#connect()
    this.#finishWhenDrained()
  }

  /** Nothing reached the daemon, so nothing was done: the client may try again, and that tries to connect again. */
  #giveUp(code: string, message: string): void {
    this.#parts.log(message)
    this.#waiting.length = 0
    for (const [id, method] of this.#unanswered) this.#answer(disconnected(id, method, code, message))
    for (const id of this.#listens.keys()) this.#answer(disconnected(id, 'subscriptions/listen', code, message))
    this.#finishWhenDrained()
  }

  #refuse({ id, method }: Message, code: string, message: string): void {
    if (method && id !== undefined && id !== null) this.#answer(disconnected(id, method, code, message))
  }

  #answer(message: { id: Id | null; [key: string]: unknown }): void {
    if (message.id !== null) this.#forget(message.id)
    this.#parts.output.write(`${JSON.stringify(message)}\n`)
  }

  #end(): void {
    this.#ended = true
    this.#finishWhenDrained()
    setTimeout(() => this.#finish(), DRAIN_MS).unref()
  }

  #finishWhenDrained(): void {
    if (this.#ended && this.#unanswered.size === 0 && this.#waiting.length === 0) this.#finish()
  }
}

/** A tool call gets a result that the model can read; any other request an error of the protocol. */
function disconnected(id: Id, method: string, code: string, message: string) {
  if (method !== 'tools/call') return { jsonrpc: '2.0', id, error: { code: -32_000, message, data: { code } } }
  const structured = {
    error: { code, message, hint: 'Look at the state before you repeat a write, or repeat it with the same idempotency_key.' },
  }
  return {
    jsonrpc: '2.0',
    id,
    result: { isError: true, content: [{ type: 'text', text: JSON.stringify(structured) }], structuredContent: structured },
  }
}

function open(path: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.off('error', failed)
      socket.on('error', () => {})
      resolve(socket)
    })
    const failed = () => resolve(undefined)
    socket.once('error', failed)
  })
}

function notUnderstood(id: Id | null, code: number, message: string) {
  return { jsonrpc: '2.0', id, error: { code, message } }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line) as unknown
  } catch {
    return undefined
  }
}

function isMessage(value: unknown): value is Message {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { jsonrpc, id, method } = value as { jsonrpc?: unknown; id?: unknown; method?: unknown }
  if (jsonrpc !== '2.0') return false
  if (method === undefined) return id !== undefined
  return typeof method === 'string' && (id === undefined || typeof id === 'string' || typeof id === 'number')
}

function idOf(value: unknown): Id | null {
  const { id } = (value ?? {}) as { id?: unknown }
  return typeof id === 'string' || typeof id === 'number' ? id : null
}

function subscriptionOf(message: Message): Id {
  return message.params?._meta?.[SUBSCRIPTION_ID] as Id
}
