import { expect, test } from 'vitest'
import { type EpicReport, epicSummary, killEpic } from '../chaos/kill-epic.ts'
import { seeds } from '../chaos/random.ts'

const SEEDS = Number(process.env.SIGNALBOX_SEEDS ?? 20)
const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 20)

test('[EP15] an epic of twelve tasks and four workers, killed over and over, many seeds', { timeout: 180 * 60_000 }, async () => {
  const reports: EpicReport[] = []
  for (const seed of seeds(SEEDS)) {
    const report = await killEpic(seed, { strikes: STRIKES, tasks: 12, workers: 4 })
    reports.push(report)
    console.info(`SIGNALBOX_SEED=${seed}: ${epicSummary([report])}`)
    expect(report.wrong).toEqual([])
  }
  console.info(`total: ${epicSummary(reports)}`)
})
