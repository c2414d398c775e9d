import type { z } from 'zod'
import type { EventView } from '../kernel/schema.ts'

export type LiveEvent = z.output<typeof EventView>
/** `unreachable`: was never connected; `lost`: not any more; both are tried again. `refused`: the token is no longer good. */
export type StreamState = 'connecting' | 'unreachable' | 'live' | 'lost' | 'refused'

interface Handlers {
  events(events: LiveEvent[]): void
  state(state: StreamState): void
  /** It is open again: what was asked over a connection that is gone may never be answered. `generation`: of which log it was. */
  resumed(generation: string): void
  /** The log is another one: whatever the page knows may be wrong. */
  reset(): void
}

const FIRST_RETRY_MS = 250
const LAST_RETRY_MS = 4_000
/** The cursor comes with the opening. */
const OPENING_MS = 5_000
/** The daemon says that it is alive every 15 s. */
const SILENCE_MS = 40_000
/** A burst is handed over together: one drawing instead of a hundred. */
const TOGETHER_MS = 30
/** A browser opens six connections to one address: tabs that nobody looks at must not hold them. */
const UNSEEN_MS = 5_000
const ASLEEP = 'nobody looks at the page'

/**
 * The one stream of a page. It is opened before the first rows are read, so that what follows can only repeat what they
 * say; when it is cut, it goes on from the last event it saw. While nobody looks at the page it is let go.
 */
export class EventStream {
  readonly #token: string
  readonly #handlers: Handlers
  readonly #ended = new AbortController()
  #cursor: string | undefined
  #batch: LiveEvent[] = []
  #hurry: (() => void) | undefined
  #connection: AbortController | undefined
  #unseen: ReturnType<typeof setTimeout> | undefined
  #asleep = false
  #wake: (() => void) | undefined
  #generation = ''
  #opened = false
  #replaced = false

  constructor(token: string, handlers: Handlers) {
    this.#token = token
    this.#handlers = handlers
    const { signal } = this.#ended
    for (const [target, name] of [
      [window, 'online'],
      [document, 'visibilitychange'],
    ] as const)
      target.addEventListener(name, () => this.#hurry?.(), { signal })
    document.addEventListener('visibilitychange', () => this.#seen(), { signal })
    this.#seen()
    void this.#follow()
  }

  close(): void {
    clearTimeout(this.#unseen)
    this.#ended.abort()
  }

  /** A read after `resumed` had this cursor: the stream itself repeats the one that it was given, of whichever log. */
  compare(generation: string, cursor: string): void {
    if (generationOf(cursor) === generation || this.#ended.signal.aborted) return
    this.#generation = generationOf(cursor)
    this.#handlers.reset()
  }

  #seen(): void {
    clearTimeout(this.#unseen)
    if (document.hidden) {
      this.#unseen = setTimeout(() => {
        this.#asleep = true
        this.#connection?.abort(ASLEEP)
      }, UNSEEN_MS)
    } else {
      this.#asleep = false
      this.#wake?.()
    }
  }

  async #follow(): Promise<void> {
    let pause = FIRST_RETRY_MS
    while (!this.#ended.signal.aborted) {
      if (this.#asleep)
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      const outcome = await this.#read()
      if (this.#ended.signal.aborted) return
      if (outcome === 'asleep') continue
      if (outcome === 'refused') return this.#handlers.state('refused')
      if (outcome === 'reset') {
        this.#cursor = undefined
        this.#replaced = true
        continue
      }
      // Before the first opening nothing may be read: what happens until then is in no stream.
      this.#handlers.state(this.#opened ? 'lost' : 'unreachable')
      pause = outcome === 'cut' ? FIRST_RETRY_MS : Math.min(pause * 2, LAST_RETRY_MS)
      await this.#waited(pause * (0.75 + Math.random() / 2))
    }
  }

  /** One connection, from its opening to its end. */
  async #read(): Promise<'refused' | 'reset' | 'unreachable' | 'cut' | 'asleep'> {
    const connection = new AbortController()
    this.#connection = connection
    const signal = AbortSignal.any([connection.signal, this.#ended.signal])
    let silence = setTimeout(() => connection.abort(), OPENING_MS)
    let opened = false
    try {
      const resume: Record<string, string> = this.#cursor === undefined ? {} : { 'last-event-id': this.#cursor }
      const response = await fetch('/api/events', { headers: { authorization: `Bearer ${this.#token}`, ...resume }, signal })
      if (response.status === 401) return 'refused'
      if (response.status === 400 && this.#cursor !== undefined) return 'reset'
      if (!response.ok || !response.body) return 'unreachable'
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      let rest = ''
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return 'cut'
        clearTimeout(silence)
        silence = setTimeout(() => connection.abort(), SILENCE_MS)
        const frames = (rest + value).split('\n\n')
        rest = frames.pop() ?? ''
        for (const frame of frames) {
          this.#take(frame, !opened)
          opened = true
        }
      }
    } catch {
      if (connection.signal.reason === ASLEEP) return 'asleep'
      return opened ? 'cut' : 'unreachable'
    } finally {
      clearTimeout(silence)
    }
  }

  #take(frame: string, first: boolean): void {
    for (const line of frame.split('\n')) {
      if (line.startsWith('id: ')) {
        const [before, cursor] = [this.#cursor, line.slice(4)]
        const again = first && this.#opened
        if (cursor !== before) {
          if (again && generationOf(cursor) !== this.#generation) this.#replaced = true
          this.#generation = generationOf(cursor)
        }
        this.#cursor = cursor
        this.#opened = true
        this.#handlers.state('live')
        // Read again only now: what the new log gets from here on is in this stream.
        if (this.#replaced) this.#handlers.reset()
        else if (again) this.#handlers.resumed(this.#generation)
        this.#replaced = false
      } else if (line.startsWith('data: ')) this.#hand(JSON.parse(line.slice(6)) as LiveEvent)
    }
  }

  #hand(event: LiveEvent): void {
    if (!this.#batch.length)
      setTimeout(() => {
        const events = this.#batch
        this.#batch = []
        if (!this.#ended.signal.aborted) this.#handlers.events(events)
      }, TOGETHER_MS)
    this.#batch.push(event)
  }

  #waited(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#hurry = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

/** Which log a cursor is of; the rest of it is the daemon's own business. */
function generationOf(cursor: string): string {
  return cursor.slice(0, cursor.indexOf('.'))
}
