import { describe, test } from 'vitest'
import { killReview, reviewSummary } from './kill-review.ts'
import { fixedSeeds } from './random.ts'

const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 4)
/** The soak has more of all. */
const TASKS = 2

describe('[F17] [F24] SIGKILL of daemon, runner and agent between start, review, feedback and merge', () => {
  const all = fixedSeeds(1)
  // Two at a time: most of a seed is waiting for what was killed to come back.
  for (let i = 0; i < all.length; i += 2)
    describe(`seeds ${i + 1} and ${i + 2}`, () => {
      for (const seed of all.slice(i, i + 2))
        test.concurrent(`seed ${seed}`, { timeout: 300_000 }, async ({ expect }) => {
          const report = await killReview(seed, { strikes: STRIKES, tasks: TASKS })
          console.info(`SIGNALBOX_SEED=${seed}: ${reviewSummary([report])}`)
          expect(report.wrong).toEqual([])
        })
    })
})
