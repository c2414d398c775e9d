// The vitest part of `npm test`: what failed is run once more, alone. What came of it is in the report that scripts/test.mjs prints.
//
//   node scripts/unit.mjs [arguments of `vitest run`]
//
// A test that passes the second time is a flake: the run stays green and names it, up to MOST_FLAKES of them.
import { relative } from 'node:path'
import { createVitest, parseCLI } from 'vitest/node'
import { ROOT } from './bootstrap.mjs'
import { MOST_FLAKES, nameOf, writeReport } from './test-report.mjs'

/** So many failures are no flakes: running them all again would only take long. */
const MOST_RUN_AGAIN = 12

const { filter, options } = parseCLI(['vitest', 'run', ...process.argv.slice(2)])
const vitest = await createVitest('test', { ...options, watch: false })
const [green, skipped] = [new Set(), new Set()]
const report = { passed: 0, failed: [], flaky: [], skipped: [], files: [] }
try {
  const { testModules, unhandledErrors } = await vitest.start(filter)
  const failures = [
    ...testModules.flatMap(failuresOf),
    ...(await neverRan(testModules)),
    ...unhandledErrors.flatMap((error) => strayed(error, testModules)),
  ]
  for (const module of testModules) count(module)
  for (const [at, failure] of failures.entries()) {
    const again = at < MOST_RUN_AGAIN && failure.specifications.length > 0 && (await isGreenAlone(failure))
    const { specifications: _, ...told } = failure
    report[again ? 'flaky' : 'failed'].push(told)
  }
} catch (error) {
  report.failed.push({ project: '', file: 'vitest', name: 'could not run', error: String(error?.stack ?? error) })
} finally {
  await vitest.close()
}
// What is for one engine only is skipped on the other.
report.skipped = [...skipped].filter((name) => !green.has(name))
writeReport(report)
process.exitCode = report.failed.length > 0 || report.flaky.length > MOST_FLAKES || report.passed === 0 ? 1 : 0

/** A file that could not be loaded, whose hooks failed or whose process died is run again as a whole; a test by itself. */
function failuresOf(module) {
  const place = { project: module.project.name, file: relative(ROOT, module.moduleId) }
  const whole = (error) => [{ ...place, name: 'the whole file', error, specifications: [module.toTestSpecification()] }]
  if (isCutOff(module)) return whole('its process ended before its tests did')
  const broken = [module, ...module.children.allSuites()].flatMap((suite) => suite.errors())
  const failed = [...module.children.allTests('failed')].map((test) => ({
    ...place,
    name: test.fullName,
    error: textOf(test.result().errors),
    specifications: [module.toTestSpecification([test])],
  }))
  return broken.length > 0 ? [...whole(textOf(broken)), ...failed] : failed
}

/** A worker that could not be started says nothing of the files that it was to run. */
async function neverRan(modules) {
  const known = new Set(modules.map(({ moduleId, project }) => `${project.name} ${moduleId}`))
  const missing = (await vitest.globTestSpecifications(filter)).filter(({ moduleId, project }) => !known.has(`${project.name} ${moduleId}`))
  return missing.map((specification) => ({
    project: specification.project.name,
    file: relative(ROOT, specification.moduleId),
    name: 'the whole file',
    error: 'it never ran',
    specifications: [specification],
  }))
}

function isCutOff(module) {
  return ['queued', 'pending'].includes(module.state()) || [...module.children.allTests('pending')].length > 0
}

/** An error that no test waited for: vitest knows at most the file in which it came up. */
function strayed(error, modules) {
  if (error?.message?.startsWith('[vitest-pool]') && modules.some(isCutOff)) return []
  // Of a file that runs on both engines nobody knows on which one it was.
  const specifications = error?.VITEST_TEST_PATH ? vitest.getModuleSpecifications(error.VITEST_TEST_PATH) : []
  const file = specifications.length > 0 ? relative(ROOT, specifications[0].moduleId) : 'vitest'
  const project = specifications.length === 1 ? specifications[0].project.name : ''
  return [{ project, file, name: 'an unhandled error', error: textOf([error]), specifications }]
}

async function isGreenAlone({ specifications, ...failure }) {
  console.log(`\nonce more, alone: ${nameOf(failure)}`)
  for (const specification of specifications) {
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications([specification])
    const module = testModules.find(({ moduleId, project }) => moduleId === specification.moduleId && project === specification.project)
    const ran = [...(module?.children.allTests('passed') ?? [])].length
    if (ran === 0 || unhandledErrors.length > 0 || failuresOf(module).length > 0) return false
  }
  return true
}

function count(module) {
  const { duration, collectDuration, setupDuration, prepareDuration, environmentSetupDuration } = module.diagnostic()
  const ms = duration + collectDuration + setupDuration + prepareDuration + environmentSetupDuration
  const tests = [...module.children.allTests()]
  report.files.push({ project: module.project.name, file: relative(ROOT, module.moduleId), seconds: ms / 1_000, tests: tests.length })
  for (const test of tests) {
    if (test.result().state === 'passed') green.add(`${relative(ROOT, module.moduleId)} > ${test.fullName}`)
    if (test.result().state === 'passed') report.passed++
    if (test.result().state === 'skipped') skipped.add(`${relative(ROOT, module.moduleId)} > ${test.fullName}`)
  }
}

function textOf(errors) {
  return errors.map((error) => error?.stack ?? error?.message ?? String(error)).join('\n')
}
