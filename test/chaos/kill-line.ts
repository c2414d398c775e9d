import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { leftBehind } from '../../src/testing/survivors.ts'
import { findings } from './findings.ts'
import { git, repository, strike } from './kill-runs.ts'
import { Mortal } from './mortal.ts'
import { Random } from './random.ts'
import { pause } from './stop.ts'

export interface LineReport {
  seed: number
  kills: Record<Blow, number>
  landed: number
  back: number
  /** What is not as it has to be; nothing, when all is well. */
  wrong: string[]
}

/** `move`: the user commits on the branch. `touch`: they change a file and do not commit it. */
export type Blow = 'daemon' | 'runner' | 'move' | 'touch'
export const BLOWS: Blow[] = ['daemon', 'daemon', 'runner', 'move', 'touch']

const CONVERGES_WITHIN_MS = 120_000
/** Of these two pairs either one can land, not both: by the checks, and by git. */
const RED_TOGETHER = ['left.txt', 'right.txt']
const SAME_FILE = 'same.txt'
const CHECKS = `sleep 0.2; test ! -e ${RED_TOGETHER[0]} || test ! -e ${RED_TOGETHER[1]}`

/** Approved work in a line, and somebody who kills the daemon or the checks, and commits on the branch meanwhile. */
export async function killLine(seed: number, { strikes, tasks }: { strikes: number; tasks: number }): Promise<LineReport> {
  const random = new Random(seed)
  const repo = repository()
  writeFileSync(join(repo, 'mine.txt'), 'begin\n')
  git(repo, 'add', '-A')
  git(repo, 'commit', '--quiet', '--message=mine')
  const mortal = await Mortal.start()
  const kills: LineReport['kills'] = { daemon: 0, runner: 0, move: 0, touch: 0 }
  try {
    const { daemon } = mortal
    const { project_id } = await daemon.call('project_create', { name: 'Chaos' })
    const { repo_id } = await daemon.call('repo_add', { path: repo, project_id, checks: CHECKS })
    const ids = await handedIn(mortal, project_id, tasks)
    const anyOrder = ids.map((id) => ({ id, at: random.next() })).sort((a, b) => a.at - b.at)
    for (const { id: task_id } of anyOrder) await daemon.call('merge_submit', { task_id })
    for (let i = 0; i < strikes; i++) {
      await pause(random.below(900))
      const blow = random.pick(BLOWS)
      if (blow === 'daemon' || blow === 'runner') kills[blow] += await strike(mortal, blow, random)
      else kills[blow] += disturb(repo, blow, i)
    }
    const wrong = await converged(mortal, repo_id)
    git(repo, 'checkout', '--quiet', '--', '.')
    await daemon.call('repo_sync', { repo_id })
    const { landed, back, found } = await everythingOnce(mortal, repo, ids, kills.move)
    return { seed, kills, landed, back, wrong: [...wrong, ...found] }
  } finally {
    await mortal.remove()
    rmSync(repo, { recursive: true, force: true, maxRetries: 10 })
  }
}

const fileOf = (n: number) => [...RED_TOGETHER, SAME_FILE, SAME_FILE][n] ?? `file-${n}.txt`

async function handedIn({ daemon }: Mortal, project_id: string, tasks: number): Promise<string[]> {
  const ids: string[] = []
  const jobs: string[] = []
  for (let n = 0; n < tasks; n++) {
    const steps = [
      { write: { path: fileOf(n), text: `${n}\n` } },
      { commit: { message: `work ${n}` } },
      { review: { summary: `File ${n} is there.` } },
    ]
    const description = `\`\`\`signalbox\n${JSON.stringify(steps)}\n\`\`\`\n`
    const priority = ['low', 'medium', 'high'][n % 3]
    const { task_id } = await daemon.call('task_create', { project_id, title: `Task ${n}`, description, priority })
    ids.push(task_id)
    jobs.push((await daemon.call('job_submit', { task_id, action: 'start_agent', harness: 'scripted' })).job_id)
  }
  for (const job_id of jobs) await daemon.call('job_wait', { job_id, timeout_seconds: 60 })
  return ids
}

