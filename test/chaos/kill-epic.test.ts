import { describe, expect, test } from 'vitest'
import { epicSummary, killEpic } from './kill-epic.ts'
import { fixedSeeds } from './random.ts'

const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 8)

describe('[EP15] an epic of twelve tasks and four workers, with SIGKILL of daemon, runners and agents', () => {
  test.for(
    fixedSeeds(1, {
      1: 'an answer cut off by a killed daemon was waited for; a worktree killed while git made it was taken for somebody’s',
    }),
  )('seed %i', { timeout: 420_000 }, async (seed) => {
    const report = await killEpic(seed, { strikes: STRIKES, tasks: 12, workers: 4 })
    console.info(`SIGNALBOX_SEED=${seed}: ${epicSummary([report])}`)
    expect(report.wrong).toEqual([])
  })
})
