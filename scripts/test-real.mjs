// `npm run test:real`: the whole product with the real agent programs, on loopback, with a scripted model. Writes docs/compatibility.md.
//
//   npm run test:real -- --only claude,codex   these programs
//   npm run test:real -- --scenarios      without the adapters' own tests
//   npm run test:real -- -- -t '429'      anything after a second `--` is for vitest
//   SIGNALBOX_REAL_AGENTS=FOLDER          the programs that are installed there, in the place of the pinned ones
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { ensureBuilt, ensureInstalled, fail, npm, ROOT, readIfThere, requireGit, requireNode, run, say, seconds } from './bootstrap.mjs'

const { packages, programs } = JSON.parse(readFileSync(join(ROOT, 'test/real-agents/programs.json'), 'utf8'))
const RESULTS = join(ROOT, '.cache/real-agents')
const REPORT = join(ROOT, 'docs/compatibility.md')

const { only, scenariosOnly, passedOn } = parse(process.argv.slice(2))
const names = only ?? Object.keys(programs)

requireNode('20.19.0')
requireGit()
await ensureInstalled()
const folder = process.env.SIGNALBOX_REAL_AGENTS || (await installed())
const versions = Object.fromEntries(names.map((name) => [name, versionOf(name)]))
await ensureBuilt()

const raw = join(RESULTS, `vitest-${process.pid}.json`)
mkdirSync(RESULTS, { recursive: true })
rmSync(raw, { force: true })
const { code } = await run(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', '--config', 'vitest.real.config.ts', ...files(), ...passedOn],
  {
    env: { ...process.env, SIGNALBOX_REAL_AGENTS: folder, SIGNALBOX_REAL_RESULTS: raw, SIGNALBOX_REAL_ONLY: only?.join() ?? '' },
  },
)
const tests = testsOf(raw)
rmSync(raw, { force: true })
const told = names.map((name) => toldOf(name))
for (const one of told) writeFileSync(fileOf(one.program), JSON.stringify(withEarlier(one), null, 2))
writeFileSync(REPORT, report())
summarise()

/** The folder with the pinned programs. One whose install did not come to its end has no mark, and is made anew. */
async function installed() {
  const pins = JSON.stringify(packages)
  const hash = createHash('sha256').update(pins).digest('hex').slice(0, 16)
  const target = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'signalbox/real-agents', hash)
  const mark = join(target, '.complete')
  if (existsSync(mark)) return target
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  writeFileSync(join(target, 'package.json'), JSON.stringify({ private: true, dependencies: packages }, null, 2))
  say(`installing the agent programs into ${target} (about 1.6 GB, once)…`)
  const started = Date.now()
  const beat = setInterval(() => say(`still installing (${seconds(started)})…`), 15_000)
  const { code, output } = await npm(['install', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: target })
  clearInterval(beat)
  if (code !== 0) {
    console.error(output.trimEnd().split('\n').slice(-12).join('\n').replace(/^/gm, '  | '))
    fail('the agent programs could not be installed', 'Without them nothing here can be tested. The lines above are the last words of npm.')
  }
  writeFileSync(mark, new Date().toISOString())
  say(`installed in ${seconds(started)}`)
  return target
}

/** A program that is not there, or is another one than the pinned, would be tested in name only. */
function versionOf(name) {
  const { package: from } = programs[name]
  const manifest = readIfThere(join(folder, 'node_modules', from, 'package.json'))
  if (manifest === undefined || !existsSync(join(folder, 'node_modules/.bin', name))) fail(`${name} is not in ${folder}`)
  const { version } = JSON.parse(manifest)
  if (version !== packages[from])
    fail(`${name} in ${folder} is ${version}, not ${packages[from]}`, 'Change test/real-agents/programs.json, or the folder.')
  return version
}

function files() {
  const adapters = scenariosOnly ? [] : [...new Set(names.map((name) => programs[name].adapter))]
  return ['test/real-agents/', ...adapters.map((adapter) => `src/adapters/${adapter}/`)]
}

/** Of what did not even run there is nothing: the summary finds it missing. */
function testsOf(file) {
  const text = readIfThere(file)
  if (text === undefined) return []
  return JSON.parse(text).testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => passedOn.length === 0 || status === 'passed' || status === 'failed')
      .map(({ title, fullName, status, duration, meta, failureMessages }) => ({
        file: name.slice(ROOT.length),
        title,
        fullName,
        passed: status === 'passed',
        status,
        ms: Math.round(duration ?? 0),
        real: meta?.real,
        why: (failureMessages ?? []).join('\n').split('\n')[0],
      })),
  )
}

function toldOf(program) {
  const date = new Date().toISOString().slice(0, 10)
  const scenarios = tests
    .filter(({ file, fullName }) => file.startsWith('test/real-agents/') && fullName.trim().startsWith(`${program} `))
    .map(({ title, passed, ms, real, why }) => ({
      scenario: title,
      result: passed ? (real?.notAsked ? 'not asked' : real?.notPossible ? 'not possible' : 'passed') : 'failed',
      seconds: real?.seconds ?? Math.round(ms / 100) / 10,
      detail: passed ? (real?.notAsked ?? real?.notPossible ?? real?.detail ?? '') : why,
      date,
    }))
  const contract = tests.filter(({ file }) => file.startsWith(`src/adapters/${programs[program].adapter}/`))
  const failed = contract.filter(({ passed }) => !passed).map(({ fullName }) => fullName)
  return { program, version: versions[program], scenarios, adapter: { passed: contract.length - failed.length, failed } }
}

