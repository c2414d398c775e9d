import { setTimeout as sleep } from 'node:timers/promises'
import { Logger, type Runner, run, runMigrations } from 'graphile-worker'
import pg from 'pg'
import { connectionsOf } from '../../db/address.ts'
import { type EffectRow, effectStore } from '../../db/effect-store.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { Effects, EffectsParts, Work } from '../../ports/effects.ts'
import { Attempt, holdQueue } from '../effects-shared/attempt.ts'
import { Heartbeat } from './heartbeat.ts'
import { addJobs, TASK } from './jobs.ts'

const AT_ONCE = 8
const RESTART_MS = 1_000
/** Claimed in the moment in which the daemon began to stop: it was not begun, so it is not cut off either. */
const notNow: Work = async ({ cutOff }) => ({ state: 'stopped', error: 'The daemon stops.', cutOff })
/** Without a batch, graphile-worker does not wait for the end of a job: one that fails while the database is away ends the process. */
const WATCHED_ENDS = { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } }
const silent = new Logger(() => () => {})

/**
 * On PostgreSQL graphile-worker decides when and where an effect is tried: its job is added inside our transaction and
 * only names the row. The row stays the truth, so a job that comes twice, early or out of turn finds nothing to claim.
 */
export async function createGraphileEffects(parts: EffectsParts, url: string): Promise<Effects> {
  const { engine, owner, times } = parts
  const store = (tx: Tx) => effectStore(tx, engine.facts)
  const pool = new pg.Pool({ connectionString: url, max: connectionsOf(url).effects, application_name: 'signalbox-effects' })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  await runMigrations({ pgPool: pool, logger: silent })
  const heartbeat = new Heartbeat(parts)
  const attempts = new Set<Attempt>()
  let work: Work | undefined
  let runner: Runner | undefined
  let running: Promise<void> | undefined

  async function perform(id: string): Promise<void> {
    const row = stopping() ? undefined : await engine.write((tx) => claim(tx, id))
    if (!row) return stopping() ? giveBack(id) : undefined
    const attempt = new Attempt(parts, row)
    attempts.add(attempt)
    await attempt.run(work ?? notNow, handOn).finally(() => attempts.delete(attempt))
  }

  /** A job that came too early, or while the lease of an owner that may be dead still runs, must come again. */
  async function claim(tx: Tx, id: string): Promise<EffectRow | undefined> {
    const before = await store(tx).find(id)
    await holdQueue(parts, tx, before?.queue ?? null)
    const row = await store(tx).claim(id, owner, times.leaseMs)
    if (!row && !(await store(tx).isHeld(id))) await addJobs(tx, [id])
    return row
  }

  /** Either it has to be tried again, or it is the turn of the next in its line, whose own job may have come too early. */
  async function handOn(tx: Tx, ended: EffectRow): Promise<void> {
    const next = ended.state === 'waiting' ? ended.id : ended.queue === null ? undefined : await store(tx).nextOf(ended.queue)
    if (next) await addJobs(tx, [next])
  }

  /** Taken from the shelf when this daemon was already stopping: another one shall not have to wait for it. */
  async function giveBack(id: string): Promise<void> {
    await engine.write((tx) => addJobs(tx, [id]))
  }

  /** Until it is stopped: when the database goes away the runner ends, and is begun anew until it is back. */
  async function keepRunning(): Promise<void> {
    while (work !== undefined) {
      try {
        runner = await run({
          pgPool: pool,
          concurrency: AT_ONCE,
          noHandleSignals: true,
          pollInterval: times.lookMs,
          logger: silent,
          events: heartbeat.events,
          forbiddenFlags: [owner],
          preset: WATCHED_ENDS,
          taskList: { [TASK]: (payload) => perform((payload as { id: string }).id) },
        })
        await (stopping() ? runner.stop() : runner.promise)
      } catch {}
      if (!stopping()) await sleep(RESTART_MS)
    }
  }

  /** A function, because it may have become true during any await. */
  function stopping(): boolean {
    return work === undefined
  }

  return {
    async enqueue(tx, effects) {
      await store(tx).insert(effects)
      await addJobs(
        tx,
        effects.map(({ id }) => id),
      )
    },
    async decide(tx, id, decision) {
      const decided = await store(tx).decide(id, decision)
      if (decided) await addJobs(tx, [id])
      return decided
    },
    wake() {},
    async start(doWork) {
      await heartbeat.start()
      work = doWork
      running = keepRunning()
    },
    async stop(deadlineMs) {
      work = undefined
      const stopped = runner?.stop().catch(() => {})
      const stillActing = await Attempt.drain([...attempts], deadlineMs, times.graceMs)
      await stopped
      await running
      await heartbeat.stop(stillActing.length > 0)
      await pool.end()
    },
  }
}
