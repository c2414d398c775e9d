import { type Code, TransientFault } from './error.ts'
import { type Cursor, type EventFilter, type LoggedEvent, matches, type NewEvent } from './event.ts'
import { mayRead, type Principal } from './policy.ts'
import type { Storage, Tx } from './storage.ts'
import type { Waited } from './tool.ts'

/** One row of the audit: who asked what, and how it ended. */
export interface CallRecord {
  id: string
  at: number
  principal: string
  principal_kind: string
  token: string | null
  /** The person behind the call, when a person acts for an agent. */
  by: string | null
  lane: string
  surface: string
  dialect: string | null
  tool: string
  /** `answered`: what a call said after it had waited; a row beside that of the call. */
  outcome: 'ok' | 'replayed' | 'refused' | 'failed' | 'answered'
  code: Code | null
  input: string
  output: string
  duration_ms: number
}

export interface StoredAnswer {
  input_hash: string
  answer: string
}

/** The two append-only tables and what belongs to them. */
export interface Ledger {
  append(tx: Tx, events: NewEvent[], call: { id: string; at: number; actor: string }): Promise<void>
  /** A call id is there once: twice is a defect, unless a batch is written `perhaps again` after a fault that may have struck late. */
  audit(tx: Tx, calls: CallRecord[], how?: 'perhaps again'): Promise<void>
  committed(view: Tx, callId: string): Promise<boolean>
  /** Events after the cursor in commit order; rejects with INVALID_CURSOR on one this log never issued. */
  tail(view: Tx, after: Cursor, filter: EventFilter, limit: number): Promise<LoggedEvent[]>
  /** Events before the cursor, or from the end of the log, the newest first. */
  recent(view: Tx, before: Cursor | undefined, filter: EventFilter, limit: number): Promise<LoggedEvent[]>
  head(view: Tx): Promise<Cursor>
  start(view: Tx): Promise<Cursor>
  /** Whether `a` comes after `b`. */
  isAfter(a: Cursor, b: Cursor): boolean
  /** The same without a filter; `heldBack` says that committed events are not shown yet, because an older transaction is still open. */
  news(view: Tx, after: Cursor, limit: number): Promise<{ events: LoggedEvent[]; heldBack: boolean }>
  remembered(tx: Tx, principal: string, tool: string, key: string, now: number): Promise<StoredAnswer | undefined>
  /** `instead` of the one that was there. */
  remember(tx: Tx, principal: string, tool: string, key: string, stored: StoredAnswer, now: number, instead?: StoredAnswer): Promise<void>
  countRefusals(tx: Tx, counts: { source: string; reason: string; count: number; at: number }[]): Promise<void>
  /** Drops some of what has outlived its use: idempotency keys after 24 h. True when there may be more. */
  forget(tx: Tx, now: number): Promise<boolean>
}

const PAGE = 500
/** Of a reader who may see little of what is there, one row at a time would be a query each. */
const SMALLEST_PAGE = 50
const TELL_AGAIN_MS = 1_000
const HELD_BACK_MS = 5
/** Each has its answer to make and to write. */
const WOKEN_AT_ONCE = 16

/**
 * The one place where "something was committed" becomes "someone is told". After each commit it reads the new events
 * once and hands them to every waiter and stream; nobody polls.
 */
export class Feed {
  readonly #ledger: Ledger
  readonly #storage: Storage
  readonly #listeners = new Set<(events: LoggedEvent[]) => void>()
  readonly #waiting = new Set<Wake>()
  readonly #toWake: Wake[] = []
  #interrupted = false
  #head: Cursor
  #pumping: Promise<void> | undefined
  #again = false
  #heldSince: number | undefined

  private constructor(ledger: Ledger, storage: Storage, head: Cursor) {
    this.#ledger = ledger
    this.#storage = storage
    this.#head = head
  }

  static async open(ledger: Ledger, storage: Storage): Promise<Feed> {
    return new Feed(ledger, storage, await ledger.head(storage.view))
  }

  /** Who is told of a change finds it in force. What fails here is tried again, as is a look at the log that fails. */
  beforeTelling: (events: LoggedEvent[]) => Promise<void> = async () => {}

  get head(): Cursor {
    return this.#head
  }

  get waiters(): number {
    return this.#waiting.size
  }

  get readers(): number {
    return this.#listeners.size - this.#waiting.size
  }

  get heldBackMs(): number {
    return this.#heldSince === undefined ? 0 : performance.now() - this.#heldSince
  }

  /** Call after every commit that may have brought events. Calls made meanwhile are folded into one more round. */
  pump(): Promise<void> {
    this.#again = true
    this.#pumping ??= this.#drain()
    return this.#pumping
  }

