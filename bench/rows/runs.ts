import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGit } from '../../src/adapters/git-cli/index.ts'
import { createRunner } from '../../src/adapters/runner/index.ts'
import { BIN, type TestDaemon } from '../../src/testing/daemon.ts'
import { residentMb } from '../child.ts'
import { inOrder, type World } from '../ground.ts'
import { type Aim, median, type Row, row } from '../harness.ts'
import type { EngineName } from '../options.ts'

const DIST = join(BIN, '../../dist')
const START: Aim = { text: '≤ 150 ms', met: ({ measured }) => measured <= 150 }
const WEIGHT: Aim = { text: '≤ 60 MB', met: ({ measured }) => measured <= 60 }
const atMost = (part: number): Aim => ({ text: `≤ ${part} ×`, met: ({ ratio }) => ratio !== undefined && ratio <= part })

/** What it takes until an agent is at work. Worktrees and runners have no database in them. */
export async function runRows(world: World): Promise<Row[]> {
  const firstCalls = await inOrder(world.options.engines, (engine) => firstCall(world, engine))
  return [...firstCalls, ...(await runner(world)), ...(await worktrees(world))]
}

/** From the call of job_submit until the note that is the first thing an agent does. The limit is the same agent, started by hand. */
async function firstCall(world: World, engine: EngineName): Promise<Row> {
  const daemon = await world.daemon(engine)
  const repo = repository(20)
  const { project_id } = await daemon.call('project_create', { name: 'Runs' })
  await daemon.call('repo_add', { path: repo, project_id })
  const newTask = async () => {
    const description = '```signalbox\n{"note":{"text":"here"}}\n```\n'
    return (await daemon.call('task_create', { project_id, title: 'Say hello', description })).task_id as string
  }
  const found = { ours: [] as number[], bare: [] as number[] }
  for (let round = 0; round <= world.options.rounds; round++) {
    const ours = await newTask()
    const bySignalbox = await until(daemon, ours, () =>
      daemon.call('job_submit', { task_id: ours, action: 'start_agent', harness: 'scripted' }),
    )
    const bare = await newTask()
    const { agent_id, token } = await daemon.call('agent_invite', { role: 'worker' })
    await daemon.call('task_assign', { task_id: bare, agent_id })
    const byHand = await until(daemon, bare, async () => void startByHand(daemon, repo, token, bare))
    // The first of each finds nothing in the caches.
    if (round > 0) found.ours.push(bySignalbox)
    if (round > 0) found.bare.push(byHand)
  }
  rmSync(repo, { recursive: true, force: true })
  return row({
    family: 'runs',
    what: "job submit to the agent's first tool call",
    engine,
    clients: undefined,
    unit: 'ms',
    measured: median(found.ours),
    limit: median(found.bare),
    limitOf: 'the same agent started by hand',
  })
}

async function until(daemon: TestDaemon, task_id: string, begin: () => Promise<unknown>): Promise<number> {
  const { cursor } = await daemon.call('task_list', { limit: 1 })
  const began = performance.now()
  const seen = daemon.call('event_wait', { task_id, types: ['task.noted'], cursor, timeout_seconds: 30 })
  await begin()
  const { events } = await seen
  if (!events.length) throw new Error('the agent of the bench has said nothing')
  return performance.now() - began
}

function startByHand(daemon: TestDaemon, cwd: string, token: string, task: string): void {
  const tokenFile = join(daemon.home, `token-${task}`)
  writeFileSync(tokenFile, token, { mode: 0o600 })
  const env = { ...process.env, SIGNALBOX_URL: `${daemon.url}/mcp`, SIGNALBOX_TOKEN_FILE: tokenFile, SIGNALBOX_TASK: task }
  spawn(process.execPath, [join(DIST, 'scripted-agent.js')], { cwd, env, stdio: 'ignore' })
}

