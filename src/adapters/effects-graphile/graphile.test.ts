import { sql } from 'kysely'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { type App, createApp } from '../../daemon/app.ts'
import { effectStore } from '../../db/effect-store.ts'
import { tables } from '../../db/tables.ts'
import { openTestApp } from '../../testing/app.ts'
import { createDatabase, startCluster } from '../../testing/databases.ts'
import {
  type EffectApp,
  effectProbe,
  effectRows,
  enqueue,
  leaveCutOff,
  openEffectApp,
  QUICK,
  states,
  World,
} from '../../testing/effects.ts'
import { testSurroundings } from '../../testing/ports.ts'
import { until } from '../../testing/signals.ts'
import { Attempt } from '../effects-shared/attempt.ts'

const server = inject('postgres')

/** Where two daemons live in this process, one that stands still for a moment must not be given up by the other. */
const PATIENT = { ...QUICK, leaseMs: 30_000, deadAfterMs: 20_000 }

async function open(times = QUICK): Promise<EffectApp> {
  const app = await openEffectApp(new World(), times)
  onTestFinished(() => app.close())
  return app
}

/** Another daemon on the same database, with a world of its own. */
async function beside(
  app: EffectApp,
  world = new World(),
  effectTimes = QUICK,
): Promise<{ app: App; world: World; close(): Promise<void> }> {
  const { rows } = await sql<{ name: string }>`SELECT current_database() AS name`.execute(tables(app.app.engine.view))
  const other = await createApp({
    database: `postgres://signalbox@localhost/${rows[0]?.name}?host=${encodeURIComponent(server)}`,
    ...testSurroundings(app.folder),
    onDefect: () => {},
    ownerSecrets: [app.app.ownerToken],
    capabilities: effectProbe(world),
    effectTimes,
  })
  return { app: other, world, close: () => other.close() }
}

const jobs = async (app: EffectApp) =>
  (
    await sql<{
      key: string | null
      locked_by: string | null
      due: boolean
    }>`SELECT key, locked_by, run_at <= now() AS due FROM graphile_worker.jobs`.execute(tables(app.app.engine.view))
  ).rows
const allDone = (app: EffectApp, n: number) =>
  until(async () => (await effectRows(app)).filter((row) => row.state === 'done').length === n, 20_000)

