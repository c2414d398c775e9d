import { rmSync } from 'node:fs'
import { leftBehind } from '../../src/testing/survivors.ts'
import { type Check, findings } from './findings.ts'
import { git, repository, strike, VICTIMS, type Victim } from './kill-runs.ts'
import { Mortal } from './mortal.ts'
import { Random } from './random.ts'
import { pause } from './stop.ts'

export interface EpicReport {
  seed: number
  kills: Record<Victim, number>
  lives: number
  letters: number
  /** What is not as it has to be; nothing, when all is well. */
  wrong: string[]
}

const CONVERGES_WITHIN_MS = Number(process.env.SIGNALBOX_CONVERGE_MS ?? 240_000)

const readLetters = [
  { call: { tool: 'mail_inbox', arguments: { limit: 100 }, save: 'inbox' } },
  { each: { of: '{{inbox.letters}}', as: 'letter', steps: [{ call: { tool: 'mail_read', arguments: { mail_id: '{{letter.id}}' } } }] } },
]

/** Approves whatever was handed in; what was decided by an earlier life is refused, and that is fine. */
const LEADS = [
  ...readLetters,
  { call: { tool: 'review_queue', save: 'waiting' } },
  {
    each: {
      of: '{{waiting.queue}}',
      as: 'work',
      steps: [
        {
          call: {
            tool: 'review_decide',
            // The round in the words makes the next one another call.
            arguments: { task_id: '{{work.task_id}}', decision: 'approve', feedback: '{{work.review_id}}' },
            expect: 'any',
          },
        },
      ],
    },
  },
  { call: { tool: 'epic_finish', arguments: { description: 'As of {{waiting.cursor}}.' }, expect: 'any' } },
]

const works = (n: number) => [
  { note: { text: 'begun' } },
  { write: { path: `part-${n}.txt`, text: `${n}\n` } },
  { commit: { message: `part ${n}` } },
  {
    call: {
      tool: 'mail_send',
      arguments: { to_role: 'supervisor', subject: '{{task.handle}}', body: 'I have begun with {{task.handle}}.' },
    },
  },
  { sleep: { ms: 200 } },
  ...readLetters,
  { review: { summary: `Part ${n} is there.` } },
]

const scripted = (steps: object[]) => `\`\`\`signalbox\n${JSON.stringify(steps)}\n\`\`\`\n`

/** An epic that works itself off, and somebody who kills the daemon, a runner or an agent, whoever that is. */
export async function killEpic(
  seed: number,
  { strikes, tasks, workers }: { strikes: number; tasks: number; workers: number },
): Promise<EpicReport> {
  const random = new Random(seed)
  const repo = repository()
  const mortal = await Mortal.start()
  const kills: EpicReport['kills'] = { daemon: 0, runner: 0, agent: 0 }
  try {
    const { daemon } = mortal
    const settings = {
      'runs.default_harness': 'scripted',
      'runs.max_lives': 100,
      'runs.back_off_seconds': 0.05,
      'runs.linger_seconds': 5,
      'mail.notice_seconds': 0,
      'mail.per_minute': 100_000,
      'mail.burst': 10_000,
    }
    for (const [key, value] of Object.entries(settings)) await daemon.call('setting_update', { key, value })
    const { project_id } = await daemon.call('project_create', { name: 'Chaos' })
    await daemon.call('repo_add', { path: repo, project_id })
    const planned = { title: 'All of it', description: scripted(LEADS), max_workers: workers, start: false }
    const { epic_id } = await daemon.call('epic_create', planned)
    for (let n = 1; n <= tasks; n++) await daemon.call('task_create', { epic_id, title: `Part ${n}`, description: scripted(works(n)) })
    await daemon.call('epic_update', { epic_id, state: 'IN_PROGRESS' })
    for (let i = 0; i < strikes; i++) {
      await pause(random.below(2_000))
      const victim = random.pick(VICTIMS)
      kills[victim] += await strike(mortal, victim, random)
    }
    const wrong = await finished(mortal, epic_id)
    if (wrong.length) return { seed, kills, lives: 0, letters: 0, wrong }
    const { lives, letters, found } = await everythingOnce(mortal, repo, epic_id, { tasks, workers })
    return { seed, kills, lives, letters, wrong: found }
  } finally {
    await mortal.remove()
    rmSync(repo, { recursive: true, force: true })
  }
}

