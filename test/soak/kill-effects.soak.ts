import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildProgram } from '../chaos/effects/child.ts'
import { postgresPlaces, sqlitePlaces } from '../chaos/effects/databases.ts'
import { countStatements, eachOf, type Fate, killAtStatement, summary } from '../chaos/effects/kill.ts'
import { newSeeds } from '../chaos/random.ts'

const SEEDS = Number(process.env.SIGNALBOX_SEEDS ?? 1_000)
const SAY_EVERY = 100
let program: Awaited<ReturnType<typeof buildProgram>>
beforeAll(async () => {
  program = await buildProgram()
})
afterAll(() => program.remove())

test.each([
  ['sqlite', sqlitePlaces],
  ['postgres', postgresPlaces],
])('[F17] SIGKILL at every statement of an effect on %s, many seeds', { timeout: 90 * 60_000 }, async (engine, open) => {
  const places = await open()
  try {
    const statements = await countStatements(program.path, places)
    const fates: Fate[] = []
    await eachOf(newSeeds(SEEDS), 3, async (seed) => {
      fates.push(await killAtStatement(program.path, places, statements, seed))
      if (fates.length % SAY_EVERY === 0) console.info(`effects on ${engine}: ${summary(fates)}`)
    })
    console.info(`effects on ${engine}, ${statements} statements: ${summary(fates)}`)
    expect(fates.filter((fate) => fate.wrong.length)).toEqual([])
  } finally {
    await places.close()
  }
})
