import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Hello, Welcome } from './socket.ts'

/** What the pipe needs from outside. It loads nothing of the protocol's SDK: it starts in a blink and stays small. */
export interface ShimParts {
  input: Readable
  output: Writable
  socketPath: string
  /** Read again at every connection: the token may have been rotated meanwhile. */
  hello(): Hello
  /** Starts the daemon when there is none; undefined when that is not allowed. */
  startDaemon?(): void
  log(message: string): void
}

type Id = string | number
interface Message {
  id?: Id | null
  method?: string
  params?: { uri?: string }
}

const CONNECT_MS = 15_000
const RETRY_MS = 50
const DRAIN_MS = 10_000
const MAX_LINE = 1_048_576
const REPLAY = 'signalbox-replay-'

/**
 * A line pipe from stdio to the daemon's socket. When the daemon goes away, what it did not answer is answered with
 * DISCONNECTED (never sent again: it may have been done), and the connection is made anew with the same initialize.
 */
export class Shim {
  readonly #parts: ShimParts
  readonly #unanswered = new Map<Id, string>()
  readonly #subscriptions = new Map<string, string>()
  readonly #waiting: string[] = []
  #initialize: string | undefined
  #initialized: string | undefined
  #socket: Socket | undefined
  #connecting: Promise<void> | undefined
  #ended = false
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
    const messages = parse(line)
    if (!messages)
      return this.#answer({
        jsonrpc: '2.0',
        id: null,
        error: { code: -32_700, message: 'Parse error: each line must be one JSON-RPC message.' },
      })
    if (line.length > MAX_LINE) return this.#refuse(messages, 'PAYLOAD_TOO_LARGE', `A message may have ${MAX_LINE} characters at the most.`)
    for (const message of messages) this.#remember(message, line)
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
    if (message.method && message.id !== undefined && message.id !== null) this.#unanswered.set(message.id, message.method)
  }

  #fromDaemon(line: string): void {
    for (const message of parse(line) ?? []) {
      if (typeof message.id === 'string' && message.id.startsWith(REPLAY)) return
      if (!message.method && message.id !== undefined && message.id !== null) this.#unanswered.delete(message.id)
    }
    this.#parts.output.write(`${line}\n`)
    this.#finishWhenDrained()
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
    let started = false
    for (;;) {
      const socket = await open(this.#parts.socketPath)
      if (socket) return await this.#greet(socket)
      if (!this.#parts.startDaemon) throw new Error('No Signalbox daemon is running. Start it with: signalbox serve')
      if (!started) this.#parts.startDaemon()
      started = true
      if (performance.now() > deadline)
        throw new Error(`The Signalbox daemon did not start within ${CONNECT_MS / 1_000} s. Start it by hand to see why: signalbox serve`)
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }

  async #greet(socket: Socket): Promise<void> {
    const lines = createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY })
    const welcome = new Promise<Welcome>((resolve) => {
      lines.once('line', (line) => {
        lines.on('line', (next) => this.#fromDaemon(next))
        resolve(JSON.parse(line) as Welcome)
      })
      socket.once('close', () => resolve({ ok: false, code: 'DISCONNECTED', message: 'The daemon closed the connection.' }))
    })
    socket.write(`${JSON.stringify(this.#parts.hello())}\n`)
    const answer = await welcome
    if (!answer.ok) throw Object.assign(new Error(answer.message), { code: answer.code })
    socket.once('close', () => this.#lost())
    this.#socket = socket
    this.#replay(socket)
    for (const line of this.#waiting.splice(0)) socket.write(`${line}\n`)
  }

  /** The new connection must know what the old one was told; the answers are ours, not the client's. */
  #replay(socket: Socket): void {
    if (!this.#initialize || this.#waiting.includes(this.#initialize)) return
    const [request] = parse(this.#initialize) ?? []
    const pending = request?.id !== undefined && request.id !== null && this.#unanswered.has(request.id)
    socket.write(`${pending ? this.#initialize : this.#asReplay(this.#initialize)}\n`)
    if (this.#initialized) socket.write(`${this.#initialized}\n`)
    for (const line of this.#subscriptions.values()) if (!this.#waiting.includes(line)) socket.write(`${this.#asReplay(line)}\n`)
  }

  #asReplay(line: string): string {
    return JSON.stringify({ ...(JSON.parse(line) as object), id: `${REPLAY}${++this.#replays}` })
  }

  #lost(): void {
    this.#socket = undefined
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
    if (this.#initialize || this.#waiting.length) void this.#connect()
    this.#finishWhenDrained()
  }

  /** Nothing reached the daemon, so nothing was done: the client may try again, and that tries to connect again. */
  #giveUp(code: string, message: string): void {
    this.#parts.log(message)
    this.#waiting.length = 0
    for (const [id, method] of this.#unanswered) this.#answer(disconnected(id, method, code, message))
    this.#finishWhenDrained()
  }

  #refuse(messages: Message[], code: string, message: string): void {
    for (const { id, method } of messages)
      if (method && id !== undefined && id !== null) this.#answer(disconnected(id, method, code, message))
  }

  #answer(message: { id: Id | null; [key: string]: unknown }): void {
    if (message.id !== null) this.#unanswered.delete(message.id)
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

function parse(line: string): Message[] | undefined {
  try {
    const value = JSON.parse(line) as Message | Message[]
    const messages = Array.isArray(value) ? value : [value]
    return messages.every((message) => typeof message === 'object' && message !== null) ? messages : undefined
  } catch {
    return undefined
  }
}
