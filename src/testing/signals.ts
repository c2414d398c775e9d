import { sql } from 'kysely'
import type { App } from '../daemon/app.ts'
import { tables } from '../db/tables.ts'
import { TransientFault } from '../kernel/error.ts'
import type { Storage, Tx } from '../kernel/storage.ts'

export interface Deferred<T = void> {
  promise: Promise<T>
  resolve(value: T): void
}

export function deferred<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void
  const promise = new Promise<T>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

const PATIENCE_MS = 60_000
/** A look that takes longer is one during which this process, or the machine, stood still: that costs no more patience. */
const LONGEST_LOOK_MS = 1_000
const LOOKS_AT_ONCE = 20
/** After so long it looks again although nothing was written: not all that tests wait for is in a database. */
const LOOK_AGAIN_MS = 5
const RARELY_MS = 40
/** Looks take a quarter of the time at most: the processor is for those that it waits for. */
const REST_PER_LOOK = 3
const LONGEST_REST_MS = 100
// As it is before a test puts a clock of its own in its place.
const later = setTimeout
const clock = performance.now.bind(performance)

const waiting = new Set<() => void>()
let writes = 0

/** Said after every commit of every test app: whoever waits looks again. */
export function written(): void {
  writes++
  for (const wake of waiting) wake()
}

/** Looks again whenever something was written, and now and then: no clock decides when a test goes on. */
export async function until(holds: () => boolean | Promise<boolean>, patienceMs = PATIENCE_MS): Promise<void> {
  let [patience, looked, seen] = [patienceMs, clock(), writes]
  for (let looks = 1; !(await holds()); looks++) {
    const took = clock() - looked
    const isCheap = looks < LOOKS_AT_ONCE && took < 0.3
    if (isCheap) await new Promise<void>((resolve) => setImmediate(resolve))
    else await restAfter(took, looks, seen)
    patience -= Math.min(clock() - looked, LONGEST_LOOK_MS)
    looked = clock()
    seen = writes
    if (patience < 0) throw new Error(`this never came true: ${holds}`)
  }
}

async function restAfter(took: number, looks: number, seen: number): Promise<void> {
  await new Promise((resolve) => later(resolve, Math.min(took * REST_PER_LOOK, LONGEST_REST_MS)))
  if (writes !== seen) return
  await new Promise<void>((resolve) => {
    const timer = later(() => wake(), Math.min(LOOK_AGAIN_MS * looks, RARELY_MS))
    const wake = () => {
      clearTimeout(timer)
      waiting.delete(wake)
      resolve()
    }
    waiting.add(wake)
  })
}

/** The next write stands still between its permission check and its transaction, until it is let go. */
export function holdNextWrite(app: App): { reached: Promise<void>; letGo(): void } {
  const engine = app.kernel.parts.storage
  const [reached, gate] = [deferred(), deferred()]
  app.kernel.parts.storage = {
    view: engine.view,
    async write(job) {
      app.kernel.parts.storage = engine
      reached.resolve()
      await gate.promise
      return engine.write(job)
    },
  }
  return { reached: reached.promise, letGo: () => gate.resolve() }
}

/**
 * On PostgreSQL: how many transactions stand still until another one has ended. To be asked by the transaction that they wait for: whoever
 * reads may stand still, too, and there are few connections to read by.
 */
export async function lockWaits(tx: Tx): Promise<number> {
  await sql`SELECT pg_stat_clear_snapshot()`.execute(tables(tx))
  const waits = sql<{ n: number }>`SELECT count(DISTINCT pid) AS n FROM pg_locks WHERE NOT granted
    AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())`
  return (await waits.execute(tables(tx))).rows[0]?.n ?? 0
}

/** What happens to the writes to come, one by one; later ones go through. */
export type Fate = 'fails before' | 'fails after the commit' | 'passes'

export function faulty(storage: Storage, fates: Fate[]): Storage & { attempts: number } {
  return {
    view: storage.view,
    attempts: 0,
    async write(job) {
      this.attempts++
      const fate = fates.shift() ?? 'passes'
      if (fate === 'fails before') throw new TransientFault('the line is down')
      const value = await storage.write(job)
      if (fate === 'fails after the commit') throw new TransientFault('the line went down')
      return value
    },
  }
}
