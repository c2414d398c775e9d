import { expect, test } from 'vitest'
import { fixedSeeds } from './random.ts'
import { describeLoad, waitUnderLoad } from './wait-load.ts'

test('[F25] 500 waiters, 200 streams and 64 writers: nothing is missed, nothing hangs, nothing stays behind', {
  timeout: 300_000,
}, async () => {
  const [seed = 0] = fixedSeeds(1)
  const report = await waitUnderLoad({
    seed,
    warmUpSeconds: 1,
    seconds: 3,
    waiters: 500,
    overMcp: 16,
    writers: 64,
    readers: 200,
    timeouts: [2, 4, 8],
    thinkMs: 1_000,
    graceMs: 60_000,
  })
  console.info(describeLoad(report))
  expect(report.wrong.slice(0, 10)).toEqual([])
  expect(report.inLockstep.count).toBeGreaterThan(100)
  expect(report.after.heapMb).toBeLessThan(report.warm.heapMb + 8)
})
