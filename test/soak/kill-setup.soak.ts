import { afterAll, beforeAll } from 'vitest'
import { type Cluster, createDatabase, startCluster } from '../../src/testing/databases.ts'
import { killSetup, setupSummary } from '../chaos/kill-setup.ts'
import { manySeeds } from './many-seeds.ts'

const DAEMONS = 2
let cluster: Cluster
let databases = 0

beforeAll(async () => {
  cluster = await startCluster({ durable: true })
})
afterAll(() => cluster.remove())

manySeeds('[SU4] [SU9] SIGKILL of daemon, setup and copy, on SQLite', {
  seeds: 50,
  strikes: 6,
  play: (seed, strikes) => killSetup(seed, { strikes }),
  summary: setupSummary,
})

manySeeds('[SU4] [SU9] SIGKILL of daemon, setup and copy, two daemons on PostgreSQL', {
  seeds: 50,
  strikes: 6,
  play: async (seed, strikes) => {
    const env = { SIGNALBOX_DATABASE_URL: await createDatabase(cluster.folder, `setup_${++databases}`) }
    return killSetup(seed, { strikes, daemons: Array.from({ length: DAEMONS }, () => ({ env })) })
  },
  summary: setupSummary,
})
