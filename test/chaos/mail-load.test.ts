import { expect, test } from 'vitest'
import { mailUnderLoad } from './mail-load.ts'
import { fixedSeeds } from './random.ts'

// The soak has thirty agents for a minute.
for (const seed of fixedSeeds(1))
  test(`[M20] six agents mail each other while the daemon is killed twice, seed ${seed}`, { timeout: 180_000 }, async () => {
    const report = await mailUnderLoad({ seed, agents: 6, forMs: 4_000, kills: 2, thinkMs: 60 })
    console.info(`SIGNALBOX_SEED=${seed}: ${JSON.stringify(report)}`)
    expect(report.wrong).toEqual([])
    expect(report.letters).toBeGreaterThan(6)
  })
