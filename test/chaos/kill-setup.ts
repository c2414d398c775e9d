import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DaemonOptions } from '../../src/testing/daemon.ts'
import { depend, INSTALL } from '../../src/testing/packages.ts'
import { kill, leftBehind, survivors } from '../../src/testing/survivors.ts'
import { findings } from './findings.ts'
import { git, repository } from './kill-runs.ts'
import { Mortal } from './mortal.ts'
import { Random } from './random.ts'
import { pause } from './stop.ts'

export interface SetupReport {
  seed: number
  kills: Record<Victim, number>
  tasks: number
  setups: Record<'made' | 'kept', number>
  /** What is not as it has to be; nothing, when all is well. */
  wrong: string[]
}

/** `setup`: the runner of one, before an agent or before checks. `copy`: a program that keeps packages, or gives them. */
type Victim = 'daemon' | 'setup' | 'copy'
const VICTIMS: Victim[] = ['daemon', 'setup', 'copy']
const NAMES: Record<Victim, string> = { daemon: 'daemons', setup: 'setups', copy: 'copies' }
const COPIERS = /^(cp|grep|find|du) /
const PACKAGES = ['greet', 'leave']
/** So many that it takes a moment to copy them. */
const FILES_EACH = 800
const VICTIM_WITHIN_MS = 3_000
const CONVERGES_WITHIN_MS = 180_000
const SETTINGS = {
  'runs.max_lives': 100,
  'runs.back_off_seconds': 0.05,
  'runs.linger_seconds': 5,
  'runs.max_per_host': 40,
  'runs.max_per_project': 40,
}

interface Plan {
  /** Tasks are begun, and later landed, one with each strike. */
  strikes: number
  /** One for each daemon; several share a database. */
  daemons?: DaemonOptions[]
}

/** Worktrees and checks that are set up, and somebody who kills daemons, setups, and whoever copies packages. */
export async function killSetup(seed: number, { strikes, daemons = [{}] }: Plan): Promise<SetupReport> {
  const random = new Random(seed)
  const repo = project()
  const mortals: Mortal[] = []
  const kills: SetupReport['kills'] = { daemon: 0, setup: 0, copy: 0 }
  try {
    for (const options of daemons) mortals.push(await Mortal.start(options))
    const [first] = mortals as [Mortal]
    const { daemon } = first
    for (const [key, value] of Object.entries(SETTINGS)) await daemon.call('setting_update', { key, value })
    const { project_id } = await daemon.call('project_create', { name: 'Chaos' })
    await daemon.call('repo_add', { path: repo, project_id, setup: INSTALL, checks: 'npm test' })
    const tasks: string[] = []
    const strike = async () => {
      // What is there is copied; what is not is installed and kept.
      if (random.chance(0.5)) await random.pick(mortals).daemon.call('setup_forget', {})
      await pause(random.below(400))
      const victim = random.pick(VICTIMS)
      kills[victim] += await strikeAt(random.pick(mortals), victim, random)
    }
    for (let i = 0; i < strikes; i++) {
      tasks.push(await begin(random.pick(mortals), project_id, i))
      await strike()
    }
    const wrong = await reached(first, tasks, 'REVIEW')
    wrong.push(...(await readyToWork(first, repo, tasks)))
    for (const task_id of wrong.length ? [] : tasks) {
      await daemon.call('merge_submit', { task_id })
      await strike()
    }
    if (!wrong.length) wrong.push(...(await reached(first, tasks, 'DONE')), ...(await everythingOnce(mortals, repo, tasks)))
    return { seed, kills, tasks: tasks.length, setups: await setupsOf(first), wrong }
  } finally {
    for (const mortal of mortals) await mortal.remove()
    for (const path of [repo, `${repo}.whole`]) rmSync(path, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** A project of npm whose test needs its packages. */
function project(): string {
  const repo = repository()
  const packed = mkdtempSync(join(tmpdir(), 'signalbox-packed-'))
  mkdirSync(join(repo, 'vendor'))
  for (const name of PACKAGES) {
    const folder = join(packed, name, 'package')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version: '1.0.0', main: '0.js' }))
    for (let i = 0; i < FILES_EACH; i++) writeFileSync(join(folder, `${i}.js`), `module.exports = '${name} ${i}'\n`)
    execFileSync('tar', ['-czf', join(repo, 'vendor', `${name}.tgz`), '-C', join(folder, '..'), 'package'])
  }
  rmSync(packed, { recursive: true })
  depend(repo, ...PACKAGES)
  const whole = PACKAGES.map((name) => `if (require('${name}/${FILES_EACH - 1}.js') !== '${name} ${FILES_EACH - 1}') process.exit(1)\n`)
  writeFileSync(join(repo, 'test.js'), whole.join(''))
  writeFileSync(join(repo, '.gitignore'), 'node_modules\n')
  git(repo, 'add', '--all')
  git(repo, 'commit', '--quiet', '--message=shop')
  return repo
}

async function begin({ daemon }: Mortal, project_id: string, n: number): Promise<string> {
  const steps = [
    { run: { argv: ['npm', 'test'] } },
    { write: { path: `${n}.txt`, text: `${n}\n` } },
    { commit: { message: `work ${n}` } },
    { review: { summary: 'It is there.' } },
  ]
  const description = `\`\`\`signalbox\n${JSON.stringify(steps)}\n\`\`\`\n`
  const { task_id } = await daemon.call('task_create', { project_id, title: `Task ${n}`, description })
  await daemon.call('job_submit', { task_id, action: 'start_agent', harness: 'scripted' })
  return task_id
}

