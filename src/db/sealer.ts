import type { Storage, Tx } from '../kernel/storage.ts'
import type { Place, PlacedRow, RowOrder } from './row-order.ts'
import { BEFORE_THE_FIRST, type Hashed, hashRow, makeSeal, type SealedTable } from './seal.ts'
import { lastSealed, sealStore } from './seal-store.ts'

const EVERY_MS = 1_000
/** Rows of each table under one seal. */
const AT_ONCE = 500
const A_FEW = 100
/** A stop has a deadline; what a long backlog leaves over is sealed after the next start. */
const LAST_WORDS_MS = 1_000
const HELD_BACK_MS = 20

/** Where the chain ends, and up to which row of each table it goes. */
interface Tip {
  number: number
  hash: string
  after: Record<SealedTable, Place | undefined>
}

type Unsealed = Record<SealedTable, PlacedRow[]>

export interface SealerParts {
  storage: Storage
  order: RowOrder
  now(): number
  /** A seal that could not be made is tried again; this is for whoever wants to know. */
  onFault?(error: unknown): void
}

/**
 * Seals what was committed, at most about once a second and only after a commit. It keeps nothing in memory that matters:
 * killed at any point, the next one goes on from the last seal.
 */
export class Sealer {
  readonly #parts: SealerParts
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #again = false
  #closed = false

  constructor(parts: SealerParts) {
    this.#parts = parts
  }

  /** Call after every commit that may have brought rows. */
  wake(): void {
    this.#again = true
    if (!this.#running) this.#arm()
  }

  /**
   * All that is settled when it begins. Resolves with whether rows are left: new ones, or such as an open transaction holds
   * back. It does not run after the new ones: under steady writing every seal would be followed by another, of a row or two.
   */
  async seal(deadline = Number.POSITIVE_INFINITY): Promise<boolean> {
    const { view } = this.#parts.storage
    let tip = await readTip(view, this.#parts.order)
    for (let more = true; more && performance.now() < deadline; await nextTurn()) {
      const unsealed = await this.#unsealed(tip)
      if (!unsealed.events.length && !unsealed.calls.length) break
      const next = await this.#append(tip, unsealed)
      // Another daemon was quicker: this work is dropped, and the next begins behind the other's seal.
      tip = next ?? (await readTip(view, this.#parts.order))
      more = !next || unsealed.events.length === AT_ONCE || unsealed.calls.length === AT_ONCE
    }
    return this.#anyLeft(tip)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#running
    await this.#lastWords(performance.now() + LAST_WORDS_MS).catch((error) => this.#parts.onFault?.(error))
  }

  /** A transaction that holds rows back is most likely over in a moment. */
  async #lastWords(deadline: number): Promise<void> {
    while ((await this.seal(deadline)) && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, HELD_BACK_MS))
  }

  #arm(): void {
    if (!this.#closed) this.#timer ??= setTimeout(() => this.#start(), EVERY_MS).unref()
  }

  #start(): void {
    this.#timer = undefined
    this.#again = false
    this.#running = this.#round().then((unfinished) => {
      this.#running = undefined
      if (unfinished || this.#again) this.#arm()
    })
  }

  /** Never rejects: nobody waits for it. */
  async #round(): Promise<boolean> {
    try {
      return await this.seal()
    } catch (error) {
      this.#parts.onFault?.(error)
      return true
    }
  }

  async #unsealed({ after }: Tip): Promise<Unsealed> {
    const { order, storage } = this.#parts
    const events = await order.following(storage.view, 'events', after.events, AT_ONCE, 'settled')
    await nextTurn()
    return { events, calls: await order.following(storage.view, 'calls', after.calls, AT_ONCE, 'settled') }
  }

  /** Reading and hashing are done by now: on PostgreSQL a long transaction would hold the event log back for everybody. */
  async #append(tip: Tip, rows: Unsealed): Promise<Tip | undefined> {
    const hashed = { events: await hashes('events', rows.events), calls: await hashes('calls', rows.calls) }
    const seal = makeSeal({ number: tip.number + 1, at: this.#parts.now(), previous: tip.hash }, hashed)
    if (!(await this.#parts.storage.write((tx) => sealStore(tx).append(seal)))) return undefined
    const after = { events: rows.events.at(-1) ?? tip.after.events, calls: rows.calls.at(-1) ?? tip.after.calls }
    return { number: seal.number, hash: seal.hash, after }
  }

  async #anyLeft({ after }: Tip): Promise<boolean> {
    const { order, storage } = this.#parts
    const [event] = await order.following(storage.view, 'events', after.events, 1)
    const [call] = await order.following(storage.view, 'calls', after.calls, 1)
    return event !== undefined || call !== undefined
  }
}

/** A few at a time: a call that came meanwhile is not kept waiting for all of them. */
async function hashes(table: SealedTable, rows: PlacedRow[]): Promise<Hashed[]> {
  const hashed: Hashed[] = []
  for (const row of rows) {
    hashed.push({ seq: row.seq, hash: hashRow(table, row) })
    if (hashed.length % A_FEW === 0) await nextTurn()
  }
  return hashed
}

async function readTip(view: Tx, order: RowOrder): Promise<Tip> {
  const head = await sealStore(view).head()
  if (!head) return { number: 0, hash: BEFORE_THE_FIRST, after: { events: undefined, calls: undefined } }
  const place = (table: SealedTable) => lastSealed(view, order, table, head.number + 1)
  return { number: head.number, hash: head.hash, after: { events: await place('events'), calls: await place('calls') } }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
