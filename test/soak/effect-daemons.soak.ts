import { test } from 'vitest'
import { endureKills } from '../chaos/effects/daemons.ts'
import { newSeeds } from '../chaos/random.ts'

test('[F26] [X14] three daemons on one database, one killed every few seconds for two minutes', { timeout: 15 * 60_000 }, async () => {
  const [seed = 0] = newSeeds(1)
  await endureKills(seed, 120)
})