/** Never what a git at work there would find half done: it is the user who waits for a lock. */
function disturb(repo: string, how: 'move' | 'touch', n: number): number {
  try {
    if (how === 'move') {
      git(repo, 'commit', '--quiet', '--allow-empty', `--message=user ${n}`)
      return 1
    }
    writeFileSync(join(repo, 'mine.txt'), `not committed ${n}\n`)
    return 1
  } catch {
    return 0
  }
}

async function converged({ daemon }: Mortal, repo_id: string): Promise<string[]> {
  const deadline = performance.now() + CONVERGES_WITHIN_MS
  for (;;) {
    const { lines, cursor } = await daemon.call('merge_status', { repo_id })
    const [line] = lines
    // Those who were sent work back to are woken, and go home again.
    const { jobs } = await daemon.call('job_list', { states: ['queued', 'running'], limit: 100 })
    if (line && !line.waiting.length && !line.held && !jobs.length) return []
    const left = (deadline - performance.now()) / 1_000
    if (left < 1) return [`the line is held (${line?.held}) with ${JSON.stringify(line?.waiting)} and ${jobs.length} jobs`]
    await daemon.call('event_wait', { cursor, types: ['merge.*', 'line.*', 'job.ended'], timeout_seconds: Math.min(left, 10) })
  }
}

async function everythingOnce({ daemon }: Mortal, repo: string, tasks: string[], moves: number) {
  const { found, check } = findings()
  const done: string[] = []
  const back: string[] = []
  for (const [n, task_id] of tasks.entries()) {
    const { task } = await daemon.call('task_get', { task_id })
    if (task.status === 'DONE') done.push(task_id)
    else back.push(fileOf(n))
    const { reviews } = await daemon.call('review_list', { task_id })
    const ends = reviews.filter(({ outcome }: { outcome: string | null }) => outcome !== null).length
    check(`${task.handle} decisions that came to an end`, ends, 1)
  }
  check('what went back', [back.length, back.includes(SAME_FILE), RED_TOGETHER.some((file) => back.includes(file))], [2, true, true])
  const landed = git(repo, 'log', '--format=%(trailers:key=Signalbox-Task,valueonly,separator=%x2c)', 'main').split('\n').filter(Boolean)
  check('what landed', landed.sort(), [...done].sort())
  for (const commit of git(repo, 'rev-list', 'refs/signalbox/line/main').split('\n')) {
    const files = git(repo, 'ls-tree', '--name-only', commit).split('\n')
    if (RED_TOGETHER.every((file) => files.includes(file))) found.push(`${commit} on the line is red`)
  }
  check('the branch and its line', git(repo, 'rev-parse', 'main'), git(repo, 'rev-parse', 'refs/signalbox/line/main'))
  check('commits of the user', git(repo, 'log', '--format=%s', '--grep=^user ', 'main').split('\n').filter(Boolean).length, moves)
  check('the user’s own checkout', git(repo, 'status', '--porcelain'), '')
  const { counts } = await daemon.call('effect_list')
  check('effects that are stuck', [counts.dead, counts.unknown], [0, 0])
  // A letter about what went back may have woken its worker just now, which goes home again.
  check('processes that are left', await leftBehind(daemon.home), [])
  check('the audit', (await daemon.call('audit_verify', {})).ok, true)
  return { landed: landed.length, back: back.length, found }
}

export function lineSummary(reports: LineReport[]): string {
  const total = (of: (report: LineReport) => number) => reports.reduce((sum, report) => sum + of(report), 0)
  const kills = [...new Set(BLOWS)].map((blow) => `${total((report) => report.kills[blow])} ${blow}s`).join(', ')
  return `${reports.length} seeds; ${kills}; ${total((r) => r.landed)} landed, ${total((r) => r.back)} went back; wrong ${total((r) => r.wrong.length)}`
}
