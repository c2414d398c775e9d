import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildProgram } from './effects/child.ts'
import { placesHere } from './effects/databases.ts'
import { countStatements, eachOf, killAtStatement, summary } from './effects/kill.ts'
import { fixedSeeds } from './random.ts'

/** The soak has a thousand. */
const SEEDS = fixedSeeds(6)
let program: Awaited<ReturnType<typeof buildProgram>>
beforeAll(async () => {
  program = await buildProgram()
})
afterAll(() => program.remove())

describe('[F17] SIGKILL at any statement of enqueue, claim, do and complete', () => {
  test('[F17] what was acknowledged is done, nothing twice that can be recognised, the rest is shown', { timeout: 180_000 }, async () => {
    const { engine, open } = placesHere()
    const places = await open()
    try {
      const statements = await countStatements(program.path, places)
      const fates = await eachOf(SEEDS, 3, (seed) => killAtStatement(program.path, places, statements, seed))
      console.info(`effects on ${engine}, ${statements} statements: ${summary(fates)}`)
      const wrong = fates.filter((fate) => fate.wrong.length)
      expect(
        wrong,
        `replay: SIGNALBOX_SEED=<seed> npx vitest run --project ${engine === 'sqlite' ? 'whole' : engine} test/chaos/effects-killed.test.ts`,
      ).toEqual([])
    } finally {
      await places.close()
    }
  })
})