/** Waits for the victim, and then a moment more: nobody is to be safe at any instant of its life. */
async function strikeAt(mortal: Mortal, victim: Victim, random: Random): Promise<number> {
  const until = performance.now() + VICTIM_WITHIN_MS
  const moment = random.below(60)
  if (victim === 'daemon') {
    await mortal.end('SIGKILL')
    if (random.chance(0.2)) await mortal.killWhileStarting(random.below(600))
    await mortal.start()
    return 1
  }
  const { home } = mortal.daemon
  const those = () => (victim === 'setup' ? setupRunners(home) : copiers(home))
  while (!those().length) {
    if (performance.now() > until) return 0
    await pause(5)
  }
  await pause(moment)
  const candidates = those()
  if (!candidates.length) return 0
  kill(random.pick(candidates))
  return 1
}

function setupRunners(home: string): number[] {
  return survivors(home).flatMap(({ pid, argv }) => (argv.includes('runner.js') && argv.includes(join(home, 'runs', 'setup')) ? [pid] : []))
}

/** The daemon's own children: they are marked by nothing but what they are told to do. */
function copiers(home: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^[0-9]+$/.test(name)) return []
    try {
      const argv = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
      return COPIERS.test(argv) && argv.includes(home) ? [Number(name)] : []
    } catch {
      return []
    }
  })
}

async function reached({ daemon }: Mortal, tasks: string[], status: string): Promise<string[]> {
  const deadline = performance.now() + CONVERGES_WITHIN_MS
  for (;;) {
    const { cursor } = await daemon.call('task_list', { limit: 1 })
    const wrong: string[] = []
    for (const task_id of tasks) {
      const { task } = await daemon.call('task_get', { task_id })
      const { jobs } = await daemon.call('job_list', { task_id })
      if (task.status !== status)
        wrong.push(`${task.handle} is ${task.status}, ${task.attention_detail}: ${jobs[0]?.state} ${jobs[0]?.reason}`)
    }
    const left = (deadline - performance.now()) / 1_000
    if (!wrong.length || left < 1) return wrong
    await daemon.call('event_wait', {
      cursor,
      types: ['task.*', 'job.*', 'setup.*', 'merge.*', 'line.*'],
      timeout_seconds: Math.min(left, 10),
    })
  }
}

/** Every worktree has all of its packages, and ports of its own. */
async function readyToWork({ daemon }: Mortal, repo: string, tasks: string[]): Promise<string[]> {
  const { found, check } = findings()
  const whole = packagesOf(installed(repo))
  const ports: number[] = []
  for (const task_id of tasks) {
    const { path } = (await daemon.call('work_get', { task_id })).work
    check(`packages of ${path}`, packagesOf(path), whole)
    const { setup, ports: range } = await daemon.call('setup_get', { task_id })
    check(`setup of ${path}`, [setup.state, setup.reason], ['ready', null])
    ports.push(range.first)
  }
  check('ports that two have', ports.length - new Set(ports).size, 0)
  return found
}

async function everythingOnce(mortals: Mortal[], repo: string, tasks: string[]): Promise<string[]> {
  const { found, check } = findings()
  const [{ daemon }] = mortals as [Mortal]
  const whole = packagesOf(installed(repo))
  for (const { daemon: each } of mortals) {
    const folder = join(each.home, 'packages')
    const kept = (existsSync(folder) ? readdirSync(folder) : []).filter((name) => !name.startsWith('.'))
    for (const key of kept) check(`kept packages ${key}`, packagesOf(join(folder, key, 'tree')), whole)
    check('setups that are left', existsSync(join(each.home, 'runs')) ? setupFolders(each.home) : [], [])
    check('processes that are left', await leftBehind(each.home), [])
  }
  const landed = git(repo, 'log', '--format=%s', '--grep=^Signalbox-Task: ', 'main').split('\n').filter(Boolean)
  check('what has landed', [landed.length, new Set(landed).size], [tasks.length, tasks.length])
  const { counts } = await daemon.call('effect_list')
  check('effects that are stuck', [counts.dead, counts.unknown], [0, 0])
  check('the user’s own checkout', git(repo, 'status', '--porcelain'), '')
  return found
}

function setupFolders(home: string): string[] {
  return readdirSync(join(home, 'runs')).filter((name) => name.startsWith('setup'))
}

/** A checkout in which nothing was killed. */
function installed(repo: string): string {
  const path = `${repo}.whole`
  if (existsSync(path)) return path
  git(repo, 'clone', '--quiet', repo, path)
  execFileSync('sh', ['-c', INSTALL], { cwd: path, stdio: 'ignore' })
  return path
}

/** What is in them, by path and content. */
function packagesOf(checkout: string): string {
  const list = 'find node_modules -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum; find node_modules -type f | wc -l'
  return execFileSync('sh', ['-c', list], { cwd: checkout, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

async function setupsOf({ daemon }: Mortal): Promise<SetupReport['setups']> {
  const { events } = await daemon.call('event_list', { types: ['setup.ended'], limit: 200 })
  const count = (how: string) => events.filter(({ data }: { data: { how: string | null } }) => data.how === how).length
  return { made: count('made'), kept: count('kept') }
}

export function setupSummary(reports: SetupReport[]): string {
  const total = (of: (report: SetupReport) => number) => reports.reduce((sum, report) => sum + of(report), 0)
  const kills = VICTIMS.map((victim) => `${total((report) => report.kills[victim])} ${NAMES[victim]}`).join(', ')
  const setups = `${total((r) => r.setups.made)} installed, ${total((r) => r.setups.kept)} copied`
  return `${reports.length} seeds; killed ${kills}; ${total((r) => r.tasks)} tasks, ${setups}; wrong ${total((r) => r.wrong.length)}`
}
