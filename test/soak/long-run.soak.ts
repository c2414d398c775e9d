import { expect, test } from 'vitest'
import { describeLongRun, longRun } from '../chaos/long-run.ts'
import { newSeeds } from '../chaos/random.ts'
import { findings, NOTHING_FOUND } from '../chaos/verify.ts'

const MINUTES = Number(process.env.SIGNALBOX_MINUTES ?? 10)

test('ten minutes of ordinary life, with restarts, backups, settings and revocations', { timeout: (MINUTES + 10) * 60_000 }, async () => {
  const [seed = 0] = newSeeds(1)
  const report = await longRun(seed, MINUTES)
  console.info(describeLongRun(report))
  expect(findings(report)).toEqual(NOTHING_FOUND)
  expect(report.backups).toBeGreaterThan(0)
  expect(report.after.heapMb).toBeLessThan(report.warm.heapMb + 8)
  expect(report.after.rssMb).toBeLessThan(report.warm.rssMb + 100)
})
