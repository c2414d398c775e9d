import { expect, test } from 'vitest'
import { type KillReport, killUnderLoad, summary } from '../chaos/kill-daemon.ts'
import { newSeeds } from '../chaos/random.ts'
import { findings, NOTHING_FOUND } from '../chaos/verify.ts'

const SEEDS = Number(process.env.SIGNALBOX_SEEDS ?? 40)
const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 15)

test('[F17] SIGKILL of the daemon under 16 writers, many seeds', { timeout: 60 * 60_000 }, async () => {
  const reports: KillReport[] = []
  for (const seed of newSeeds(SEEDS)) {
    const report = await killUnderLoad(seed, STRIKES)
    reports.push(report)
    console.info(`SIGNALBOX_SEED=${seed}: ${summary([report])}`)
    expect(findings(report)).toEqual(NOTHING_FOUND)
  }
  console.info(`total: ${summary(reports)}`)
})
