// `npm test`: one command from a bare checkout to a verdict.
//
//   npm test                         everything
//   npm test -- --only unit          one step: check, unit, package or conformance
//   npm test -- --without faketime   leave out what needs a system package (repeatable, or comma separated)
//   npm test -- --soak               the long tests instead
//   npm test -- -- -t 'letter'       what follows the second -- goes to vitest
//
// A test that fails is run once more, alone. If it passes then, the run is green and names it as FLAKY.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled, fail, requireGit, requireNode, run, say, seconds } from './bootstrap.mjs'
import { findChromium } from './chromium.mjs'
import { describeTimes, firstLines, MOST_FLAKES, nameOf, REPORT, readReport, writeReport } from './test-report.mjs'

/**
 * What the tests need beyond npm. `probe`: is it there? `unusable`: why it is of no use here although it is there, if so.
 * `brew: null`: macOS has no such thing.
 */
const SYSTEM_PACKAGES = [
  {
    name: 'faketime',
    probe: () => FAKETIME_FOLDERS().some((folder) => list(folder).some((file) => /^libfaketime\.(so\.1|1\.dylib)$/.test(file))),
    apt: 'faketime',
    brew: 'libfaketime',
    neededBy: 'clock tests',
  },
  {
    name: 'unshare',
    probe: () => succeeds('unshare', ['--version']),
    unusable: () => (succeeds('unshare', ['-rm', 'true']) ? undefined : 'this system refuses it a mount namespace'),
    apt: 'util-linux',
    brew: null,
    neededBy: 'disk-full tests',
  },
  {
    name: 'postgresql',
    probe: () => [...list('/usr/lib/postgresql').map((version) => `/usr/lib/postgresql/${version}/bin`), ...PATH].some(hasServer),
    apt: 'postgresql',
    brew: 'postgresql',
    neededBy: 'everything on PostgreSQL',
  },
  {
    name: 'chromium',
    probe: () => findChromium() !== undefined,
    apt: 'chromium-headless-shell',
    brew: '--cask chromium',
    neededBy: 'browser tests',
  },
  {
    name: 'python3',
    probe: () => succeeds('python3', ['-m', 'venv', '--help']),
    apt: 'python3-venv',
    brew: 'python3',
    neededBy: 'setup tests',
  },
  {
    name: 'tmux',
    probe: () => succeeds('tmux', ['-V']),
    apt: 'tmux',
    brew: 'tmux',
    neededBy: 'terminal tests',
  },
]
const PATH = (process.env.PATH ?? '').split(':')
const hasServer = (folder) => existsSync(join(folder, 'initdb'))
const FAKETIME_FOLDERS = () => [
  ...list('/usr/lib').map((folder) => `/usr/lib/${folder}/faketime`),
  ...['/usr/lib', '/usr/lib64', '/usr/local/lib', '/opt/homebrew/lib'].map((folder) => `${folder}/faketime`),
]

const STEPS = {
  check: (how) => node(['scripts/check.mjs'], how),
  unit: (how) => node(['scripts/unit.mjs', ...options.passedOn], how),
  package: (how) => node(['scripts/package-test.mjs'], how),
  conformance: async (how) => {
    const built = await node(['scripts/bootstrap.mjs', '--built'], how)
    return built.code === 0 ? node(['test/conformance/run.mjs'], how) : built
  },
  soak: (how) => node([VITEST, 'run', '--config', 'vitest.soak.config.ts', ...options.passedOn], how),
  properties: (how) => node([VITEST, 'run', '--project', 'sqlite', ...PROPERTIES], { ...how, env: { ...env, SIGNALBOX_SEEDS: '1' } }),
  postgresql: (how) => node([VITEST, 'run', '--project', 'postgres', ...ON_POSTGRESQL], { ...how, env: { ...env, SIGNALBOX_SOAK: '1' } }),
}
const VITEST = 'node_modules/vitest/vitest.mjs'
/** What fast-check draws cases for; `npm test` has the same ones each time. */
const PROPERTIES = ['src/kernel/redact.test.ts', 'src/capabilities/task/task.test.ts', 'src/adapters']
/** What `npm test` leaves out on PostgreSQL, or does only a part of. */
const ON_POSTGRESQL = [
  ...['trust', 'landing', 'merge', 'repo'].map((name) => `src/capabilities/merge/${name}.test.ts`),
  ...['decide', 'rebase'].map((name) => `src/capabilities/review/${name}.test.ts`),
  'src/capabilities/pr/pull-requests.test.ts',
  'src/capabilities/epic/finish.test.ts',
  'src/db/postgres-copy.test.ts',
]
/** One after the other; what stands together runs side by side. */
const EVERYDAY = [['check'], ['unit'], ['package', 'conformance']]
/** Run once more when they fail, as `unit` does with each of its tests. */
const MAY_FLAKE = ['package', 'conformance']
const NEED_SYSTEM_PACKAGES = ['unit', 'conformance', 'soak', 'postgresql']

