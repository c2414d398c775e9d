import { describe, test } from 'vitest'
import { killRuns, runsSummary } from './kill-runs.ts'
import { seeds } from './random.ts'

const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 6)

describe('[F17] SIGKILL of daemon, runner and agent between start and report', () => {
  for (const seed of seeds(10))
    test(`seed ${seed}`, { timeout: 180_000 }, async ({ expect }) => {
      const report = await killRuns(seed, STRIKES)
      console.info(`SIGNALBOX_SEED=${seed}: ${runsSummary([report])}`)
      expect(report.wrong).toEqual([])
    })
})
