import { expect, test } from 'vitest'
import { buildProgram } from '../chaos/effects/child.ts'
import { killDaemons, LONGEST_STAND_MS, summary } from '../chaos/effects/daemons.ts'
import { postgresPlaces } from '../chaos/effects/databases.ts'
import { seeds } from '../chaos/random.ts'

test('[F26] [X14] three daemons on one database, one killed every few seconds for two minutes', { timeout: 15 * 60_000 }, async () => {
  const program = await buildProgram()
  const places = await postgresPlaces()
  try {
    const report = await killDaemons(program.path, places, seeds(1)[0] as number, 120)
    console.info(summary(report))
    expect(report.wrong).toEqual([])
    expect(report.longestStandMs).toBeLessThan(LONGEST_STAND_MS)
  } finally {
    await places.close()
    program.remove()
  }
})
