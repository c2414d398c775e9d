import { Logger, type Runner, run, runMigrations } from 'graphile-worker'
import { sql } from 'kysely'
import pg from 'pg'
import { effectStore } from '../../db/effect-store.ts'
import type { Engine } from '../../db/engine.ts'
import { tables } from '../../db/tables.ts'
import type { Claim, Outcome } from '../../kernel/effect.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { Effects } from '../../ports/effects.ts'
import { Attempt, LEASE_MS } from '../effects-table/attempt.ts'
import { Heartbeat } from './heartbeat.ts'

const TASK = 'signalbox_effect'
const AT_ONCE = 8
const RESTART_MS = 1_000
const silent = new Logger(() => () => {})

/**
 * On PostgreSQL graphile-worker decides when and where an effect is tried: its job is added inside our transaction and
 * only names the row. The row stays the truth, so a job that is delivered twice finds nothing left to claim.
 */
export async function createGraphileEffects(engine: Engine, url: string, owner: string): Promise<Effects> {
  await runMigrations({ connectionString: url, logger: silent })
  const store = (tx: Tx = engine.view) => effectStore(tx, engine.facts)
  const pool = new pg.Pool({ connectionString: url, max: AT_ONCE + 2, application_name: 'signalbox-effects' })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const heartbeat = new Heartbeat(engine, owner)
  const attempts = new Set<Attempt>()
  let work: ((claim: Claim) => Promise<Outcome>) | undefined
  let runner: Runner | undefined
  let running: Promise<void> | undefined

  async function perform(id: string): Promise<void> {
    if (!work) throw new Error('this daemon is stopping')
    const claimed = await engine.write((tx) => store(tx).claim(id, owner, LEASE_MS))
    if (!claimed) return lookAgainLater(id)
    const attempt = new Attempt(engine, claimed.row, claimed.cutOff)
    attempts.add(attempt)
    try {
      await attempt.run(work, async (tx, state) => {
        const row = state === 'waiting' ? await store(tx).find(id) : undefined
        if (row) await addJob(tx, id, row.queue, row.run_at)
      })
    } finally {
      attempts.delete(attempt)
    }
  }

  /** The lease of an owner that may be dead still runs: the effect must not be forgotten because its job came early. */
  async function lookAgainLater(id: string): Promise<void> {
    await engine.write(async (tx) => {
      const row = await store(tx).find(id)
      if (row?.state === 'running') await addJob(tx, id, row.queue, row.lease_until + 1)
    })
  }

  /** Until it is stopped: when the database goes away the runner ends, and is begun anew until it is back. */
  async function keepRunning(): Promise<void> {
    while (work !== undefined) {
      try {
        runner = await run({
          pgPool: pool,
          concurrency: AT_ONCE,
          noHandleSignals: true,
          pollInterval: 1_000,
          logger: silent,
          events: heartbeat.events,
          taskList: { [TASK]: (payload) => perform((payload as { id: string }).id) },
        })
        await (stopping() ? runner.stop() : runner.promise)
      } catch {
        await new Promise((resolve) => setTimeout(resolve, RESTART_MS))
      }
    }
  }

  /** Stopped while the runner was still being made. */
  function stopping(): boolean {
    return work === undefined
  }

  return {
    async enqueue(tx, effects) {
      await store(tx).insert(effects)
      for (const { id, queue, delayMs } of effects) await addJob(tx, id, queue ?? null, undefined, delayMs)
    },
    async decide(tx, id, decision) {
      if (!(await store(tx).decide(id, decision))) return false
      const row = decision === 'retry' ? await store(tx).find(id) : undefined
      if (row) await addJob(tx, id, row.queue)
      return true
    },
    wake() {},
    async start(doWork) {
      work = doWork
      await heartbeat.start()
      running = keepRunning()
    },
    async stop(deadlineMs) {
      work = undefined
      await Attempt.drain([...attempts], deadlineMs)
      await runner?.stop().catch(() => {})
      await running
      await heartbeat.stop()
      await pool.end()
    },
  }
}

async function addJob(tx: Tx, id: string, queue: string | null, atMs?: number, delayMs = 0): Promise<void> {
  const at =
    atMs === undefined
      ? sql`clock_timestamp() + ${delayMs}::bigint * interval '1 millisecond'`
      : sql`to_timestamp(${atMs}::bigint / 1000.0)`
  await sql`SELECT graphile_worker.add_job(${TASK}, json_build_object('id', ${id}::text), queue_name := ${queue}::text, run_at := ${at})`.execute(
    tables(tx),
  )
}