/** Waits for the supervisor to hand the epic in, and for everybody to go home. */
async function finished({ daemon }: Mortal, epic_id: string): Promise<string[]> {
  const deadline = performance.now() + CONVERGES_WITHIN_MS
  for (;;) {
    const { epic, tasks, cursor } = await daemon.call('epic_get', { epic_id })
    const { jobs } = await daemon.call('job_list', { states: ['queued', 'running'], limit: 100 })
    if (epic.state === 'REVIEW' && !jobs.length) return []
    const left = (deadline - performance.now()) / 1_000
    const open = tasks.filter(({ status }: { status: string }) => status !== 'DONE')
    if (left < 1) return stuck(daemon, epic.state, open)
    await daemon.call('event_wait', { cursor, types: ['epic.moved', 'job.ended'], timeout_seconds: Math.min(left, 10) })
  }
}

/** Where it stands: the tasks, their newest jobs and runs, and what is still to be done. */
async function stuck(daemon: Mortal['daemon'], state: string, open: Record<string, unknown>[]): Promise<string[]> {
  const { jobs } = await daemon.call('job_list', { limit: 100 })
  const { effects } = await daemon.call('effect_list', {})
  const of = async ({ id, handle, status, attention, attention_detail }: Record<string, unknown>) => {
    const { runs } = await daemon.call('run_list', { task_id: id, limit: 3 })
    return { handle, status, attention, attention_detail, runs }
  }
  const tasks = await Promise.all(open.map(of))
  return [`the epic is ${state}`, ...[...tasks, ...jobs.slice(0, 20), ...effects].map((one) => JSON.stringify(one))]
}

async function everythingOnce({ daemon }: Mortal, repo: string, epic_id: string, wanted: { tasks: number; workers: number }) {
  const { found, check } = findings()
  const { epic, tasks } = await daemon.call('epic_get', { epic_id })
  check('its progress', epic.progress, { total: wanted.tasks, backlog: 0, in_progress: 0, review: 0, done: wanted.tasks })
  const merged = git(repo, 'log', '--format=%(trailers:key=Signalbox-Task,valueonly,separator=%x2c)', `main..${epic.branch}`).split('\n')
  check('what was merged', merged.sort(), tasks.map(({ id }: { id: string }) => id).sort())
  const parts = Array.from({ length: wanted.tasks }, (_, n) => `part-${n + 1}.txt`)
  check('files of the epic', git(repo, 'ls-tree', '--name-only', epic.branch).split('\n').sort(), parts.sort())
  check('the user’s own checkout', [git(repo, 'status', '--porcelain'), git(repo, 'rev-list', '--count', 'main')], ['', '1'])
  const lives: { from: string; to: string }[] = []
  for (const { id: task_id, handle } of tasks) {
    const { runs } = await daemon.call('run_list', { task_id, limit: 200 })
    lives.push(...runs.map((run: Record<string, string>) => ({ from: run.created_at, to: run.ended_at })))
    check(`${handle}: agents`, new Set(runs.map((run: { agent_id: string }) => run.agent_id)).size, 1)
    const { task } = await daemon.call('task_get', { task_id })
    check(
      `${handle}: notes`,
      task.notes.map((note: { body: string }) => note.body),
      ['begun'],
    )
    const { reviews } = await daemon.call('review_list', { task_id })
    check(
      `${handle}: rounds`,
      reviews.map(({ outcome }: { outcome: string }) => outcome),
      ['merged'],
    )
    check(`${handle}: pull request`, (await daemon.call('pr_get', { task_id })).pr.state, 'MERGED')
  }
  const most = Math.max(...lives.map(({ from }) => lives.filter((other) => other.from <= from && from < other.to).length))
  if (most > wanted.workers) found.push(`${most} workers at a time, not ${wanted.workers}`)
  const letters = await lettersOnce(daemon, epic.supervisor_id, wanted.tasks, check)
  await decisionsComplete(daemon, epic.supervisor_id, tasks, check)
  const { counts } = await daemon.call('effect_list')
  check('effects that are stuck', [counts.dead, counts.unknown], [0, 0])
  check('processes that are left', await leftBehind(daemon.home), [])
  check('the audit', (await daemon.call('audit_verify', {})).ok, true)
  return { lives: lives.length, letters, found }
}