describe('effects on graphile-worker', () => {
  test('[F26] [X14] two daemons share the work and never do one twice, queues included', async () => {
    const app = await open(PATIENT)
    const other = await beside(app, new World(), PATIENT)
    const names = Array.from({ length: 60 }, (_, i) => `n${i}`)
    await Promise.all(names.map((name, i) => enqueue(app, { name, queue: i % 3 ? `q${i % 5}` : undefined })))
    await allDone(app, 60)
    await other.close()
    expect([...app.world.done, ...other.world.done].sort()).toEqual([...names].sort())
    expect((await effectRows(app)).filter((row) => row.epoch !== 1)).toEqual([])
    // One that came for an effect of the other comes again when that lease would be over, half a minute later, for nothing ([X15]).
    await until(async () => (await jobs(app)).every(({ locked_by, due }) => !locked_by && !due))
  })

  test('[X14] what another daemon gives back on its stop is taken up at once', async () => {
    const app = await open(PATIENT)
    await enqueue(app, { name: 'a', type: 'probe.unknown', holds: true })
    await app.world.began('a')
    const other = await beside(app, new World(), PATIENT)
    await app.reopen()
    other.world.letGo('a')
    app.world.letGo('a')
    await allDone(app, 1)
    expect((await effectRows(app))[0]).toMatchObject({ attempts: 1, epoch: 2, cut_off: 0 })
    await other.close()
  })

  test('[X14] a daemon that fell silent loses its leases, its jobs and its place; one that speaks keeps them', async () => {
    const app = await open()
    const { engine } = app.app
    // It speaks whenever the one that listens does: however long this process stands still, it is never the more silent of the two.
    await engine.write(async (tx) => {
      await sql`CREATE FUNCTION speak() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN UPDATE daemons SET seen_at = seen_at + 1 WHERE id = 'speaking'; RETURN NULL; END $$`.execute(tables(tx))
      await sql`CREATE TRIGGER speaking AFTER INSERT OR UPDATE ON daemons FOR EACH ROW WHEN (NEW.id NOT IN ('speaking', 'silent'))
        EXECUTE FUNCTION speak()`.execute(tables(tx))
      for (const id of ['silent', 'speaking'])
        await sql`INSERT INTO daemons VALUES (${id}, ${JSON.stringify([`pool-of-${id}`])}, 1)`.execute(tables(tx))
    })
    const mine = await leaveCutOff(app, { name: 'a' }, { owner: 'silent' })
    const theirs = await leaveCutOff(app, { name: 'b' }, { owner: 'speaking' })
    for (const [row, pool] of [
      [mine, 'pool-of-silent'],
      [theirs, 'pool-of-speaking'],
    ] as const)
      await engine.write(async (tx) => {
        await sql`SELECT graphile_worker.add_job('signalbox_effect', json_build_object('id', ${row.id}::text), job_key := ${row.id},
          run_at := now() + interval '1 hour')`.execute(tables(tx))
        await sql`UPDATE graphile_worker._private_jobs SET locked_by = ${pool}, locked_at = now() + interval '1 minute' WHERE key = ${row.id}`.execute(
          tables(tx),
        )
      })
    // Locked in its last moment, as it were: whether it is an orphan must not depend on its age.
    // The job of one that is done is gone a moment later.
    await until(async () => (await states(app)).a === 'done' && (await jobs(app)).length === 1)
    expect(await states(app)).toEqual({ a: 'done', b: 'running' })
    expect((await jobs(app)).map((job) => job.locked_by)).toEqual(['pool-of-speaking'])
    const { rows } = await sql<{ id: string }>`SELECT id FROM daemons ORDER BY id`.execute(tables(engine.view))
    expect(rows.map((row) => row.id)).not.toContain('silent')
  })

  test('[X19] what is for another daemon is passed on at once; refused by all it failed, and is offered again to one that comes', async () => {
    const slow = { ...PATIENT, backOffMs: 600_000 }
    const app = await openEffectApp(new World('here'), slow)
    onTestFinished(() => app.close())
    const there = await beside(app, new World('there'), slow)
    const third = await beside(app, new World('third'), slow)
    const names = Array.from({ length: 30 }, (_, i) => `n${i}`)
    await enqueue(app, ...names.map((name, i) => ({ name, only: i % 2 ? 'there' : 'third', queue: i % 3 ? `q${i % 5}` : undefined })))
    await allDone(app, 30)
    expect([there.world.done.length, third.world.done.length]).toEqual([15, 15])
    // Nobody is asked twice.
    expect((await effectRows(app)).filter(({ attempts, epoch }) => attempts !== 1 || epoch > 3)).toEqual([])
    await third.close()
    await enqueue(app, { name: 'later', only: 'third' })
    const waiting = async () => (await effectRows(app)).filter(({ state, run_at }) => state === 'waiting' && run_at > 0)
    await until(async () => (await waiting()).length === 1)
    expect(await waiting()).toMatchObject([{ attempts: 1, error: expect.stringContaining('later is on third.') }])
    const again = await beside(app, new World('third'), slow)
    await allDone(app, 31)
    expect(again.world.done).toEqual(['later'])
    for (const other of [there, again]) await other.close()
  })

  test('[X19] a daemon that comes in the moment of the last refusal is asked, and so is one that was taken for dead and speaks again', async () => {
    const slow = { ...PATIENT, backOffMs: 600_000 }
    const app = await openEffectApp(new World('here'), slow)
    onTestFinished(() => app.close())
    const { engine } = app.app
    const daemons = async () =>
      (await sql<{ id: string }>`SELECT id FROM daemons ORDER BY id`.execute(tables(engine.view))).rows.map(({ id }) => id)
    const [owner = ''] = await daemons()
    const row = await leaveCutOff(app, { name: 'a', only: 'there' }, { owner })
    const waits = async () =>
      (await sql`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`.execute(tables(engine.view))).rows.length > 0
    let there: Awaited<ReturnType<typeof beside>> | undefined
    const comes = () => beside(app, new World('there'), slow).then((other) => (there = other))
    let coming: Promise<unknown> | undefined
    const refusal = new Attempt(
      { engine, owner, host: 'laptop:/one', times: slow, onStuck: async () => {}, onStuckCommitted: () => {} },
      row,
    )
    const refused = async () => ({ state: 'elsewhere', error: 'a is on there.', cutOff: false }) as const
    await refusal.run(refused, async () => {
      coming = comes()
      await until(async () => there !== undefined || (await waits()))
    })
    await coming
    await allDone(app, 1)
    await enqueue(app, { name: 'b', only: 'nowhere' })
    const refusedTimes = (n: number) =>
      until(async () => (await effectRows(app)).some(({ state, run_at, attempts }) => state === 'waiting' && run_at > 0 && attempts === n))
    await refusedTimes(1)
    const other = (await daemons()).filter((id) => id !== owner)
    await engine.write((tx) => sql`DELETE FROM daemons WHERE id = ANY(${other})`.execute(tables(tx)))
    await refusedTimes(2)
    await there?.close()
  })

  test('[X15] effects without a job, as after a copy from another database, get one; also while the daemon runs', async () => {
    const app = await open()
    const bare = (name: string, queue?: string) => {
      const { engine, host } = app.app
      const effect = { id: host.id('effect'), type: 'probe.known', payload: { name }, queue, callId: host.id('call'), attempts: 3 }
      return engine.write((tx) => effectStore(tx, engine.facts).insert([effect]))
    }
    await leaveCutOff(app, { name: 'cut', queue: 'q' })
    await bare('a', 'q')
    await bare('b', 'q')
    await bare('c')
    await app.reopen()
    await allDone(app, 4)
    expect(app.world.done.filter((name) => name !== 'c')).toEqual(['cut', 'a', 'b'])
    await bare('d')
    await allDone(app, 5)
  })

  test('[X15] a job that came for nothing, or twice, does nothing', async () => {
    const app = await open({ ...QUICK, leaseMs: 5_000 })
    await enqueue(app, { name: 'a', holds: true })
    await app.world.began('a')
    const [row] = await effectRows(app)
    const again = () =>
      app.app.engine.write((tx) =>
        sql`SELECT graphile_worker.add_job('signalbox_effect', json_build_object('id', ${row?.id}::text))`.execute(tables(tx)),
      )
    for (let i = 0; i < 5; i++) await again()
    await until(async () => (await jobs(app)).every((job) => job.key === row?.id || job.locked_by))
    app.world.letGo('a')
    await allDone(app, 1)
    await again()
    await until(async () => (await jobs(app)).length === 0)
    expect(app.world.log).toEqual(['+a', '-a'])
  })

  test('[X16] two daemons whose clocks are an hour apart and jump: leases are in the time of the database', async () => {
    // Long enough that a machine which stands still for a moment loses nothing by that.
    const times = { ...PATIENT, leaseMs: 5_000 }
    const app = await open(times)
    await enqueue(app, { name: 'a', holds: true })
    await app.world.began('a')
    const other = await beside(app, new World(), times)
    const real = Date.now
    onTestFinished(() => {
      Date.now = real
    })
    for (const hours of [1, -1, 0]) {
      Date.now = () => real() + hours * 3_600_000
      const [before] = await effectRows(app)
      // Renewed twice: the first time may have begun under the clock before.
      const renewed = async (after: number) => {
        await until(async () => ((await effectRows(app))[0]?.lease_until as number) > after)
        return (await effectRows(app))[0]?.lease_until as number
      }
      await renewed(await renewed(before?.lease_until as number))
      const { rows } = await sql<{
        left: number
      }>`SELECT lease_until - ${app.app.engine.facts.nowMs()} AS left FROM effects`.execute(tables(app.app.engine.view))
      expect(rows[0]?.left).toBeGreaterThan(0)
      expect(rows[0]?.left).toBeLessThanOrEqual(times.leaseMs)
      expect((await effectRows(app))[0]).toMatchObject({ state: 'running', epoch: 1 })
    }
    app.world.letGo('a')
    await allDone(app, 1)
    expect([...app.world.done, ...other.world.done]).toEqual(['a'])
    await other.close()
  })
})

test('[X14] PostgreSQL goes away in the middle and comes back: what runs is written down, what waits is done, once', {
  timeout: 180_000,
}, async () => {
  const cluster = await startCluster({ durable: true })
  onTestFinished(() => cluster.remove())
  const world = new World()
  const app = await openTestApp({
    database: await createDatabase(cluster.folder, 'away'),
    capabilities: effectProbe(world),
    // A lease that outlasts the outage: the daemon keeps what it has.
    effectTimes: { ...QUICK, leaseMs: 120_000 },
  })
  onTestFinished(() => app.close())
  await enqueue(app, { name: 'a', queue: 'q', holds: true }, { name: 'b', queue: 'q' }, { name: 'c', delay_ms: 3_000 })
  await world.began('a')
  await cluster.stop('immediate')
  world.letGo('a')
  await until(() => world.log.includes('-a'))
  await cluster.start()
  await until(async () => Object.values(await states(app).catch(() => ({}))).join() === 'done,done,done', 30_000)
  expect(world.log).toHaveLength(6)
  expect(world.asked).toEqual([])
})
