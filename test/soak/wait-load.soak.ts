import { expect, test } from 'vitest'
import { newSeeds } from '../chaos/random.ts'
import { describeLoad, type LoadPlan, type LoadReport, waitUnderLoad } from '../chaos/wait-load.ts'

const [seed = 0] = newSeeds(1)
const SECONDS = Number(process.env.SIGNALBOX_SECONDS ?? 60)
/** `undefined` is held by the daemon for as long as it holds anything. */
const timeouts = [5, 15, 30, undefined]
const plan: LoadPlan = {
  seed,
  warmUpSeconds: 15,
  seconds: SECONDS,
  waiters: 500,
  overMcp: 48,
  writers: 64,
  readers: 0,
  timeouts,
  thinkMs: 2_000,
  graceMs: 5_000,
}

async function run(what: string, changes: Partial<LoadPlan> = {}): Promise<LoadReport> {
  const report = await waitUnderLoad({ ...plan, ...changes })
  console.info(`${what}, ${describeLoad(report)}`)
  expect(report.wrong.slice(0, 10)).toEqual([])
  expect(report.after.heapMb).toBeLessThan(report.warm.heapMb + 8)
  expect(report.after.rssMb).toBeLessThan(report.warm.rssMb + 100)
  expect(report.after.files).toBeLessThanOrEqual(report.warm.files)
  return report
}

test('[F25] 500 waiters and 64 writers for a minute', async () => {
  const report = await run('500 waiters, 64 writers')
  expect(report.inLockstep.p99).toBeLessThan(1_000)
  expect(report.health.max).toBeLessThan(1_000)
})

test('[F25] 200 streams under the same load bring every event once', async () => {
  await run('500 waiters, 64 writers, 200 streams', { readers: 200 })
})

// Over MCP new connections are opened now and then, and those are taken in slowly by a daemon that is never idle.
test('[F25] as fast as the writers can: late, but nothing is missed', async () => {
  await run('500 waiters, 64 writers without a pause', { thinkMs: 0, overMcp: 0, graceMs: 15_000 })
})
