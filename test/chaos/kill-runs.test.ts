import { describe, test } from 'vitest'
import { killRuns, runsSummary } from './kill-runs.ts'
import { fixedSeeds } from './random.ts'

const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 4)
/** The soak has more of all. */
const AGENTS = 2

describe('[F17] SIGKILL of daemon, runner and agent between start and report', () => {
  const all = fixedSeeds(1)
  // Two at a time: most of a seed is waiting for what was killed to come back.
  for (let i = 0; i < all.length; i += 2)
    describe(`seeds ${i + 1} and ${i + 2}`, () => {
      for (const seed of all.slice(i, i + 2))
        test.concurrent(`seed ${seed}`, { timeout: 300_000 }, async ({ expect }) => {
          const report = await killRuns(seed, STRIKES, AGENTS)
          console.info(`SIGNALBOX_SEED=${seed}: ${runsSummary([report])}`)
          expect(report.wrong).toEqual([])
        })
    })
})
