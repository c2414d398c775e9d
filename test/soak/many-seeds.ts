import { expect, test } from 'vitest'
import { newSeeds } from '../chaos/random.ts'

interface Soak<Report> {
  seeds: number
  strikes: number
  play(seed: number, strikes: number): Promise<Report>
  summary(reports: Report[]): string
}

/** One seed after the other; each is printed, so that a failure can be replayed, and all are added up at the end. */
export function manySeeds<Report extends { wrong: string[] }>(name: string, { play, summary, ...defaults }: Soak<Report>): void {
  const count = Number(process.env.SIGNALBOX_SEEDS ?? defaults.seeds)
  const strikes = Number(process.env.SIGNALBOX_KILLS ?? defaults.strikes)
  test(`${name}, many seeds`, { timeout: 180 * 60_000 }, async () => {
    const reports: Report[] = []
    for (const seed of newSeeds(count)) {
      const report = await play(seed, strikes)
      reports.push(report)
      console.info(`SIGNALBOX_SEED=${seed}: ${summary([report])}`)
      expect(report.wrong).toEqual([])
    }
    console.info(`total: ${summary(reports)}`)
  })
}
