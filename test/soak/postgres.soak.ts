import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Cluster, startCluster } from '../../src/testing/databases.ts'
import { type Ordeal, strikeUnderLoad, summary } from '../chaos/kill-daemon.ts'
import { daemonKilled, databaseRestarted } from '../chaos/postgres.ts'
import { seeds } from '../chaos/random.ts'
import { findings, NOTHING_FOUND } from '../chaos/verify.ts'

const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 24)

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
}

test('[F17] SIGKILL of the daemon on PostgreSQL', () => endure(daemonKilled))
test('[F18] [F28] PostgreSQL restarted every few seconds', () => endure(databaseRestarted))
