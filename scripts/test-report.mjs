// What a run of the tests says about itself: written by `npm test`, read by `npm run test:repeat`.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT, readIfThere } from './bootstrap.mjs'

export const REPORT = process.env.SIGNALBOX_TEST_REPORT ?? join(ROOT, '.cache/test-report.json')
export const MOST_FLAKES = 3
const SLOWEST = 15
const ERROR_LINES = 6

export function writeReport(report) {
  mkdirSync(dirname(REPORT), { recursive: true })
  writeFileSync(REPORT, JSON.stringify(report, null, 1))
}

/** Of a run without vitest, or one that died before it could tell: nothing. */
export function readReport() {
  return JSON.parse(readIfThere(REPORT) ?? '{ "passed": 0, "skipped": [], "failed": [], "flaky": [], "files": [] }')
}

export function nameOf({ project, file, name }) {
  return `${file} > ${name}${project === 'postgres' ? ' (postgres)' : ''}`
}

export function firstLines(text) {
  const own = text.split('\n').filter((line) => !/^\s+at .*(node_modules|node:internal|<anonymous>)/.test(line))
  return own.slice(0, ERROR_LINES).join('\n').replace(/^/gm, '  ')
}

/** The slowest files, and the total of each project. */
export function describeTimes({ files }) {
  const row = (seconds, ...words) => `${seconds.toFixed(1).padStart(8)} s  ${words.join('  ')}`
  const slowest = [...files].sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST)
  const projects = [...new Set(files.map(({ project }) => project))]
  const totals = projects.map((project) => {
    const own = files.filter((file) => file.project === project)
    const sum = (key) => own.reduce((total, file) => total + file[key], 0)
    return row(sum('seconds'), project.padEnd(8), `${sum('tests')} tests in ${own.length} files`)
  })
  return [
    '',
    'slowest files',
    ...slowest.map(({ seconds, project, file }) => row(seconds, project.padEnd(8), file)),
    '',
    'time by project',
    ...totals,
  ].join('\n')
}
