import { test } from 'vitest'
import { daemonKilled, databaseRestarted, onDurableServer } from '../chaos/postgres.ts'
import { newSeeds } from '../chaos/random.ts'

const [seed = 0] = newSeeds(1)
const endure = onDurableServer(Number(process.env.SIGNALBOX_KILLS ?? 24))

test('[F17] SIGKILL of the daemon on PostgreSQL', async () => void (await endure(seed, daemonKilled)))
test('[F18] [F28] PostgreSQL restarted every few seconds', async () => void (await endure(seed, databaseRestarted)))
