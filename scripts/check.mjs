// `npm run check`: everything that can be said about the code without running it.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled, ROOT, requireNode, run, seconds } from './bootstrap.mjs'
import { docsDrift } from './docs.mjs'
import { lockfileProblems } from './lockfile.mjs'

const TSC = '@typescript/native/bin/tsc'
/** Its threads do much of the work over again: on two cores they take twice as long as one. */
const ALONE = ['--singleThreaded']
const CHECKS = {
  'imports (dependency-cruiser)': checkImports,
  lockfile: checkLockfile,
  'lint and format (biome)': () => passes('@biomejs/biome/bin/biome', ['check', '--error-on-warnings']),
  'types (tsc)': () => passes(TSC, [...ALONE, '--noEmit']),
  'types of the dashboard (tsc)': () => passes(TSC, [...ALONE, '--noEmit', '-p', 'src/ui']),
  'generated reference (docs)': checkDocs,
  'shape of the capabilities': checkShape,
}

requireNode('20.12.0')
await ensureInstalled()
const failed = []
const waiting = Object.entries(CHECKS)
// Two at a time: half of them use one core.
await Promise.all([work(), work()])
process.exitCode = failed.length > 0 ? 1 : 0

async function work() {
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const [name, check] = next
    const started = Date.now()
    const passed = await check()
    console.log(`${passed ? 'ok    ' : 'FAILED'}  ${name}, ${seconds(started)}`)
    if (!passed) failed.push(name)
  }
}

function checkLockfile() {
  const problems = lockfileProblems()
  for (const problem of problems) console.error(`package-lock.json: ${problem}`)
  if (problems.length > 0) console.error('Run `node scripts/lockfile.mjs --fix`.')
  return problems.length === 0
}

async function checkDocs() {
  const drift = await docsDrift()
  for (const { path, problem } of drift) console.error(`docs/${path} ${problem}`)
  if (drift.length > 0) console.error('Run `npm run docs` and commit the result.')
  return drift.length === 0
}

async function checkShape() {
  const { shapeProblems } = await import('./shape.mjs')
  const problems = shapeProblems(ROOT)
  for (const problem of problems) console.error(problem)
  return problems.length === 0
}

/** Without a TypeScript parser dependency-cruiser sees no file at all and reports success, so its count is checked too. */
async function checkImports() {
  const args = ['src', '--config', '.dependency-cruiser.cjs', '--output-type', 'err-long', '--no-cache', '--progress', 'none']
  const { code, output } = await tool('dependency-cruiser/bin/dependency-cruise.mjs', args)
  const [modules] = (output.match(/(\d+) modules/) ?? []).slice(1).map(Number)
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true }).filter((file) => /\.tsx?$/.test(file)).length
  if (code === 0 && !(modules >= sources)) console.error(`dependency-cruiser looked at ${modules ?? 0} modules; src has ${sources}`)
  return code === 0 && modules >= sources
}

/** What it says comes in one piece, when it is done. */
async function tool(path, args) {
  const { code, output } = await run(process.execPath, [join('node_modules', path), ...args], { capture: true })
  if (output.trim()) console.log(output.trim())
  return { code, output }
}

async function passes(path, args) {
  return (await tool(path, args)).code === 0
}
