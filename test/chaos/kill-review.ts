import { rmSync } from 'node:fs'
import { leftBehind } from '../../src/testing/survivors.ts'
import { findings } from './findings.ts'
import { git, repository, strike, VICTIMS, type Victim } from './kill-runs.ts'
import { Mortal } from './mortal.ts'
import { Random } from './random.ts'
import { pause } from './stop.ts'

export interface ReviewReport {
  seed: number
  kills: Record<Victim, number>
  tasks: number
  /** Of workers and of reviewers. */
  lives: number
  /** What is not as it has to be; nothing, when all is well. */
  wrong: string[]
}

const CONVERGES_WITHIN_MS = 180_000
const FEEDBACK = { feedback: 'It says nothing.', feedback_type: 'needs_work', actionable_items: ['Say hello'] }
/** Red while the feedback has not been heeded: what lands has been mended. */
const CHECKS = 'sleep 0.1; ! grep -L Hello greeting-*.txt | grep -q .'

/** Each life begins at the top: what it writes depends on whether the feedback is in its worktree, not on which life it is. */
const works = (file: string) => [
  { run: { argv: ['sh', '-c', `if test -f .signalbox/feedback/1.md; then echo Hello; else echo; fi > ${file}`] } },
  { commit: { message: 'Greet' } },
  { review: { summary: 'The greeting is there.' } },
]
const SENDS_BACK = [{ call: { tool: 'review_feedback', arguments: FEEDBACK } }]
const approves = (file: string) => [
  { run: { argv: ['grep', '-q', 'Hello', file] } },
  { call: { tool: 'review_decide', arguments: { decision: 'approve' } } },
]

const block = (name: string, steps: object[]) => `\`\`\`${name}\n${JSON.stringify(steps)}\n\`\`\`\n`
const fileOf = (n: number) => `greeting-${n}.txt`

