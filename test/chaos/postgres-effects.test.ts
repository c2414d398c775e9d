import { expect, test } from 'vitest'
import { endureKills } from './effects/daemons.ts'
import { fixedSeeds } from './random.ts'

test('[F26] [X14] three daemons on one database, one killed every few seconds: nothing lost, nothing twice, no queue stuck', {
  timeout: 120_000,
}, async () => {
  const [seed = 0] = fixedSeeds(1)
  const report = await endureKills(seed, 7)
  expect(report.acked).toBeGreaterThan(50)
  expect(report.kills).toBeGreaterThan(1)
})
