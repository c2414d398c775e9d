import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Cluster, startCluster } from '../../src/testing/databases.ts'
import { type Ordeal, strikeUnderLoad, summary } from './kill-daemon.ts'
import { daemonKilled, databaseRestarted } from './postgres.ts'
import { seeds } from './random.ts'
import { findings, NOTHING_FOUND } from './verify.ts'

const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 4)

let cluster: Cluster
beforeAll(async () => {
  cluster = await startCluster({ durable: true })
})
afterAll(() => cluster.remove())

async function endure(make: (cluster: Cluster) => Promise<Ordeal>): Promise<void> {
  const [seed] = seeds(1) as [number]
  const report = await strikeUnderLoad(seed, STRIKES, await make(cluster))
  console.info(`SIGNALBOX_SEED=${seed}: ${summary([report])}`)
  expect(findings(report)).toEqual(NOTHING_FOUND)
  expect(report.acknowledged).toBeGreaterThan(16)
}

const timeout = 60_000 + STRIKES * 15_000

test('[F17] SIGKILL of the daemon on PostgreSQL under 16 writers', { timeout }, () => endure(daemonKilled))

test('[F18] [F28] PostgreSQL restarted again and again under 16 writers: nothing lost or doubled, health answers', { timeout }, () =>
  endure(databaseRestarted),
)
