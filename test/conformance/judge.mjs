// Reads what the official suite wrote and says, check by check, what was expected and what was not.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Found again by every run against a server that does not exist: what passes there says nothing about any server. */
export const PASS_AGAINST_NOTHING = [
  'input-required-result-ignore-extra-params',
  'input-required-result-missing-input-response',
  'input-required-result-validate-input',
  'tasks-status-notifications',
]

/** Extensions and unfinished scenarios that no revision requires and that we do not offer. They run, and their figures are shown. */
const NOT_OFFERED = [
  { scenario: /^tasks-/, reason: 'the tasks extension is not declared; long work is a tool of our own' },
  { scenario: /^http-custom-header-server-validation$/, reason: 'no tool declares x-mcp-header' },
  { scenario: /^server-sse-polling$/, reason: 'an answer that was cut off is not replayed; waits resume by their cursor' },
]

/**
 * @typedef {{ failures: Record<string, string>, vacuous: Record<string, string> }} Baseline each entry `scenario:check-id: reason`
 * @typedef {{ passed: number, failed: string[], expected: number, notCounted: number, notOffered: { passed: number, failed: number } }} Verdict
 */

/** @returns {Baseline} */
export function readBaseline(file, parse) {
  if (!existsSync(file)) return { failures: {}, vacuous: {} }
  const { failures, vacuous } = parse(readFileSync(file, 'utf8')) ?? {}
  const baseline = { failures: failures ?? {}, vacuous: vacuous ?? {} }
  for (const [check, reason] of Object.entries({ ...baseline.failures, ...baseline.vacuous }))
    if (!/^[\w-]+:[\w$-]+$/.test(check) || typeof reason !== 'string' || reason.length < 8)
      throw new Error(`${file}: "${check}" must be scenario:check-id with its reason`)
  return baseline
}

/**
 * @param {Map<string, { id: string, status: string, errorMessage?: string }[] | undefined>} results
 * @param {{ server: string[], not_scored: { scenario: string, leg: string }[] }} requirements
 * @param {Baseline} baseline
 * @returns {Verdict}
 */
export function judge(results, requirements, baseline) {
  const verdict = { passed: 0, failed: [], expected: 0, notCounted: 0, notOffered: { passed: 0, failed: 0 } }
  const met = new Set()
  const optional = requirements.not_scored.filter(({ leg }) => leg === 'server').map(({ scenario }) => scenario)
  for (const scenario of [...requirements.server, ...optional]) {
    const checks = results.get(scenario)
    const offered = !optional.includes(scenario) || !NOT_OFFERED.some((item) => item.scenario.test(scenario))
    if (!checks?.length && offered) verdict.failed.push(`${scenario}: did not run`)
    for (const { id, status, errorMessage } of checks ?? []) {
      const key = `${scenario}:${id}`
      if (status === 'INFO' || status === 'SKIPPED') continue
      const passed = status === 'SUCCESS'
      if (PASS_AGAINST_NOTHING.includes(scenario)) verdict.notCounted++
      else if (!offered) verdict.notOffered[passed ? 'passed' : 'failed']++
      else if (passed && key in baseline.vacuous) verdict.notCounted++
      else if (passed) verdict.passed++
      else if (key in baseline.failures) verdict.expected++
      else verdict.failed.push(`${key}: ${status.toLowerCase()}: ${errorMessage ?? ''}`)
      // A vacuous entry must still pass, an expected failure must still fail: anything else has outlived its reason.
      if (passed ? key in baseline.vacuous : key in baseline.failures) met.add(key)
    }
  }
  for (const key of Object.keys({ ...baseline.failures, ...baseline.vacuous }))
    if (!met.has(key)) verdict.failed.push(`${key}: stale: the baseline lists it, but it did not come out like that`)
  return verdict
}

/** One folder a scenario, named `server-<scenario>-<time>`; a scenario that broke has none, or one without checks. */
export function readResults(folder, requirements) {
  const names = [...requirements.server, ...requirements.not_scored.map(({ scenario }) => scenario)]
  const folders = existsSync(folder) ? readdirSync(folder) : []
  return new Map(
    names.map((scenario) => {
      const own = folders.find((name) => new RegExp(`^server-${scenario}-\\d{4}-`).test(name))
      const file = own && join(folder, own, 'checks.json')
      return [scenario, file && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined]
    }),
  )
}

/** The scenarios in which nothing failed although nobody answered. */
export function passing(results) {
  return [...results]
    .filter(([, checks]) => checks && !checks.some(({ status }) => status === 'FAILURE'))
    .map(([scenario]) => scenario)
    .sort()
}
