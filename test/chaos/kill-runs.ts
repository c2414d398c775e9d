import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kill, leftBehind, survivors } from '../../src/testing/survivors.ts'
import { findings } from './findings.ts'
import { Mortal } from './mortal.ts'
import { Random } from './random.ts'
import { pause } from './stop.ts'

export interface RunsReport {
  seed: number
  kills: Record<Victim, number>
  lives: number
  tasks: number
  /** What is not as it has to be; nothing, when all is well. */
  wrong: string[]
}

export type Victim = 'daemon' | 'runner' | 'agent'
export const VICTIMS: Victim[] = ['daemon', 'runner', 'agent']

const NOTES = ['first', 'second']
const CONVERGES_WITHIN_MS = 150_000

/** Each step of it can be done again: whoever is killed begins anew, and must leave everything once. */
const SCRIPT = [
  { note: { text: 'first' } },
  { write: { path: 'a.txt', text: 'a\n' } },
  { commit: { message: 'one' } },
  { run: { argv: ['git', 'status', '--short'] } },
  { spawn: { argv: ['sleep', '600'] } },
  { write: { path: 'b.txt', text: 'b\n' } },
  { commit: { message: 'two' } },
  { note: { text: 'second' } },
  { sleep: { ms: 200 } },
  { review: { summary: 'Both files are there.' } },
]

/** Agents at work, and somebody who kills the daemon, a runner or an agent at any moment between the start and the report. */
export async function killRuns(seed: number, strikes: number, agents: number): Promise<RunsReport> {
  const random = new Random(seed)
  const repo = repository()
  const mortal = await Mortal.start()
  const kills: RunsReport['kills'] = { daemon: 0, runner: 0, agent: 0 }
  const jobs: string[] = []
  const tasks: string[] = []
  try {
    const { daemon } = mortal
    const settings = {
      'runs.default_harness': 'scripted',
      'runs.max_lives': 100,
      'runs.back_off_seconds': 0.05,
      'runs.linger_seconds': 5,
    }
    for (const [key, value] of Object.entries(settings)) await daemon.call('setting_update', { key, value })
    const { project_id } = await daemon.call('project_create', { name: 'Chaos' })
    await daemon.call('repo_add', { path: repo, project_id })
    const description = `\`\`\`signalbox\n${JSON.stringify(SCRIPT)}\n\`\`\`\n`
    for (let i = 0; i < agents; i++) tasks.push((await daemon.call('task_create', { project_id, title: `Task ${i}`, description })).task_id)
    for (const task_id of tasks) jobs.push((await daemon.call('job_submit', { task_id, action: 'start_agent' })).job_id)
    for (let i = 0; i < strikes; i++) {
      await pause(random.below(700))
      const victim = random.pick(VICTIMS)
      kills[victim] += await strike(mortal, victim, random)
    }
    const wrong = [...(await converged(mortal, jobs)), ...(await everythingOnce(mortal, repo, tasks))]
    const lives = await sum(jobs, async (job_id) => (await daemon.call('job_get', { job_id })).job.lives)
    return { seed, kills, lives, tasks: agents, wrong }
  } finally {
    await mortal.remove()
    rmSync(repo, { recursive: true, force: true, maxRetries: 10 })
  }
}

export async function strike(mortal: Mortal, victim: Victim, random: Random): Promise<number> {
  if (victim === 'daemon') {
    await mortal.end('SIGKILL')
    if (random.chance(0.2)) await mortal.killWhileStarting(random.below(600))
    await mortal.start()
    return 1
  }
  // The program itself, not the shell around it: that one's end looks like the program's own.
  const program = victim === 'runner' ? 'runner.js' : 'scripted-agent.js'
  const candidates = survivors(mortal.daemon.home).filter(({ argv }) => argv.startsWith(process.execPath) && argv.includes(program))
  if (!candidates.length) return 0
  kill(random.pick(candidates).pid)
  return 1
}

