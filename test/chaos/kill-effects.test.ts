import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildProgram } from './effects/child.ts'
import { postgresPlaces, sqlitePlaces } from './effects/databases.ts'
import { countStatements, eachOf, killAtStatement, summary } from './effects/kill.ts'
import { seeds } from './random.ts'

const SEEDS = 20
let program: Awaited<ReturnType<typeof buildProgram>>
beforeAll(async () => {
  program = await buildProgram()
})
afterAll(() => program.remove())

describe('[F17] SIGKILL at any statement of enqueue, claim, do and complete', () => {
  test.each([
    ['sqlite', sqlitePlaces],
    ['postgres', postgresPlaces],
  ])(
    '[F17] on %s: what was acknowledged is done, nothing twice that can be recognised, the rest is shown',
    { timeout: 180_000 },
    async (engine, open) => {
      const places = await open()
      try {
        const statements = await countStatements(program.path, places)
        const fates = await eachOf(seeds(SEEDS), 3, (seed) => killAtStatement(program.path, places, statements, seed))
        console.info(`effects on ${engine}, ${statements} statements: ${summary(fates)}`)
        const wrong = fates.filter((fate) => fate.wrong.length)
        expect(wrong, `replay: SIGNALBOX_SEED=<seed> npx vitest run --project sqlite test/chaos/kill-effects.test.ts -t ${engine}`).toEqual(
          [],
        )
      } finally {
        places.close()
      }
    },
  )
})
