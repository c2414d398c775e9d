import { expect, test } from 'vitest'
import { killRuns, type RunsReport, runsSummary } from '../chaos/kill-runs.ts'
import { seeds } from '../chaos/random.ts'

const SEEDS = Number(process.env.SIGNALBOX_SEEDS ?? 200)
const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 6)
const AGENTS = 4

test('[F17] SIGKILL of daemon, runner and agent between start and report, many seeds', { timeout: 120 * 60_000 }, async () => {
  const reports: RunsReport[] = []
  for (const seed of seeds(SEEDS)) {
    const report = await killRuns(seed, STRIKES, AGENTS)
    reports.push(report)
    console.info(`SIGNALBOX_SEED=${seed}: ${runsSummary([report])}`)
    expect(report.wrong).toEqual([])
  }
  console.info(`total: ${runsSummary(reports)}`)
})
