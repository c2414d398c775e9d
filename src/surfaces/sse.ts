import type { ServerResponse } from 'node:http'
import type { Dialect } from '../kernel/dialect.ts'
import { type Cursor, type EventFilter, type LoggedEvent, matches } from '../kernel/event.ts'
import type { Feed, Ledger } from '../kernel/log.ts'
import { mayRead, type Principal } from '../kernel/policy.ts'
import { eventView } from '../kernel/schema.ts'
import { endedToken } from './updates.ts'

const HEARTBEAT_MS = 15_000
/** A reader this far behind is cut off; it comes back with Last-Event-ID and misses nothing. */
const MOST_BUFFERED = 1_000_000
const PAGE = 500

type Shape = Dialect['event']

interface Reader {
  principal: Principal
  filter: EventFilter
  response: ServerResponse
  /** How it wants to see events. */
  shape: Shape | undefined
  cursor: Cursor
  /** Behind: a page of the log is being sent, and the log will be read again. An array: what came since it was read. Undefined: fed live. */
  pending: LoggedEvent[] | 'behind' | undefined
  /** What it had not taken at the last heartbeat. */
  untaken: number
}

/** One live stream of what happens. Each event is framed once for all readers but those of a dialect, and written to the raw response. */
export class EventStreams {
  readonly #feed: Feed
  readonly #ledger: Ledger
  readonly #readers = new Set<Reader>()
  readonly #unsubscribe: () => void
  readonly #heartbeat: NodeJS.Timeout

  constructor(feed: Feed, ledger: Ledger) {
    this.#feed = feed
    this.#ledger = ledger
    this.#unsubscribe = feed.subscribe((events) => this.#broadcast(events))
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  get size(): number {
    return this.#readers.size
  }

  /** The cursor has been checked by the caller: from here on only the connection can fail. */
  async attach(response: ServerResponse, principal: Principal, filter: EventFilter, after: Cursor, shape?: Shape): Promise<void> {
    // Nobody would take out of the set what has left before it was put in.
    if (response.destroyed) return
    const reader: Reader = { principal, filter, response, shape, cursor: after, pending: 'behind', untaken: 0 }
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    // The id comes first: a reader that is cut off before its first event still knows where to go on.
    response.write(`id: ${after}\nretry: 1000\n\n`)
    response.once('close', () => this.#readers.delete(reader))
    response.on('error', () => response.destroy())
    this.#readers.add(reader)
    await this.#catchUp(reader)
  }

  close(): void {
    this.#unsubscribe()
    clearInterval(this.#heartbeat)
    for (const reader of this.#readers) this.#end(reader)
  }

  /** What is committed after the last look at the log has been broadcast meanwhile, so it waits in `pending`: no gap. */
  async #catchUp(reader: Reader): Promise<void> {
    while (this.#readers.has(reader)) {
      reader.pending = []
      const events = await this.#feed.read(reader.principal, reader.cursor, reader.filter, PAGE)
      if (!events.length) return this.#goLive(reader)
      reader.pending = 'behind'
      for (const event of events) {
        if (!this.#readers.has(reader)) return
        this.#send(reader, event, frame(event, reader.shape))
        await drained(reader.response)
      }
      // A long backlog must not keep everybody else waiting.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  #goLive(reader: Reader): void {
    const pending = reader.pending as LoggedEvent[]
    reader.pending = undefined
    for (const event of pending) this.#feedLive(reader, event, frame(event, reader.shape))
  }

  #broadcast(events: LoggedEvent[]): void {
    this.#endExpired()
    for (const event of events) {
      let framed: string | undefined
      for (const reader of this.#readers) {
        if (!matches(reader.filter, event) || !mayRead(reader.principal, event)) continue
        framed ??= frame(event)
        if (Array.isArray(reader.pending)) reader.pending.push(event)
        else if (!reader.pending) this.#feedLive(reader, event, reader.shape ? frame(event, reader.shape) : framed)
      }
      this.#endRevoked(event)
    }
  }

  #send(reader: Reader, event: LoggedEvent, framed: string): void {
    if (!this.#ledger.isAfter(event.cursor, reader.cursor)) return
    reader.cursor = event.cursor
    reader.response.write(framed)
  }

  #feedLive(reader: Reader, event: LoggedEvent, framed: string): void {
    this.#send(reader, event, framed)
    if (reader.response.writableLength > MOST_BUFFERED) reader.response.destroy()
  }

  /** At once out of the set: a write after the end would be an error that nobody handles. */
  #end(reader: Reader): void {
    this.#readers.delete(reader)
    reader.response.end()
  }

  /** A stream was opened with a token; when that ends, so does the stream. */
  #endRevoked(event: LoggedEvent): void {
    const ended = endedToken(event)
    if (ended === undefined) return
    for (const reader of this.#readers) if (reader.principal.tokenId === ended) this.#end(reader)
  }

  /** By the wall clock, which may have jumped: no timer would notice. */
  #endExpired(): void {
    for (const reader of this.#readers) if ((reader.principal.expiresAt ?? Infinity) <= Date.now()) this.#end(reader)
  }

  /** One that took nothing between two heartbeats is gone without having said so. */
  #beat(): void {
    this.#endExpired()
    for (const reader of this.#readers) {
      if (reader.response.destroyed) this.#readers.delete(reader)
      const untaken = reader.response.writableLength
      if (reader.untaken > 0 && untaken >= reader.untaken) reader.response.destroy()
      else reader.response.write(': alive\n\n')
      reader.untaken = untaken
    }
  }
}

async function drained(response: ServerResponse): Promise<void> {
  if (!response.writableNeedDrain) return
  await new Promise<void>((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}

function frame(event: LoggedEvent, shape?: Shape): string {
  const view = eventView(event)
  return `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(shape?.(view) ?? view)}\n\n`
}