/** Work, review, feedback, work, review, merge; and somebody who kills the daemon, a runner or an agent at any moment of it. */
export async function killReview(seed: number, { strikes, tasks }: { strikes: number; tasks: number }): Promise<ReviewReport> {
  const random = new Random(seed)
  const repo = repository()
  const mortal = await Mortal.start()
  const kills: ReviewReport['kills'] = { daemon: 0, runner: 0, agent: 0 }
  const ids: string[] = []
  try {
    const { daemon } = mortal
    const settings = {
      'runs.default_harness': 'scripted',
      'runs.max_lives': 100,
      'runs.back_off_seconds': 0.05,
      'runs.linger_seconds': 5,
      'mail.notice_seconds': 0,
      'review.harness': 'scripted',
    }
    for (const [key, value] of Object.entries(settings)) await daemon.call('setting_update', { key, value })
    const { project_id } = await daemon.call('project_create', { name: 'Chaos' })
    await daemon.call('repo_add', { path: repo, project_id, checks: CHECKS })
    for (let n = 0; n < tasks; n++) {
      const scripts = [
        block('signalbox', works(fileOf(n))),
        block('signalbox-review', SENDS_BACK),
        block('signalbox-review', approves(fileOf(n))),
      ]
      const { task_id } = await daemon.call('task_create', { project_id, title: `Greet ${n}`, description: scripts.join('\n') })
      ids.push(task_id)
      await daemon.call('job_submit', { task_id, action: 'start_agent' })
    }
    for (let i = 0; i < strikes; i++) {
      await pause(random.below(1_500))
      const victim = random.pick(VICTIMS)
      kills[victim] += await strike(mortal, victim, random)
    }
    const wrong = await converged(mortal, project_id)
    const { lives, found } = await everythingOnce(mortal, repo, ids)
    return { seed, kills, tasks, lives, wrong: [...wrong, ...found] }
  } finally {
    await mortal.remove()
    rmSync(repo, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** All is merged, and everybody has gone home. */
async function converged({ daemon }: Mortal, project_id: string): Promise<string[]> {
  const deadline = performance.now() + CONVERGES_WITHIN_MS
  for (;;) {
    const { tasks, cursor } = await daemon.call('task_list', { project_id })
    const { jobs } = await daemon.call('job_list', { states: ['queued', 'running'], limit: 100 })
    const open = tasks.filter(({ status }: { status: string }) => status !== 'DONE')
    const { works } = await daemon.call('work_list', { project_id })
    const listed = tasks.map(({ id }: { id: string }) => id)
    const reading = works.filter((work: Record<string, string>) => work.state === 'made' && !listed.includes(work.task_id))
    if (!open.length && !jobs.length && !reading.length) return []
    const left = (deadline - performance.now()) / 1_000
    const seen = open.map((task: Record<string, unknown>) => [task.handle, task.status, task.attention, task.attention_detail])
    if (left < 1)
      return [`${jobs.length} jobs are left, ${reading.length} worktrees of reviewers, and these tasks: ${JSON.stringify(seen)}`]
    await daemon.call('event_wait', { cursor, types: ['task.*', 'job.ended', 'work.removed'], timeout_seconds: Math.min(left, 10) })
  }
}

async function everythingOnce({ daemon }: Mortal, repo: string, tasks: string[]) {
  const { found, check } = findings()
  let lives = 0
  for (const task_id of tasks) {
    const { handle } = (await daemon.call('task_get', { task_id })).task
    const { reviews } = await daemon.call('review_list', { task_id })
    const rounds = reviews.map(({ decision, outcome, feedbacks }: Record<string, unknown[]>) => [decision, outcome, feedbacks?.length])
    check(`${handle}: rounds`, rounds, [
      ['request_changes', null, 1],
      ['approve', 'merged', 0],
    ])
    const { branch } = (await daemon.call('work_get', { task_id })).work
    check(`${handle}: commits`, git(repo, 'log', '--reverse', '--format=%s', `main..${branch}`).split('\n'), [
      'Greet',
      `Feedback on ${handle}, round 1`,
      'Greet',
    ])
    check(`${handle}: pull request`, (await daemon.call('pr_get', { task_id })).pr.state, 'MERGED')
    for (const hidden of [task_id, ...reviews.map(({ reviewer_task_id }: Record<string, string>) => reviewer_task_id)]) {
      const { runs } = await daemon.call('run_list', { task_id: hidden, limit: 200 })
      lives += runs.length
      check(`${handle}: agents of ${hidden}`, new Set(runs.map((run: { agent_id: string }) => run.agent_id)).size, 1)
    }
  }
  const landed = git(repo, 'log', '--format=%(trailers:key=Signalbox-Task,valueonly,separator=%x2c)', 'main').split('\n').filter(Boolean)
  check('what landed', landed.sort(), [...tasks].sort())
  const files = tasks.map((_, n) => fileOf(n))
  check('files that landed', git(repo, 'ls-tree', '-r', '--name-only', 'main').split('\n'), files)
  for (const file of files) check(file, git(repo, 'show', `main:${file}`), 'Hello')
  check('the branch and its line', git(repo, 'rev-parse', 'main'), git(repo, 'rev-parse', 'refs/signalbox/line/main'))
  check('the user’s own checkout', git(repo, 'status', '--porcelain'), '')
  const { counts } = await daemon.call('effect_list')
  check('effects that are stuck', [counts.dead, counts.unknown], [0, 0])
  check('processes that are left', await leftBehind(daemon.home), [])
  check('the audit', (await daemon.call('audit_verify', {})).ok, true)
  return { lives, found }
}

export function reviewSummary(reports: ReviewReport[]): string {
  const total = (of: (report: ReviewReport) => number) => reports.reduce((sum, report) => sum + of(report), 0)
  const kills = VICTIMS.map((victim) => `${total((report) => report.kills[victim])} ${victim}s`).join(', ')
  return `${reports.length} seeds; killed ${kills}; ${total((r) => r.tasks)} tasks in ${total((r) => r.lives)} lives of workers and reviewers; wrong ${total((r) => r.wrong.length)}`
}