async function runner({ options }: World): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sbx-bench-runs-'))
  const port = createRunner({
    folder,
    sockets: folder,
    entry: join(DIST, 'runner.js'),
    privateFolder: (path) => mkdirSync(path, { recursive: true, mode: 0o700 }),
    env: process.env,
  })
  const found = { start: [] as number[], bare: [] as number[], weight: [] as number[], bareWeight: [] as number[] }
  for (let round = 0; round <= options.rounds * 2; round++) {
    const run = `run_bench${round}`
    const began = performance.now()
    const { pid } = await port.start(run, {
      argv: ['sleep', '60'],
      cwd: folder,
      env: {},
      inherit: [],
      stdin: 'closed',
      wallClockMs: null,
      outputBytes: 1_000_000,
      graceMs: 100,
    })
    const start = performance.now() - began
    const bare = await bareNode()
    if (round > 0) {
      found.start.push(start)
      found.bare.push(bare.ms)
      found.weight.push(residentMb(pid))
      found.bareWeight.push(bare.mb)
    }
    await port.stop(run, 'stopped', 100)
  }
  rmSync(folder, { recursive: true, force: true })
  const about = { family: 'runs', engine: 'sqlite' as const, clients: undefined, limitOf: 'bare node' }
  return [
    row({
      ...about,
      what: 'runner, start to its record',
      unit: 'ms',
      measured: median(found.start),
      limit: median(found.bare),
      aim: START,
    }),
    row({ ...about, what: 'runner, RSS', unit: 'MB', measured: median(found.weight), limit: median(found.bareWeight), aim: WEIGHT }),
  ]
}

/** Says one word and waits. */
async function bareNode(): Promise<{ ms: number; mb: number }> {
  const began = performance.now()
  const child = spawn(process.execPath, ['-e', 'console.log("up"); setInterval(() => {}, 1000)'], { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(child.stdout, 'data')
  const ms = performance.now() - began
  const mb = residentMb(child.pid as number)
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
  return { ms, mb }
}

async function worktrees({ options }: World): Promise<Row[]> {
  const sizes = options.quick
    ? [{ files: 5_000, aim: atMost(0.8) }]
    : [
        { files: 5_000, aim: atMost(0.8) },
        { files: 50_000, aim: atMost(0.4) },
      ]
  return inOrder(sizes, async ({ files, aim }) => {
    const repo = repository(files)
    const folder = mkdtempSync(join(tmpdir(), 'sbx-bench-places-'))
    const port = createGit({ worktrees: join(folder, 'worktrees'), own: join(folder, 'git') })
    const found = { ours: [] as number[], plain: [] as number[] }
    for (let round = 0; round <= Math.max(3, options.rounds - 2); round++) {
      const path = port.placeFor({ repo_handle: 'bench', name: `task-0000000${round}-x` })
      const ours = await timed(() => port.add({ repo, path, branch: `signalbox/task-0000000${round}-x`, base: 'main', strategy: 'local' }))
      const plainPath = join(folder, `plain-${round}`)
      const plain = await timed(async () =>
        git(repo, 'worktree', 'add', '--quiet', '--no-track', '-b', `plain-${round}`, plainPath, 'main'),
      )
      for (const place of [path, plainPath]) rmSync(place, { recursive: true, force: true })
      if (round > 0) found.ours.push(ours)
      if (round > 0) found.plain.push(plain)
    }
    for (const place of [repo, folder]) rmSync(place, { recursive: true, force: true })
    return row({
      family: 'runs',
      what: `worktree of ${files.toLocaleString('en')} files`,
      engine: 'sqlite',
      clients: undefined,
      unit: 'ms',
      measured: median(found.ours),
      limit: median(found.plain),
      limitOf: 'plain git worktree add',
      aim,
    })
  })
}

export async function timed(act: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await act()
  return performance.now() - began
}

/** Files of 1 to 8 KB, a hundred to a folder. */
export function repository(files: number): string {
  const path = mkdtempSync(join(tmpdir(), 'sbx-bench-repo-'))
  git(path, 'init', '--quiet', '--initial-branch=main')
  for (let i = 0; i < files; i++) {
    const folder = join(path, `folder-${Math.floor(i / 100)}`)
    if (i % 100 === 0) mkdirSync(folder)
    writeFileSync(join(folder, `file-${i}.txt`), `${i} `.repeat(200 + (i % 7) * 200))
  }
  git(path, 'add', '--all')
  git(path, '-c', 'user.name=Bench', '-c', 'user.email=bench@example.invalid', 'commit', '--quiet', '--message=begin')
  return path
}

export function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}