interface Entry {
  kind: string
  decision: string
  context: { task_id?: string } | null
}

/** Every call has its invocation and its end, and whatever was done has a call. */
async function decisionsComplete(daemon: Mortal['daemon'], supervisor: string, tasks: { id: string; handle: string }[], check: Check) {
  const log = async (agent: string) => {
    const all: Entry[] = []
    for (let before: string | undefined | null; before !== null; ) {
      const page = await daemon.call('decision_list', { principal: agent, limit: 200, ...(before ? { before } : {}) })
      all.push(...page.decisions)
      before = page.next
    }
    const of = (kind: string) => all.filter((entry) => entry.kind === kind)
    check(`${agent}: calls without an end`, of('invocation').length - of('result').length - of('error').length, 0)
    return { invoked: of('invocation'), done: new Set(of('result').map(({ decision }) => decision)) }
  }
  for (const { id: task_id, handle } of tasks) {
    const [run] = (await daemon.call('run_list', { task_id, limit: 1 })).runs
    const { done } = await log(run.agent_id)
    for (const tool of ['task_note', 'mail_send', 'review_request'])
      check(`${handle}: ${tool} in the decision log`, done.has(`Tool result: ${tool}`), true)
  }
  const { invoked, done } = await log(supervisor)
  const decided = invoked.filter(({ decision }) => decision === 'Invoked tool: review_decide').map(({ context }) => context?.task_id)
  check('tasks that were decided, in the decision log', new Set(decided).size, tasks.length)
  check('epic_finish in the decision log', done.has('Tool result: epic_finish'), true)
}

/** Every one that was written is there once; its reader has read it once. */
async function lettersOnce(daemon: Mortal['daemon'], supervisor: string, tasks: number, check: Check): Promise<number> {
  const all = { include_read: true, limit: 200 }
  const { letters } = (await daemon.post('mail_inbox', all, daemon.token, { headers: { 'signalbox-act-for': supervisor } })).result
  const begun = letters.filter(({ subject }: { subject: string }) => /^T-\d+$/.test(subject))
  check('letters to the supervisor', new Set(begun.map(({ subject }: { subject: string }) => subject)).size, tasks)
  check('letters that came twice', begun.length, tasks)
  check('letters that it has not read', letters.filter(({ read_at }: { read_at: string | null }) => read_at === null).length, 0)
  const { events } = await daemon.call('event_list', { types: ['mail.read'], limit: 200 })
  const read = events.map(({ subject }: { subject: string }) => subject)
  check('letters that were read twice', read.length - new Set(read).size, 0)
  const human = await daemon.call('mail_inbox', all)
  check(
    'letters to the human',
    human.letters.map(({ subject }: { subject: string }) => subject),
    ['Epic ready: All of it'],
  )
  return read.length
}

export function epicSummary(reports: EpicReport[]): string {
  const total = (of: (report: EpicReport) => number) => reports.reduce((sum, report) => sum + of(report), 0)
  const kills = VICTIMS.map((victim) => `${total((report) => report.kills[victim])} ${victim}s`).join(', ')
  return `${reports.length} seeds; killed ${kills}; ${total((r) => r.lives)} lives of workers, ${total((r) => r.letters)} letters read; wrong ${total((r) => r.wrong.length)}`
}
