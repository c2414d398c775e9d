import { type Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { type Deferred, deferred } from '../../src/testing/signals.ts'
import { seqOf } from './cursor.ts'

export interface ReaderPlan {
  target: { url: string; up?: Promise<void> }
  token: string
  agent?: Agent
  /** Where it starts; without one, at the end of the log as it is when it connects. */
  after?: string
  types?: string
  /** Takes nothing in for a second after every hundredth event: the daemon has to keep its events, or to cut it off. */
  slow?: boolean
}

/** Follows GET /api/events for ever: whenever it is cut off, it comes back with Last-Event-ID. */
export class StreamReader {
  readonly plan: ReaderPlan
  /** The sequence number of every event, in the order in which they arrived. */
  readonly seen: number[] = []
  connections = 0
  readonly problems: string[] = []
  #last: string | undefined
  #rest = ''
  #request: ClientRequest | undefined
  #closed = false
  #rested = 0
  #goal: { met(): boolean; reached: Deferred } | undefined
  readonly connected: Promise<void>
  readonly #connected = deferred()

  constructor(plan: ReaderPlan) {
    this.plan = plan
    this.#last = plan.after
    this.connected = this.#connected.promise
    void this.#follow()
  }

  /** Resolves when it has seen this event or a later one. */
  reaches(seq: number): Promise<void> {
    return this.#until(() => (this.seen.at(-1) ?? 0) >= seq)
  }

  /** Resolves when it has seen so many. */
  counts(events: number): Promise<void> {
    return this.#until(() => this.seen.length >= events)
  }

  async #until(met: () => boolean): Promise<void> {
    if (met() || this.#closed) return
    this.#goal = { met, reached: deferred() }
    await this.#goal.reached.promise
  }

  close(): void {
    this.#closed = true
    this.#request?.destroy()
  }

  async #follow(): Promise<void> {
    while (!this.#closed) {
      await this.plan.target.up
      const response = await this.#open()
      if (!response) continue
      if (response.statusCode !== 200) {
        this.problems.push(`GET /api/events answered ${response.statusCode}`)
        return this.#giveUp()
      }
      this.connections++
      this.#connected.resolve()
      await this.#drain(response)
    }
  }

  /** Whoever waits for it goes on, and finds the problem. */
  #giveUp(): void {
    this.#closed = true
    this.#connected.resolve()
    this.#goal?.reached.resolve()
  }

  #open(): Promise<IncomingMessage | undefined> {
    const query = this.plan.types ? `?types=${this.plan.types}` : ''
    const headers = { authorization: `Bearer ${this.plan.token}`, ...(this.#last ? { 'last-event-id': this.#last } : {}) }
    return new Promise((resolve) => {
      this.#request = request(`${this.plan.target.url}/api/events${query}`, { headers, agent: this.plan.agent }, resolve)
      this.#request.on('error', () => resolve(undefined))
      this.#request.end()
    })
  }

  #drain(response: IncomingMessage): Promise<void> {
    this.#rest = ''
    response.setEncoding('utf8')
    response.on('error', () => {})
    response.on('data', (text: string) => {
      this.#take(text)
      if (this.plan.slow) this.#dawdle(response)
    })
    return new Promise((resolve) => response.once('close', resolve))
  }

  /** A reader that is slow: that it takes its time is the point. */
  #dawdle(response: IncomingMessage): void {
    if (this.seen.length - this.#rested < 100) return
    this.#rested = this.seen.length
    response.pause()
    setTimeout(() => response.resume(), 1_000)
  }

  /** A frame that was cut in the middle is not an event yet: it comes again on the next connection. */
  #take(text: string): void {
    const frames = (this.#rest + text).split('\n\n')
    this.#rest = frames.pop() ?? ''
    for (const frame of frames) {
      const id = /^id: (.+)$/m.exec(frame)?.[1]
      if (!id) continue
      this.#last = id
      // Without data it only says where the stream stands.
      if (!/^data: /m.test(frame)) continue
      this.seen.push(seqOf(id))
    }
    if (this.#goal?.met()) this.#goal.reached.resolve()
  }
}
