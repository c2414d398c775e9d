import { expect, test } from 'vitest'
import { killLine, type LineReport, lineSummary } from '../chaos/kill-line.ts'
import { seeds } from '../chaos/random.ts'

const SEEDS = Number(process.env.SIGNALBOX_SEEDS ?? 200)
const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 8)

test('[F24] a merge line with SIGKILL of daemon and checks, many seeds', { timeout: 180 * 60_000 }, async () => {
  const reports: LineReport[] = []
  for (const seed of seeds(SEEDS)) {
    const report = await killLine(seed, { strikes: STRIKES, tasks: 9 })
    reports.push(report)
    console.info(`SIGNALBOX_SEED=${seed}: ${lineSummary([report])}`)
    expect(report.wrong).toEqual([])
  }
  console.info(`total: ${lineSummary(reports)}`)
})
