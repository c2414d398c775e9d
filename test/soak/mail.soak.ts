import { expect, test } from 'vitest'
import { mailUnderLoad } from '../chaos/mail-load.ts'
import { newSeeds } from '../chaos/random.ts'

const MINUTE_MS = Number(process.env.SIGNALBOX_MAIL_MS ?? 60_000)

for (const [what, kills] of [
  ['for a minute', 0],
  ['while the daemon is killed again and again', 12],
] as const)
  for (const seed of newSeeds(1))
    test(`[M20] thirty agents mail each other ${what}: nothing is lost, seed ${seed}`, { timeout: 10 * 60_000 }, async () => {
      const report = await mailUnderLoad({ seed, agents: 30, forMs: MINUTE_MS, kills })
      console.info(`SIGNALBOX_SEED=${seed}: ${JSON.stringify(report)}`)
      expect(report.wrong).toEqual([])
      expect(report.letters).toBeGreaterThan(1_000)
    })
