import { EventEmitter } from 'node:events'
import { sql } from 'kysely'
import { effectStore } from '../../db/effect-store.ts'
import type { Engine } from '../../db/engine.ts'
import { tables } from '../../db/tables.ts'

const BEAT_MS = 3_000
const DEAD_AFTER_MS = 12_000

interface Tables {
  daemons: { id: string; workers: string; seen_at: number }
}

/**
 * graphile-worker keeps a dead worker's locks for four hours. Daemons therefore write down that they live and which workers
 * are theirs; whoever finds another silent frees its jobs, queues and leases.
 */
export class Heartbeat {
  /** Where the workers of this daemon make themselves known. */
  readonly events = new EventEmitter()
  readonly #engine: Engine
  readonly #owner: string
  readonly #workers = new Set<string>()
  #timer: NodeJS.Timeout | undefined

  constructor(engine: Engine, owner: string) {
    this.#engine = engine
    this.#owner = owner
    this.events.on('worker:create', ({ worker }: { worker: { workerId: string } }) => {
      this.#workers.add(worker.workerId)
      void this.#beat()
    })
  }

  async start(): Promise<void> {
    await this.#beat()
    this.#timer = setInterval(() => void this.#beat(), BEAT_MS)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#engine.write((tx) => tables<Tables>(tx).deleteFrom('daemons').where('id', '=', this.#owner).execute()).catch(() => {})
  }

  async #beat(): Promise<void> {
    try {
      await this.#sayAlive()
      await this.#freeTheDead()
    } catch {
      // The database is away; so is everybody else's heartbeat.
    }
  }

  async #sayAlive(): Promise<void> {
    const seen_at = sql<number>`${sql.raw(this.#engine.facts.nowMs)}`
    const workers = JSON.stringify([...this.#workers])
    await this.#engine.write((tx) =>
      tables<Tables>(tx)
        .insertInto('daemons')
        .values({ id: this.#owner, workers, seen_at })
        .onConflict((oc) => oc.column('id').doUpdateSet({ workers, seen_at }))
        .execute(),
    )
  }

  async #freeTheDead(): Promise<void> {
    const dead = await sql<{
      id: string
    }>`SELECT id FROM daemons WHERE seen_at < ${sql.raw(this.#engine.facts.nowMs)} - ${DEAD_AFTER_MS}`.execute(tables(this.#engine.view))
    for (const { id } of dead.rows) await this.#free(id)
  }

  /** The row is deleted first: of several daemons that notice, one does the rest. */
  async #free(id: string): Promise<void> {
    await this.#engine.write(async (tx) => {
      const row = await tables<Tables>(tx).deleteFrom('daemons').where('id', '=', id).returning('workers').executeTakeFirst()
      if (!row) return
      await effectStore(tx, this.#engine.facts).expire(id)
      await sql`SELECT graphile_worker.force_unlock_workers(${JSON.parse(row.workers) as string[]}::text[])`.execute(tables(tx))
    })
  }
}
