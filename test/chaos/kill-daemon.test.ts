import { describe, test } from 'vitest'
import { killUnderLoad, summary } from './kill-daemon.ts'
import { fixedSeeds } from './random.ts'
import { findings, NOTHING_FOUND } from './verify.ts'

const STRIKES = Number(process.env.SIGNALBOX_KILLS ?? 5)

describe('[F17] SIGKILL of the daemon under 16 writers', () => {
  // The soak has forty, of fifteen strikes each.
  for (const seed of fixedSeeds(1))
    test(`seed ${seed}`, { timeout: 120_000 + STRIKES * 20_000 }, async ({ expect }) => {
      const report = await killUnderLoad(seed, STRIKES)
      console.info(`SIGNALBOX_SEED=${seed}: ${summary([report])}`)
      expect(findings(report)).toEqual(NOTHING_FOUND)
      expect(report.acknowledged).toBeGreaterThan(16)
    })
})
