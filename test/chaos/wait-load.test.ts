import { expect, test } from 'vitest'
import { fixedSeeds } from './random.ts'
import { describeLoad, waitUnderLoad } from './wait-load.ts'

/** The soak has 500 waiters, 200 streams and 64 writers. */
test('[F25] 150 waiters, 60 streams and 24 writers: nothing is missed, nothing hangs, nothing stays behind', {
  timeout: 300_000,
}, async () => {
  const [seed = 0] = fixedSeeds(1)
  const report = await waitUnderLoad({
    seed,
    warmUpSeconds: 1,
    seconds: 3,
    waiters: 150,
    overMcp: 8,
    writers: 24,
    readers: 60,
    timeouts: [2, 4, 8],
    thinkMs: 1_000,
    graceMs: 60_000,
  })
  console.info(describeLoad(report))
  expect(report.wrong.slice(0, 10)).toEqual([])
  expect(report.inLockstep.count).toBeGreaterThan(40)
  expect(report.after.heapMb).toBeLessThan(report.warm.heapMb + 8)
})