const options = parse(process.argv.slice(2))
const env = { ...process.env, SIGNALBOX_TEST_WITHOUT: options.without.join(',') }
const stages = options.soak
  ? [['soak'], ...(options.passedOn.length ? [] : [['properties'], ...(options.without.includes('postgresql') ? [] : [['postgresql']])])]
  : options.only
    ? [[options.only]]
    : EVERYDAY

// Vite, under vitest, needs more than the 20.11 the product runs on.
requireNode('20.19.0')
requireGit()
await ensureInstalled()
if (stages.flat().some((name) => NEED_SYSTEM_PACKAGES.includes(name))) requireSystemPackages()

rmSync(REPORT, { force: true })
const results = []
const ofSteps = { flaky: [], failed: [] }
for (const names of stages) {
  await Promise.all(names.map((name) => step(name, { capture: names.length > 1 })))
  // Alone: beside each other, what disturbed the first time would disturb again.
  for (const result of results.filter((one) => !one.passed && one.output !== undefined)) await onceMore(result)
}
summarise()

async function step(name, how) {
  console.log(`\n── ${name} ${'─'.repeat(70 - name.length)}`)
  const started = Date.now()
  const { code, output } = await told(STEPS[name](how))
  results.push({ name, passed: code === 0, time: seconds(started), output: MAY_FLAKE.includes(name) ? (output ?? '') : undefined })
  console.log(`── ${name}: ${code === 0 ? 'passed' : 'FAILED'}, ${seconds(started)}`)
}

async function onceMore(result) {
  const { name, output } = result
  console.log(`\nonce more, alone: ${name}`)
  const { code } = await told(STEPS[name]({ capture: true }))
  result.passed = code === 0
  result.output = undefined
  // Its last lines say what was wrong.
  const error = output.trimEnd().split('\n').slice(-6).join('\n') || 'its output is above'
  ofSteps[result.passed ? 'flaky' : 'failed'].push({ project: '', file: name, name: 'the whole step', error })
}

/** What runs beside something else says it in one piece. */
async function told(running) {
  const result = await running
  if (result.output) console.log(result.output.trimEnd())
  return result
}

function summarise() {
  const unit = readReport()
  const report = { ...unit, flaky: [...unit.flaky, ...ofSteps.flaky], failed: [...unit.failed, ...ofSteps.failed] }
  writeReport(report)
  const row = (step, result, time) => console.log(`${step.padEnd(14)}${result.padEnd(10)}${time.padStart(9)}`)
  if (report.files.length > 1) console.log(describeTimes(report))
  console.log('')
  row('step', 'result', 'time')
  for (const { name, passed, time } of results) row(name, passed ? 'passed' : 'FAILED', time)
  for (const { name, neededBy } of SYSTEM_PACKAGES) {
    if (options.without.includes(name)) console.log(`NOT RUN: ${name} (${neededBy})`)
  }
  for (const failure of report.failed) console.log(`FAILED ${nameOf(failure)}\n${firstLines(failure.error)}`)
  for (const flake of report.flaky) console.log(`FLAKY ${nameOf(flake)}\n${firstLines(flake.error)}`)
  const tooMany = report.flaky.length > MOST_FLAKES
  if (tooMany) console.log(`${report.flaky.length} tests passed only when they were run again; more than ${MOST_FLAKES} make a run red`)
  if (report.passed > 0) console.log(`${report.passed} tests were green`)
  for (const name of report.skipped) console.log(`SKIPPED ${name}`)
  const failed = results.filter(({ passed }) => !passed).length
  console.log(`${results.length - failed} passed, ${failed} failed`)
  process.exitCode = failed > 0 || tooMany ? 1 : 0
}

