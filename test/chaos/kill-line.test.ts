import { describe, expect, test } from 'vitest'
import { killLine, lineSummary } from './kill-line.ts'
import { fixedSeeds } from './random.ts'

const SEEDS = fixedSeeds(2, {
  425055841: 'somebody committed after the last landing, while the branch was behind: the sync did not join them',
  785907526: 'somebody committed after the last landing, when the branch was even: the sync left the line behind',
})
const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 6)

describe('[F24] [F17] a merge line with SIGKILL of daemon and checks, and a user who commits on the branch', () => {
  test.for(SEEDS)('seed %i', { timeout: 300_000 }, async (seed) => {
    const report = await killLine(seed, { strikes: STRIKES, tasks: 7 })
    console.info(`SIGNALBOX_SEED=${seed}: ${lineSummary([report])}`)
    expect(report.wrong).toEqual([])
  })
})
