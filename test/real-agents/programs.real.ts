import { beforeAll, describe, test } from 'vitest'
import { realVersion } from '../../src/testing/real-programs.ts'
import { type Played, wanted } from './programs.ts'
import { type Finding, SCENARIOS, type Scenario } from './scenarios.ts'
import { Site } from './site.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** Read by scripts/test-real.mjs, which makes the table of it. */
    real?: { program: string; version: string; scenario: string } & Finding
  }
}

describe.each(wanted())('$name', (program) => {
  const running = new Map<Scenario, Promise<Finding>>()

  beforeAll(() => {
    for (const scenario of SCENARIOS.filter(({ beside }) => beside)) {
      const played = play(program, scenario)
      // Whether it went well is asked later.
      played.catch(() => {})
      running.set(scenario, played)
    }
  })

  const inOrder = [...SCENARIOS].sort((a, b) => Number(a.beside ?? false) - Number(b.beside ?? false))
  test.for(inOrder)('$name', async (scenario, { task }) => {
    const real = { program: program.name, version: realVersion(program.name), scenario: scenario.name }
    task.meta.real = real
    if (scenario.only && !scenario.only.programs.includes(program.name)) {
      task.meta.real = { ...real, notPossible: scenario.only.because }
      return
    }
    task.meta.real = { ...real, ...(await (running.get(scenario) ?? play(program, scenario))) }
  })
})

async function play(program: Played, scenario: Scenario): Promise<Finding> {
  const site = await Site.open(program, scenario.settings)
  try {
    return await scenario.play(site)
  } finally {
    await site.close()
  }
}
