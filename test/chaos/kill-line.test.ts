import { describe, expect, test } from 'vitest'
import { killLine, lineSummary } from './kill-line.ts'
import { seeds } from './random.ts'

const SEEDS = Number(process.env.SIGNALBOX_SEEDS ?? 2)
const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 6)

describe('[F24] [F17] a merge line with SIGKILL of daemon and checks, and a user who commits on the branch', () => {
  test.for(seeds(SEEDS))('seed %i', { timeout: 300_000 }, async (seed) => {
    const report = await killLine(seed, { strikes: STRIKES, tasks: 7 })
    console.info(`SIGNALBOX_SEED=${seed}: ${lineSummary([report])}`)
    expect(report.wrong).toEqual([])
  })
})