function requireSystemPackages() {
  const wanted = SYSTEM_PACKAGES.filter(({ name }) => !options.without.includes(name))
  const absent = wanted.filter(({ probe }) => !probe())
  if (absent.length > 0) installByApt(absent)
  const blockers = wanted.flatMap((item) => {
    if (!item.probe()) return `${item.name} is not installed (needed by ${item.neededBy}): ${howToInstall(item)}`
    const reason = item.unusable?.()
    return reason ? `${item.name} cannot be used (needed by ${item.neededBy}): ${reason}` : []
  })
  if (blockers.length === 0) return
  fail('the tests need what this machine does not have', ...blockers, 'Or leave out those tests: `npm test -- --without NAME`.')
}

function howToInstall({ apt, brew }) {
  if (process.platform !== 'darwin') return `run \`${process.getuid?.() === 0 ? '' : 'sudo '}apt-get install -y ${apt}\``
  return brew ? `run \`brew install ${brew}\`` : 'macOS has none'
}

/** Only where it asks nobody anything: as root, or with a sudo that wants no password. */
function installByApt(items) {
  const root = process.getuid?.() === 0
  if (!succeeds('apt-get', ['--version']) || !(root || succeeds('sudo', ['-n', 'true']))) return
  const packages = items.map(({ apt }) => apt)
  const apt = (...args) => {
    const words = [...(root ? [] : ['sudo', '-n']), 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...args]
    return spawnSync(words[0], words.slice(1), { encoding: 'utf8' })
  }
  const install = () => apt('install', '-y', '-q', '--no-install-recommends', ...packages)
  const started = Date.now()
  say(`installing ${packages.join(', ')} with apt-get…`)
  let result = install()
  // A fresh container has no package lists.
  if (result.status !== 0 && apt('update', '-q').status === 0) result = install()
  if (result.status === 0) say(`installed in ${seconds(started)}`)
  else console.error(`${result.stdout}${result.stderr}`.trimEnd().replace(/^/gm, '  | '))
}

function parse(args) {
  const parsed = { only: undefined, soak: false, without: [], passedOn: [] }
  const rest = [...args]
  const value = (flag) => rest.shift() ?? fail(`${flag} needs a name`)
  while (rest.length > 0) {
    const [flag, inline] = rest.shift().split(/=(.*)/s)
    if (inline !== undefined) rest.unshift(inline)
    if (flag === '--') parsed.passedOn = rest.splice(0)
    else if (flag === '--soak') parsed.soak = true
    else if (flag === '--only') parsed.only = value(flag)
    else if (flag === '--without') parsed.without.push(...value(flag).split(',').filter(Boolean))
    else fail(`unknown option ${flag}`, 'Known: --only STEP, --without NAME, --soak, and after `--` anything for vitest.')
  }
  const steps = EVERYDAY.flat()
  if (parsed.only && !steps.includes(parsed.only)) fail(`there is no step ${parsed.only}`, `The steps are: ${steps.join(', ')}.`)
  const known = SYSTEM_PACKAGES.map(({ name }) => name)
  const unknown = parsed.without.filter((name) => !known.includes(name))
  if (unknown.length > 0) fail(`--without ${unknown.join(',')}: no such thing is needed`, `Known: ${known.join(', ')}.`)
  return parsed
}

function node(args, how) {
  return run(process.execPath, args, { env, ...how })
}

function succeeds(command, args) {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}

function list(folder) {
  return existsSync(folder) ? readdirSync(folder) : []
}