async function converged({ daemon }: Mortal, jobs: string[]): Promise<string[]> {
  const deadline = performance.now() + CONVERGES_WITHIN_MS
  const wrong: string[] = []
  for (const job_id of jobs) {
    const left = () => Math.max(1, (deadline - performance.now()) / 1_000)
    let answer = await daemon.call('job_wait', { job_id, timeout_seconds: left() })
    while (answer.resume && left() > 1) answer = await daemon.call('job_wait', { job_id, timeout_seconds: left(), cursor: answer.cursor })
    const { handle, state, reason } = answer.job
    if (state !== 'succeeded') wrong.push(`${handle} is ${state}: ${reason}`)
  }
  return wrong
}

async function everythingOnce({ daemon }: Mortal, repo: string, tasks: string[]): Promise<string[]> {
  const { found, check } = findings()
  for (const task_id of tasks) {
    const { task } = await daemon.call('task_get', { task_id })
    check(`${task.handle} status`, task.status, 'REVIEW')
    check(
      `${task.handle} notes`,
      task.notes.map((note: { body: string }) => note.body),
      NOTES,
    )
    const { reviews } = await daemon.call('review_list', { task_id })
    check(`${task.handle} reviews`, reviews.length, 1)
    const branch = branches(repo).filter((name) => name.endsWith(`-${slugOf(task.title)}`))
    check(`${task.handle} branches`, branch.length, 1)
    // One that was killed between a file and its commit commits it in its next life, under the name of that one's first commit.
    const messages = git(repo, 'log', '--reverse', '--format=%s', `main..${branch[0]}`).split('\n')
    check(`${task.handle} commits`, [messages.length, messages[0]], [2, 'one'])
    check(`${task.handle} files`, git(repo, 'ls-tree', '--name-only', String(branch[0])).split('\n'), ['a.txt', 'b.txt'])
    const { runs } = await daemon.call('run_list', { task_id, limit: 200 })
    check(`${task.handle} runs that live`, runs.filter((run: { state: string }) => run.state !== 'ended').length, 0)
  }
  const { counts } = await daemon.call('effect_list')
  check('effects that are stuck', [counts.dead, counts.unknown], [0, 0])
  const { tokens } = await daemon.call('token_list', { limit: 200 })
  check(
    'tokens of agents that live',
    tokens.filter((token: { kind: string; status: string }) => token.kind === 'agent' && token.status === 'active').length,
    0,
  )
  check('processes that are left', await leftBehind(daemon.home), [])
  check('the user’s own checkout', git(repo, 'status', '--porcelain'), '')
  return found
}

const slugOf = (title: string) => title.toLowerCase().replaceAll(' ', '-')

function branches(repo: string): string[] {
  return git(repo, 'for-each-ref', '--format=%(refname:short)', 'refs/heads/signalbox').split('\n').filter(Boolean)
}

export function repository(): string {
  const path = mkdtempSync(join(tmpdir(), 'signalbox-repo-'))
  git(path, 'init', '--quiet', '--initial-branch=main')
  git(path, 'config', 'user.name', 'Bea')
  git(path, 'config', 'user.email', 'bea@example.invalid')
  git(path, 'commit', '--quiet', '--allow-empty', '--message=begin')
  return path
}

export function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
}

async function sum(items: string[], of: (item: string) => Promise<number>): Promise<number> {
  let total = 0
  for (const item of items) total += await of(item)
  return total
}

export function runsSummary(reports: RunsReport[]): string {
  const total = (of: (report: RunsReport) => number) => reports.reduce((sum, report) => sum + of(report), 0)
  const kills = VICTIMS.map((victim) => `${total((report) => report.kills[victim])} ${victim}s`).join(', ')
  return `${reports.length} seeds; killed ${kills}; ${total((r) => r.tasks)} tasks in ${total((r) => r.lives)} lives; wrong ${total((r) => r.wrong.length)}`
}