  /** Never rejects: most callers do not wait for it, and a rejection that nobody handles ends the process. */
  async #drain(): Promise<void> {
    try {
      while (this.#again) {
        this.#again = false
        const heldBack = await this.#tellNew()
        this.#heldSince = heldBack ? (this.#heldSince ?? performance.now()) : undefined
        if (heldBack) this.#tellAgain(HELD_BACK_MS)
      }
    } catch {
      this.#tellAgain()
    } finally {
      // In the same step as the last look at #again: a pump in between would join a round that is already over.
      this.#pumping = undefined
    }
  }

  async #tellNew(): Promise<boolean> {
    for (;;) {
      const { events, heldBack } = await this.#ledger.news(this.#storage.view, this.#head, PAGE)
      const last = events.at(-1)
      if (!last) return heldBack
      await this.beforeTelling(events)
      this.#head = last.cursor
      for (const listener of this.#listeners) listener(events)
      if (events.length < PAGE) return heldBack
    }
  }

  /** Storage did not answer: what was committed must still be told, even when no other commit follows. */
  #tellAgain(afterMs = TELL_AGAIN_MS): void {
    if (!this.#interrupted) setTimeout(() => void this.pump(), afterMs).unref()
  }

  /** The listener must not throw: those behind it would not hear of the events. */
  subscribe(listener: (events: LoggedEvent[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Ends every wait; their callers get the cursor to go on from. */
  interrupt(): void {
    this.#interrupted = true
    for (const wake of this.#waiting) wake.now('interrupted')
  }

  /** What the reader may see after the cursor, oldest first; from the beginning of the log without one. */
  async read(principal: Principal, after: Cursor | undefined, filter: EventFilter, limit: number): Promise<LoggedEvent[]> {
    const { view } = this.#storage
    const start = after ?? (await this.#ledger.start(view))
    return this.#pages(principal, limit, start, (from, size) => this.#ledger.tail(view, from ?? start, filter, size))
  }

  /** What the reader may see before the cursor, newest first; from the end of the log without one. */
  readBack(principal: Principal, before: Cursor | undefined, filter: EventFilter, limit: number): Promise<LoggedEvent[]> {
    return this.#pages(principal, limit, before, (from, size) => this.#ledger.recent(this.#storage.view, from, filter, size))
  }

  async #pages(
    principal: Principal,
    limit: number,
    start: Cursor | undefined,
    look: (from: Cursor | undefined, size: number) => Promise<LoggedEvent[]>,
  ): Promise<LoggedEvent[]> {
    const found: LoggedEvent[] = []
    const size = Math.min(PAGE, Math.max(limit, SMALLEST_PAGE))
    let from = start
    while (found.length < limit) {
      const page = await look(from, size)
      found.push(...page.filter((event) => mayRead(principal, event)))
      const last = page.at(-1)
      if (!last || page.length < size) break
      from = last.cursor
      // A long log is read in turns: health and everybody else's calls come in between.
      await new Promise((resolve) => setImmediate(resolve))
    }
    return found.slice(0, limit)
  }

  /** Storage is away for a moment: a wait is there to outlast that. */
  #lookAgain(wake: Wake, error: unknown): undefined {
    if (!(error instanceof TransientFault)) throw error
    setTimeout(() => wake.now('events'), TELL_AGAIN_MS).unref()
  }

  /** Some in each turn: hundreds at once would keep everybody else, and health, from being answered until the last one is. */
  #wakeSoon(wake: Wake): void {
    if (this.#toWake.push(wake) === 1) queueMicrotask(() => this.#wakeSome())
  }

  #wakeSome(): void {
    for (const wake of this.#toWake.splice(0, WOKEN_AT_ONCE)) wake.now('events')
    if (this.#toWake.length) setImmediate(() => this.#wakeSome())
  }

  async wait(
    principal: Principal,
    after: Cursor,
    filter: EventFilter,
    limits: { timeoutMs: number; holdMs: number; signal: AbortSignal },
  ): Promise<Waited> {
    const wake = new Wake()
    this.#waiting.add(wake)
    const interrupt = () => wake.now('interrupted')
    limits.signal.addEventListener('abort', interrupt)
    if (limits.signal.aborted || this.#interrupted) interrupt()
    const told: LoggedEvent[] = []
    const isNews = (event: LoggedEvent) => matches(filter, event) && mayRead(principal, event) && this.#ledger.isAfter(event.cursor, after)
    // Subscribed before the first look: an event between the two would otherwise be missed until the next one.
    const unsubscribe = this.subscribe((events) => {
      const before = told.length
      for (const event of events) if (isNews(event)) told.push(event)
      if (told.length > before) this.#wakeSoon(wake)
    })
    const held = limits.holdMs < limits.timeoutMs
    const timer = setTimeout(() => wake.now(held ? 'hold' : 'timeout'), Math.min(limits.holdMs, limits.timeoutMs))
    try {
      for (;;) {
        const events = await this.read(principal, after, filter, PAGE).catch((error) => this.#lookAgain(wake, error))
        if (events?.length) return { events, ended: 'events' }
        const reason = await wake.promise
        // There was nothing before, so what was told since then is all there is: no need for everybody to read it again. Also
        // when its time was over before its turn to be woken came: it was told in time.
        if (events && told.length) return { events: told.slice(0, PAGE), ended: 'events' }
        if (reason !== 'events') return { events: [], ended: reason }
        wake.rearm()
      }
    } finally {
      clearTimeout(timer)
      unsubscribe()
      this.#waiting.delete(wake)
      limits.signal.removeEventListener('abort', interrupt)
    }
  }
}

type Reason = Waited['ended']

/** A promise that can be armed again after events. Any other reason is final: it must not be lost between two looks. */
class Wake {
  promise!: Promise<Reason>
  #resolve!: (reason: Reason) => void
  #final: Reason | undefined

  constructor() {
    this.rearm()
  }

  now(reason: Reason): void {
    if (reason !== 'events') this.#final ??= reason
    this.#resolve(reason)
  }

  rearm(): void {
    this.promise = new Promise((resolve) => {
      this.#resolve = resolve
    })
    if (this.#final) this.#resolve(this.#final)
  }
}
