import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createPackages } from '../../src/adapters/packages/index.ts'
import type { TestDaemon } from '../../src/testing/daemon.ts'
import { depend, INSTALL } from '../../src/testing/packages.ts'
import type { World } from '../ground.ts'
import { type Aim, median, type Row, row } from '../harness.ts'
import { git, timed } from './runs.ts'

const CHECKS = 'node test.js'
const FILE = 'x'.repeat(20_000)
const FILES_EACH = 50
const WITHIN_2_S: Aim = { text: '≤ 2 s', met: ({ measured }) => measured <= 2_000 }

type Times = Record<'worktree' | 'check' | 'given' | 'copy' | 'install' | 'copyAndCheck' | 'installAndCheck', number[]>

/** How soon a checkout has its packages. None of it depends on the database. */
export async function setupRows(world: World): Promise<Row[]> {
  const megabytes = world.options.quick ? 30 : 300
  const folder = mkdtempSync(join(tmpdir(), 'sbx-bench-setup-'))
  try {
    const repo = projectIn(folder, megabytes)
    const shop = await Shop.open(world, repo, folder)
    return rowsOf(megabytes, await measured(world, shop, folder))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measured(world: World, shop: Shop, folder: string): Promise<Times> {
  // Installs, and is what the others are copied from.
  const first = await shop.begin()
  const packages = join(await shop.place(first.task), 'node_modules')
  const bare = new Bare(shop.repo, folder)
  const kept = await keptIn(join(folder, 'kept'), packages)
  const times: Times = { worktree: [], check: [], given: [], copy: [], install: [], copyAndCheck: [], installAndCheck: [] }
  for (let round = 0; round <= world.options.rounds; round++) {
    const { task, ms } = await shop.begin()
    await shop.stocked()
    const check = await shop.land(task)
    await shop.stocked()
    // Memory that the machine has not used for a while is slow the first time, whoever comes first.
    await bare.timed((to) => copyOf(packages, to))
    const found: Record<keyof Times, number> = {
      worktree: ms,
      check,
      copy: await bare.timed((to) => copyOf(packages, to)),
      given: await bare.timed((to) => kept(to)),
      install: await bare.timed((to) => installIn(to)),
      copyAndCheck: await bare.timed((to) => {
        copyOf(packages, to)
        checkIn(to)
      }),
      installAndCheck: await bare.timed((to) => {
        installIn(to)
        checkIn(to)
      }),
    }
    await shop.collect(task)
    // The first of each finds nothing in the caches.
    if (round > 0) for (const name of Object.keys(times) as (keyof Times)[]) times[name].push(found[name])
  }
  // The one of the first worktree: neither a worktree nor a check after it has installed anything.
  if (shop.installs() !== 1) throw new Error(`${shop.installs()} installations, not one`)
  return times
}

function rowsOf(megabytes: number, times: Times): Row[] {
  const rowOf = (what: string, measured: keyof Times, limit: keyof Times, limitOf: string, aim?: Aim) =>
    row({
      family: 'setup',
      what,
      engine: 'sqlite',
      clients: undefined,
      unit: 'ms',
      measured: median(times[measured]),
      limit: median(times[limit]),
      limitOf,
      ...(aim && { aim }),
    })
  const size = `${megabytes} MB of packages`
  return [
    rowOf(`second worktree with ${size}, job submit to its setup is ready`, 'worktree', 'copy', 'a bare cp -a of the packages', WITHIN_2_S),
    rowOf(`second worktree with ${size}, job submit to its setup is ready`, 'worktree', 'install', 'a bare npm ci --offline', WITHIN_2_S),
    rowOf(`second check with ${size}, approval to merged`, 'check', 'copyAndCheck', 'a bare cp -a and the check'),
    rowOf(`second check with ${size}, approval to merged`, 'check', 'installAndCheck', 'a bare npm ci --offline and the check'),
    rowOf(`${size} given to a folder with no copy ready, by the adapter alone`, 'given', 'copy', 'a bare cp -a of the packages'),
  ]
}

/** The project at a real daemon, whose `npm` writes down that it was called. */
class Shop {
  readonly repo: string
  readonly #daemon: TestDaemon
  readonly #calls: string
  readonly #project: string
  #begun = 0

  private constructor(daemon: TestDaemon, repo: string, calls: string, project: string) {
    this.#daemon = daemon
    this.repo = repo
    this.#calls = calls
    this.#project = project
  }

  static async open(world: World, repo: string, folder: string): Promise<Shop> {
    const calls = join(folder, 'calls')
    const programs = join(folder, 'programs')
    mkdirSync(programs)
    const npm = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim()
    writeFileSync(join(programs, 'npm'), `#!/bin/sh\necho x >> '${calls}'\nexec '${npm}' "$@"\n`, { mode: 0o755 })
    const daemon = await world.daemon('sqlite', { PATH: `${programs}${delimiter}${process.env.PATH}` })
    const { project_id } = await daemon.call('project_create', { name: 'Setup' })
    await daemon.call('repo_add', { path: repo, project_id, setup: INSTALL, checks: CHECKS })
    return new Shop(daemon, repo, calls, project_id)
  }

  /** A task whose agent hands in a file of its own; how long it took until its worktree was ready. */
  async begin(): Promise<{ task: string; ms: number }> {
    const steps = [{ write: { path: `${++this.#begun}.txt`, text: 'x' } }, { commit: { message: 'x' } }, { review: { summary: 'Done.' } }]
    const description = `\`\`\`signalbox\n${JSON.stringify(steps)}\n\`\`\`\n`
    const { task_id: task } = await this.#daemon.call('task_create', { project_id: this.#project, title: 'Add a file', description })
    flush()
    const ms = await this.#until(task, 'setup.ended', () =>
      this.#daemon.call('job_submit', { task_id: task, action: 'start_agent', harness: 'scripted' }),
    )
    await this.#daemon.call('task_wait', { task_id: task, wait_for_status: ['REVIEW'], timeout_seconds: 60 })
    return { task, ms }
  }

  async place(task: string): Promise<string> {
    return (await this.#daemon.call('work_get', { task_id: task })).work.path
  }

  async land(task: string): Promise<number> {
    const landed = () => Number(git(this.repo, 'rev-list', '--count', '--grep=^Signalbox-Task: ', 'main'))
    const before = landed()
    flush()
    const ms = await this.#until(task, 'merge.landed', () => this.#daemon.call('merge_submit', { task_id: task }))
    // Without a commit there was nothing to check.
    if (landed() !== before + 1) throw new Error(`${task} has not landed`)
    return ms
  }

  /** The copy for the next checkout lies ready: it would be made beside whatever is measured next. */
  async stocked(): Promise<void> {
    for (const began = performance.now(); performance.now() - began < 120_000; await setTimeout(100)) {
      const { kept } = await this.#daemon.call('setup_kept', {})
      if (kept.some((one: { copy_ready: boolean }) => one.copy_ready)) return
    }
    throw new Error('no copy lies ready')
  }

  async collect(task: string): Promise<void> {
    await this.#until(task, 'work.removed', () => this.#daemon.call('work_collect', { task_id: task }))
  }

  installs(): number {
    return existsSync(this.#calls) ? readFileSync(this.#calls, 'utf8').length / 2 : 0
  }

  async #until(task_id: string, type: string, act: () => Promise<unknown>): Promise<number> {
    const { cursor } = await this.#daemon.call('task_list', { limit: 1 })
    const began = performance.now()
    const seen = this.#daemon.call('event_wait', { task_id, types: [type], cursor, timeout_seconds: 300 })
    await act()
    const { events } = await seen
    if (!events.length) throw new Error(`no ${type} of ${task_id}`)
    if (events[0].data.state === 'failed') throw new Error(String(events[0].data.reason))
    return performance.now() - began
  }
}

/** The same by hand, in checkouts that are made before the time counts. */
class Bare {
  readonly #repo: string
  readonly #folder: string
  #made = 0

  constructor(repo: string, folder: string) {
    this.#repo = repo
    this.#folder = folder
  }

  async timed(act: (checkout: string) => unknown): Promise<number> {
    const to = join(this.#folder, `bare-${++this.#made}`)
    git(this.#folder, 'clone', '--quiet', this.#repo, to)
    flush()
    try {
      return await timed(async () => act(to))
    } finally {
      rmSync(to, { recursive: true, force: true })
    }
  }
}

/** Else each pays for what was written before its turn. */
function flush(): void {
  execFileSync('sync')
}

function copyOf(packages: string, to: string): void {
  execFileSync('cp', ['-a', packages, to])
}

function installIn(checkout: string): void {
  execFileSync('sh', ['-c', INSTALL], { cwd: checkout, stdio: 'ignore' })
}

function checkIn(checkout: string): void {
  execFileSync('sh', ['-c', CHECKS], { cwd: checkout })
}

async function keptIn(folder: string, packages: string): Promise<(to: string) => Promise<unknown>> {
  const port = createPackages({
    folder,
    privateFolder: (path) => mkdirSync(path, { recursive: true, mode: 0o700 }),
    env: process.env,
  })
  const from = join(packages, '..')
  const key = (await port.keysOf('npm ci', from, [{ path: 'package-lock.json', id: '1' }], []))?.byFiles as string
  await port.keep(key, from, ['node_modules'])
  return async (to) => {
    if (!(await port.give(key, to))) throw new Error('nothing was given')
  }
}

/** As in a large project: 20 kB a file, fifty files to a package. */
function projectIn(folder: string, megabytes: number): string {
  const repo = join(folder, 'shop')
  mkdirSync(join(repo, 'vendor'), { recursive: true })
  const names = Array.from({ length: megabytes }, (_, i) => `package-${i}`)
  for (const name of names) {
    const top = join(folder, 'packed', name)
    mkdirSync(join(top, 'package'), { recursive: true })
    writeFileSync(join(top, 'package/package.json'), JSON.stringify({ name, version: '1.0.0', main: '0.js' }))
    for (let i = 0; i < FILES_EACH; i++) writeFileSync(join(top, `package/${i}.js`), `// ${name} ${i} ${FILE}\n`)
    execFileSync('tar', ['-czf', join(repo, 'vendor', `${name}.tgz`), '-C', top, 'package'])
  }
  rmSync(join(folder, 'packed'), { recursive: true })
  depend(repo, ...names)
  writeFileSync(join(repo, 'test.js'), "require('package-0')\n")
  writeFileSync(join(repo, '.gitignore'), 'node_modules\n')
  git(repo, 'init', '--quiet', '--initial-branch=main')
  git(repo, 'config', 'user.name', 'Bench')
  git(repo, 'config', 'user.email', 'bench@example.invalid')
  git(repo, 'add', '--all')
  git(repo, 'commit', '--quiet', '--message=begin')
  return repo
}
