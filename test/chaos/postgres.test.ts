import { expect, test } from 'vitest'
import { daemonKilled, databaseRestarted, onDurableServer } from './postgres.ts'
import { fixedSeeds } from './random.ts'

const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 3)
const timeout = 120_000 + STRIKES * 30_000

const [seed = 0] = fixedSeeds(1)
const endure = onDurableServer(STRIKES)

test('[F17] SIGKILL of the daemon on PostgreSQL under 16 writers', { timeout }, async () => {
  expect((await endure(seed, daemonKilled)).acknowledged).toBeGreaterThan(16)
})

test('[F18] [F28] PostgreSQL restarted again and again under 16 writers: nothing lost or doubled, health answers', {
  timeout,
}, async () => {
  expect((await endure(seed, databaseRestarted)).acknowledged).toBeGreaterThan(16)
})
