import { afterAll, beforeAll, describe, test } from 'vitest'
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

const LONGEST_MS = 8 * 60_000

for (const program of wanted()) describe(program.name, () => scenariosOf(program))

function scenariosOf(program: Played): void {
  const running = new Map<Scenario, Promise<Finding>>()

  // biome-ignore lint/correctness/noEmptyPattern: vitest takes no other first argument
  beforeAll(({}, { tasks }) => {
    const leftOut = tasks.filter(({ mode }) => mode === 'skip').map(({ name }) => name)
    for (const scenario of SCENARIOS.filter(({ beside, name }) => beside && !leftOut.includes(name))) {
      const played = play(program, scenario)
      // Whether it went well is asked later.
      played.catch(() => {})
      running.set(scenario, played)
    }
  })

  const last = SCENARIOS.filter(({ beside }) => beside)
  for (const scenario of [...SCENARIOS.filter(({ beside }) => !beside), ...last])
    test(
      scenario.name,
      async ({ task }) => {
        const real = { program: program.name, version: realVersion(program.name), scenario: scenario.name }
        task.meta.real = real
        const asked = !scenario.only || scenario.only.programs.includes(program.name)
        const finding = asked ? await (running.get(scenario) ?? play(program, scenario)) : { notAsked: scenario.only?.because }
        task.meta.real = { ...real, ...finding }
      },
      LONGEST_MS,
    )
}

const open = new Set<Site>()

// One that runs beside the others may not have been waited for.
afterAll(async () => {
  for (const site of open) await site.close()
})

async function play(program: Played, scenario: Scenario): Promise<Finding> {
  const site = await Site.open(program, scenario.settings)
  open.add(site)
  try {
    return await scenario.play(site)
  } finally {
    open.delete(site)
    await site.close()
  }
}
