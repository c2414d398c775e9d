import type { CompiledQuery, DatabaseConnection, QueryResult } from 'kysely'
import { TransientFault } from '../kernel/error.ts'
import type { Tx } from '../kernel/storage.ts'
import { builderOn, type Connection } from './sqlite-connection.ts'
import { asTx } from './tables.ts'

interface Job {
  run(tx: Tx): Promise<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

type Outcome = { value: unknown } | { error: unknown }

const MAX_BATCH = 256
/** Far above what any of ours takes: a machine that stands still for a moment is no hanging transaction. */
const SLOWEST_JOB_MS = 2_000
const LONGEST_LOCK_MS = 300
const LOCK_PAUSE_MS = 20

/**
 * One writer, one transaction at a time. Whatever is waiting when it starts shares one commit (and one fsync): each job in
 * its own savepoint, all answered after the commit.
 */
export class Writer {
  readonly #connection: Connection
  readonly #queue: Job[] = []
  #running: Promise<void> | undefined
  #closed = false
  batches = 0
  /** Those in which every job succeeded. */
  commits = 0
  calls = 0

  readonly #slowestJobMs: number

  constructor(connection: Connection, slowestJobMs = SLOWEST_JOB_MS) {
    this.#connection = connection
    this.#slowestJobMs = slowestJobMs
    connection.exec('PRAGMA busy_timeout = 0')
  }

  get queued(): number {
    return this.#queue.length
  }

  write<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new TransientFault('the database is closed'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ run, resolve: resolve as (value: unknown) => void, reject })
      this.#running ??= this.#drain()
    })
  }

  /** Finishes what was accepted, then takes no more. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#running
  }

  async #drain(): Promise<void> {
    do {
      // Requests that arrived in the same turn of the event loop join this batch.
      await nextTurn()
      await this.#commit(this.#queue.splice(0, MAX_BATCH))
    } while (this.#queue.length > 0)
    this.#running = undefined
  }

  async #commit(batch: Job[]): Promise<void> {
    const outcomes: Outcome[] = []
    try {
      await this.#begin()
      for (const job of batch) {
        outcomes.push(await this.#inSavepoint(job))
        if (!this.#connection.raw.isTransaction) return await this.#oneByOne(batch, outcomes)
      }
      this.#connection.exec('COMMIT')
      this.#connection.changes.ended()
    } catch (error) {
      this.#rollback()
      for (const job of batch) job.reject(error)
      return
    }
    this.batches++
    if (outcomes.every((outcome) => 'value' in outcome)) this.commits++
    this.calls += batch.length
    for (const [i, job] of batch.entries()) settle(job, outcomes[i] as Outcome)
  }

  /** Another program may hold the lock. SQLite would wait for it with the whole process: no read and no health meanwhile. */
  async #begin(): Promise<void> {
    const began = performance.now()
    for (;;) {
      try {
        return this.#connection.exec('BEGIN IMMEDIATE')
      } catch (error) {
        if (!(error instanceof TransientFault) || performance.now() - began > LONGEST_LOCK_MS) throw error
        await pause(LOCK_PAUSE_MS)
      }
    }
  }

  /** Some faults (a full disk) end the whole transaction: what the others did is gone too, so each gets its own. */
  async #oneByOne(batch: Job[], outcomes: Outcome[]): Promise<void> {
    this.#connection.changes.ended()
    const culprit = outcomes.length - 1
    settle(batch[culprit] as Job, outcomes[culprit] as Outcome)
    for (const [i, job] of batch.entries()) if (i !== culprit) await this.#commit([job])
  }

  async #inSavepoint(job: Job): Promise<Outcome> {
    const handle = new JobHandle(this.#connection)
    this.#connection.control('SAVEPOINT job')
    try {
      const value = await withinTime(this.#slowestJobMs, job.run(asTx(builderOn(handle))))
      this.#connection.control('RELEASE job')
      return { value }
    } catch (error) {
      if (this.#connection.raw.isTransaction) this.#connection.exec('ROLLBACK TO job; RELEASE job')
      return { error }
    } finally {
      handle.open = false
    }
  }

  #rollback(): void {
    if (this.#connection.raw.isTransaction) this.#connection.exec('ROLLBACK')
    this.#connection.changes.ended()
  }
}

/** Ends with its job: a statement that a late handler still sends must not land in somebody else's transaction. */
class JobHandle implements DatabaseConnection {
  open = true
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (!this.open) return Promise.reject(new Error('this transaction has ended'))
    return this.#connection.executeQuery<R>(query)
  }

  streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    return this.#connection.streamQuery<R>()
  }
}

async function withinTime<T>(ms: number, work: Promise<T>): Promise<T> {
  const began = performance.now()
  let timer: NodeJS.Timeout | undefined
  const tooSlow = () => new TransientFault(`a transaction took longer than ${ms} ms`)
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooSlow()), ms)
  })
  try {
    const value = await Promise.race([work, late])
    if (performance.now() - began > ms) throw tooSlow()
    return value
  } finally {
    clearTimeout(timer)
  }
}

function settle(job: Job, outcome: Outcome): void {
  if ('error' in outcome) job.reject(outcome.error)
  else job.resolve(outcome.value)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
