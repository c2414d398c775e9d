import { EventEmitter } from 'node:events'
import { type RawBuilder, sql } from 'kysely'
import { type EffectTables, effectStore } from '../../db/effect-store.ts'
import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { EffectsParts } from '../../ports/effects.ts'
import { holdDaemons } from '../effects-shared/attempt.ts'
import { addJobs, removeOrphans, withoutJob } from './jobs.ts'

const TIDY_EVERY_BEATS = 10

type Daemon = EffectTables['daemons']

/**
 * graphile-worker keeps a dead pool's locks for four hours. Daemons therefore write down that they live and which pools are
 * theirs; whoever finds another one silent frees its leases and jobs.
 *
 * Silence is measured by the listener's own monotonic clock, over looks that all succeeded: after the database was away for a
 * minute, or its clock has jumped, everybody's last sign of life is old and nobody is dead.
 */
export class Heartbeat {
  /** Where the pool of this daemon makes itself known; a new one means that the one before is over, and its jobs are orphans. */
  readonly events = new EventEmitter()
  readonly #parts: EffectsParts
  readonly #heard = new Map<string, { seenAt: number; since: number }>()
  #pool: string | undefined
  #beats = 0
  #timer: NodeJS.Timeout | undefined
  #beating: Promise<void> | undefined

  constructor(parts: EffectsParts) {
    this.#parts = parts
    this.events.on('pool:create', ({ workerPool }: { workerPool: { id: string } }) => {
      this.#pool = workerPool.id
      // At once: what it locks before it is known would be freed only by the next tidying.
      this.#sayAlive().catch(() => {})
    })
  }

  async start(): Promise<void> {
    await this.#sayAlive()
    await this.#lookAround()
    this.#timer = setInterval(() => this.#beat(), this.#parts.times.beatMs)
    this.#timer.unref()
  }

  /** `stillActing`: it keeps its place among the living until it falls silent, because something of it may still act. */
  async stop(stillActing: boolean): Promise<void> {
    clearInterval(this.#timer)
    await this.#beating
    if (stillActing) return
    const { engine, owner } = this.#parts
    const leave = async (tx: Tx) => {
      await holdDaemons(engine, tx)
      await daemons(tx).deleteFrom('daemons').where('id', '=', owner).execute()
      await this.#offerAgain(tx)
    }
    await engine.write(leave).catch(() => {})
  }

  async #offerAgain(tx: Tx): Promise<void> {
    await addJobs(tx, await effectStore(tx, this.#parts.engine.facts).offerAgain())
  }

  #beat(): void {
    this.#beating ??= this.#sayAlive()
      .then(() => this.#lookAround())
      // The database is away, for everybody: what was not heard meanwhile says nothing.
      .catch(() => this.#heard.clear())
      .finally(() => {
        this.#beating = undefined
      })
  }

  async #sayAlive(): Promise<void> {
    const { engine, owner } = this.#parts
    const signs = { workers: JSON.stringify(this.#pool ? [this.#pool] : []), seen_at: sql<number>`${engine.facts.nowMs()}` }
    await engine.write(async (tx) => {
      const said = await daemons(tx).updateTable('daemons').set(signs).where('id', '=', owner).executeTakeFirst()
      if (said.numUpdatedRows === 0n) await this.#come(tx, signs)
    })
  }

  /** New, or taken for dead meanwhile. */
  async #come(tx: Tx, signs: { workers: string; seen_at: RawBuilder<number> }): Promise<void> {
    const { engine, owner, host } = this.#parts
    await holdDaemons(engine, tx)
    await daemons(tx)
      .insertInto('daemons')
      .values({ id: owner, host, ...signs })
      .onConflict((oc) => oc.column('id').doUpdateSet(signs))
      .execute()
    await this.#offerAgain(tx)
  }

  async #lookAround(): Promise<void> {
    const known = await daemons(this.#parts.engine.view).selectFrom('daemons').selectAll().execute()
    const dead = this.#silent(known)
    if (dead.length || this.#beats++ % TIDY_EVERY_BEATS === 0) await this.#tidy(dead)
  }

  #silent(known: Daemon[]): string[] {
    const now = performance.now()
    for (const id of this.#heard.keys()) if (!known.some((daemon) => daemon.id === id)) this.#heard.delete(id)
    return known.flatMap(({ id, seen_at }) => {
      const before = this.#heard.get(id)
      if (before?.seenAt === seen_at) return now - before.since > this.#parts.times.deadAfterMs ? id : []
      this.#heard.set(id, { seenAt: seen_at, since: now })
      return []
    })
  }

  /** One daemon at a time; what the others would do is done by then. */
  async #tidy(dead: string[]): Promise<void> {
    const { engine, times } = this.#parts
    await engine.write(async (tx) => {
      await engine.hold?.(tx, ['effects.tidy'])
      if (dead.length) await holdDaemons(engine, tx)
      const gone = dead.length ? await daemons(tx).deleteFrom('daemons').where('id', 'in', dead).returningAll().execute() : []
      const living = await daemons(tx).selectFrom('daemons').selectAll().execute()
      await effectStore(tx, engine.facts).expireAllBut(living.map((daemon) => daemon.id))
      if (gone.length) await this.#offerAgain(tx)
      await removeOrphans(tx, { dead: poolsOf(gone), living: poolsOf(living) }, times.deadAfterMs)
      await addJobs(tx, await withoutJob(tx, engine.facts))
    })
  }
}

function poolsOf(some: Daemon[]): string[] {
  return some.flatMap((daemon) => JSON.parse(daemon.workers) as string[])
}

function daemons(tx: Tx) {
  return tables<EffectTables>(tx)
}
