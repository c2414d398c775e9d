import { test } from 'vitest'
import { endureKills } from '../chaos/effects/daemons.ts'

test('[F26] [X14] three daemons on one database, one killed every few seconds for two minutes', { timeout: 15 * 60_000 }, async () => {
  await endureKills(120)
})