function fileOf(program) {
  return join(RESULTS, `${program}.json`)
}

/** What was not run this time holds as it was, as long as it was the same version. */
function withEarlier(one) {
  const text = readIfThere(fileOf(one.program))
  const earlier = text === undefined ? undefined : JSON.parse(text)
  if (earlier?.version !== one.version) return one
  const now = new Map([...earlier.scenarios, ...one.scenarios].map((row) => [row.scenario, row]))
  const ranNone = one.adapter.passed + one.adapter.failed.length === 0
  return { ...one, scenarios: [...now.values()], adapter: ranNone ? earlier.adapter : one.adapter }
}

function report() {
  const kept = Object.keys(programs).flatMap((name) => readIfThere(fileOf(name)) ?? [])
  const all = kept.map((text) => JSON.parse(text)).filter(({ program, version }) => packages[programs[program].package] === version)
  const rows = [...new Set(all.flatMap(({ scenarios }) => scenarios.map(({ scenario }) => scenario)))]
  const cell = ({ scenarios }, row) => scenarios.find(({ scenario }) => scenario === row)
  const line = (cells) => `| ${cells.join(' | ')} |`
  const notes = all.flatMap((one) =>
    one.scenarios.filter(({ detail }) => detail).map(({ scenario, result, detail }) => line([one.program, scenario, result, flat(detail)])),
  )
  return `# Which agent programs it was tried with

Written by \`npm run test:real\`: the real programs, the whole product on loopback, a scripted model in the place of the provider's.
What cannot be done with a program was made sure to be refused in words.

${line(['program', 'package', 'version', 'tried on', 'adapter tests'])}
|---|---|---|---|---|
${all.map((one) => line([programs[one.program].title, `\`${programs[one.program].package}\``, one.version, triedOn(one), adapterCell(one)])).join('\n')}

${line(['', ...all.map(({ program }) => `\`${program}\``)])}
|---|${all.map(() => '---|').join('')}
${rows.map((row) => line([row, ...all.map((one) => resultCell(cell(one, row)))])).join('\n')}

## What was seen

${line(['program', 'scenario', 'result', 'what'])}
|---|---|---|---|
${notes.join('\n')}
`
}

function triedOn({ scenarios }) {
  const dates = [...new Set(scenarios.flatMap(({ date }) => date ?? []))].sort()
  return dates.length > 1 ? `${dates[0]} to ${dates.at(-1)}` : (dates[0] ?? 'never')
}

function adapterCell({ adapter }) {
  if (adapter.failed.length > 0) return `${adapter.passed} passed, ${adapter.failed.length} failed`
  return adapter.passed > 0 ? `${adapter.passed} passed` : 'none ran'
}

function resultCell(found) {
  if (!found) return 'not run'
  return found.result.startsWith('not ') ? found.result : `${found.result}, ${found.seconds} s`
}

function flat(text) {
  return text.replace(/\s+/g, ' ').replaceAll('|', '\\|').slice(0, 300)
}

function summarise() {
  console.log('')
  for (const { program, version, scenarios, adapter } of told) {
    const count = (result) => scenarios.filter((one) => one.result === result).length
    const ran = `${count('passed')} passed, ${count('failed')} failed, ${count('not possible')} not possible`
    console.log(
      `${program.padEnd(18)}${version.padEnd(10)}scenarios: ${ran}; adapter: ${adapter.passed} passed, ${adapter.failed.length} failed`,
    )
    for (const { scenario, detail } of scenarios.filter(({ result }) => result === 'failed'))
      console.log(`  FAILED  ${scenario}: ${flat(detail)}`)
    for (const name of adapter.failed) console.log(`  FAILED  ${name}`)
    if (scenarios.length === 0) console.log('  FAILED  nothing of it ran')
  }
  const missing = told.some(({ scenarios }) => scenarios.length === 0)
  process.exitCode = code !== 0 || missing ? 1 : 0
}

function parse(args) {
  const parsed = { only: undefined, scenariosOnly: false, passedOn: [] }
  const rest = [...args]
  while (rest.length > 0) {
    const [flag, inline] = rest.shift().split(/=(.*)/s)
    if (flag === '--') parsed.passedOn = rest.splice(0)
    else if (flag === '--scenarios') parsed.scenariosOnly = true
    else if (flag === '--only') parsed.only = (inline ?? rest.shift() ?? '').split(',')
    else fail(`unknown option ${flag}`, 'Known: --only PROGRAM,PROGRAM, --scenarios, and after `--` anything for vitest.')
  }
  const unknown = parsed.only?.find((name) => !Object.hasOwn(programs, name))
  if (unknown !== undefined) fail(`there is no program "${unknown}"`, `Known: ${Object.keys(programs).join(', ')}.`)
  return parsed
}
