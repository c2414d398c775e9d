import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildProgram } from './effects/child.ts'
import { killDaemons, LONGEST_STAND_MS, summary } from './effects/daemons.ts'
import { postgresPlaces } from './effects/databases.ts'
import { seeds } from './random.ts'

let program: Awaited<ReturnType<typeof buildProgram>>
beforeAll(async () => {
  program = await buildProgram()
})
afterAll(() => program.remove())

test('[F26] [X14] three daemons on one database, one killed every few seconds: nothing lost, nothing twice, no queue stuck', {
  timeout: 120_000,
}, async () => {
  const places = await postgresPlaces()
  try {
    const report = await killDaemons(program.path, places, seeds(1)[0] as number, 10)
    console.info(summary(report))
    expect(report.wrong).toEqual([])
    expect(report.longestStandMs).toBeLessThan(LONGEST_STAND_MS)
    expect(report.acked).toBeGreaterThan(50)
    expect(report.kills).toBeGreaterThan(1)
  } finally {
    await places.close()
  }
})
