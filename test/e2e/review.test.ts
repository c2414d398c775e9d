import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { survivors } from '../../src/testing/survivors.ts'
import { git, repository } from '../chaos/kill-runs.ts'
import { databaseOf, rows, until } from './support.ts'

type Any = ReturnType<typeof JSON.parse>

const FEEDBACK = { feedback: 'It says nothing.', feedback_type: 'needs_work', priority: 'high', actionable_items: ['Say hello'] }

/** Looks at the work in its own worktree, and sends it back. */
const SENDS_BACK = [
  { run: { argv: ['test', '-f', 'greeting.txt'] } },
  { call: { tool: 'review_feedback', arguments: FEEDBACK, save: 'sent' } },
  { say: 'SENT {{sent.status}} {{sent.git_commit_hash}}' },
]
const APPROVES = [
  { run: { argv: ['grep', '-q', 'Hello', 'greeting.txt'] } },
  { call: { tool: 'review_decide', arguments: { decision: 'approve' } } },
]

/** Hands in a file that says nothing; when it is sent back, it has the feedback in its worktree and mends it. */
const WORKS = [
  {
    if_resumed: {
      steps: [
        { run: { argv: ['grep', '-q', 'Say hello', '.signalbox/feedback/1.md'] } },
        { write: { path: 'greeting.txt', text: 'Hello\n' } },
        { commit: { message: 'Say hello' } },
        { review: { summary: 'It says hello.' } },
        { exit: { code: 0 } },
      ],
    },
  },
  { write: { path: 'greeting.txt', text: '' } },
  { commit: { message: 'Greet' } },
  { review: { summary: 'The greeting is there.' } },
]

/** Hears of the feedback while it still runs, and takes longer to mend it than an agent has to end after its request. */
const mendsSlowly = (go: string) => {
  const mends = [
    { run: { argv: ['sh', '-c', `until test -e ${go}; do sleep 0.05; done`] } },
    { write: { path: 'greeting.txt', text: 'Hello\n' } },
    { commit: { message: 'Say hello' } },
    { review: { summary: 'It says hello.' } },
  ]
  return [
    { if_resumed: { steps: [...mends, { exit: { code: 0 } }] } },
    { write: { path: 'greeting.txt', text: '' } },
    { commit: { message: 'Greet' } },
    { review: { summary: 'The greeting is there.' } },
    { wait_message: {} },
    { call: { tool: 'mail_inbox', save: 'inbox' } },
    { each: { of: '{{inbox.letters}}', as: 'letter', steps: [{ call: { tool: 'mail_read', arguments: { mail_id: '{{letter.id}}' } } }] } },
    ...mends,
  ]
}

/** A real daemon, a real repository, real processes. */
class Site {
  readonly daemon = new TestDaemon()
  readonly repo = repository()
  project = ''

  static async open(): Promise<Site> {
    const site = new Site()
    await site.daemon.start()
    const settings = {
      'runs.back_off_seconds': 0.05,
      'runs.linger_seconds': 5,
      'mail.notice_seconds': 0,
      'review.harness': 'scripted',
    }
    for (const [key, value] of Object.entries(settings)) await site.daemon.call('setting_update', { key, value })
    site.project = (await site.daemon.call('project_create', { name: 'Web' })).project_id
    await site.daemon.call('repo_add', { path: site.repo, project_id: site.project, checks: 'test -f greeting.txt' })
    return site
  }

  async begin(work: unknown[], ...reviews: unknown[][]): Promise<string> {
    const block = (name: string, script: unknown[]) => `\`\`\`${name}\n${JSON.stringify(script)}\n\`\`\`\n`
    const description = [block('signalbox', work), ...reviews.map((script) => block('signalbox-review', script))].join('\n')
    const { task_id } = await this.daemon.call('task_create', { project_id: this.project, title: 'Greet', description })
    await this.daemon.call('job_submit', { task_id, action: 'start_agent', harness: 'scripted' })
    return task_id
  }

  async get(task_id: string): Promise<Any> {
    return (await this.daemon.call('task_get', { task_id })).task
  }

  async rounds(task_id: string): Promise<Any[]> {
    return (await this.daemon.call('review_list', { task_id })).reviews
  }

  /** Also while the daemon is being started again. */
  async is(task_id: string, status: string): Promise<void> {
    const now = () =>
      this.get(task_id)
        .then((task) => task.status === status)
        .catch(() => false)
    await until(now, `${status}: ${JSON.stringify(await this.get(task_id).catch(() => null))} ${this.daemon.log}`)
  }

  /** Nobody is at work, and of worktrees there are only those of these tasks. */
  async quiet(...tasks: string[]): Promise<void> {
    const left = async () => {
      const { works } = await this.daemon.call('work_list', { project_id: this.project })
      const made = works.filter(({ state }: Any) => state === 'made').map(({ task_id }: Any) => task_id)
      return (
        made.every((id: string) => tasks.includes(id)) && !survivors(this.daemon.home).some(({ argv }) => argv.includes('scripted-agent'))
      )
    }
    await until(left, `worktrees or agents are left: ${this.daemon.log}`)
  }

  async close(): Promise<void> {
    await this.daemon.remove()
    rmSync(this.repo, { recursive: true, force: true, maxRetries: 10 })
  }
}

describe('the review loop', () => {
  let site: Site
  beforeEach(async () => {
    site = await Site.open()
  })
  afterEach(() => site.close())

  test('[E70] request, feedback in the branch of the worker, mended, request, approved, merged', async () => {
    const task = await site.begin(WORKS, SENDS_BACK, APPROVES)
    await site.is(task, 'DONE')
    const [first, second, ...more] = await site.rounds(task)
    expect(more).toEqual([])
    expect(first).toMatchObject({ round: 1, decision: 'request_changes', feedbacks: [{ ...FEEDBACK, state: 'sent' }] })
    expect(second).toMatchObject({ round: 2, decision: 'approve', outcome: 'merged' })
    expect(second.decided_by).not.toBe(first.decided_by)
    const { branch, base_branch } = (await site.daemon.call('work_get', { task_id: task })).work
    const [commit] = first.feedbacks.map(({ commit_hash }: Any) => commit_hash)
    expect(git(site.repo, 'log', '--format=%s', '--reverse', `${base_branch}..${branch}`).split('\n')).toHaveLength(3)
    expect(git(site.repo, 'merge-base', '--is-ancestor', commit, branch)).toBe('')
    expect(git(site.repo, 'show', `${base_branch}:greeting.txt`)).toBe('Hello')
    expect(git(site.repo, 'ls-tree', '-r', '--name-only', base_branch)).not.toContain('.signalbox')
    await site.quiet(task)
    const { tasks } = await site.daemon.call('task_list', { project_id: site.project })
    expect(tasks).toHaveLength(1)
  })

  test('[F29] a worker that is still there when its work comes back goes on with it, or is started again', async () => {
    await site.daemon.call('setting_update', { key: 'review.harness', value: null })
    await site.daemon.call('setting_update', { key: 'runs.linger_seconds', value: 2 })
    const go = join(site.repo, '.git', 'go')
    const task = await site.begin(mendsSlowly(go))
    await site.is(task, 'REVIEW')
    await site.daemon.call('review_feedback', { task_id: task, ...FEEDBACK })
    await until(
      () => rows(databaseOf(site.daemon), "SELECT id FROM calls WHERE tool = 'run_lingered'").length > 0,
      () => `its time to end is not over: ${site.daemon.log}`,
    )
    writeFileSync(go, '')
    await site.is(task, 'REVIEW')
    expect(await site.rounds(task)).toMatchObject([
      { decision: 'request_changes' },
      { round: 2, decision: null, summary: 'It says hello.' },
    ])
  })

  test('[E71] the request after the third round is refused as documented; asked for once more, the work is given up', async () => {
    const task = await site.begin(
      [
        { run: { argv: ['sh', '-c', 'date +%s%N >> greeting.txt'] } },
        { commit: { message: 'Greet' } },
        { review: { summary: 'The greeting is there.' } },
      ],
      SENDS_BACK,
    )
    await site.is(task, 'BACKLOG')
    const rounds = await site.rounds(task)
    expect(rounds).toMatchObject([1, 2, 3].map((round) => ({ round, decision: 'request_changes', refused: round === 3 ? 2 : 0 })))
    const words = 'Maximum review iterations (3) reached for agent worker-1'
    expect((await site.daemon.call('transcript_search', { task_id: task, words })).entries.length).toBeGreaterThan(0)
    expect((await site.get(task)).notes.at(-1).body).toContain('3 failed rounds and 2 refused requests')
    expect(await site.daemon.call('pr_get', { task_id: task })).toMatchObject({ pr: { state: 'CLOSED' } })
    await site.quiet()
    const { branch, base_branch, path } = (await site.daemon.call('work_get', { task_id: task })).work
    expect(path).toBe(null)
    expect(
      git(site.repo, 'log', '--format=%s', `${base_branch}..${branch}`)
        .split('\n')
        .filter((line) => line.startsWith('Feedback')),
    ).toHaveLength(3)
  })

  test('[E72] whose daemon is killed again and again goes on: one reviewer a round, one commit for each feedback', async () => {
    const task = await site.begin(WORKS, SENDS_BACK, APPROVES)
    const moments = [
      (rounds: Any[]) => rounds.length > 0,
      (rounds: Any[]) => rounds[0]?.reviewer_task_id,
      (rounds: Any[]) => rounds[0]?.feedbacks.length > 0,
      (rounds: Any[]) => rounds[0]?.decision !== null,
      (rounds: Any[]) => rounds[1]?.reviewer_task_id,
      (rounds: Any[]) => rounds[1]?.decision === 'approve',
    ]
    for (const [n, moment] of moments.entries()) {
      await until(
        async () => moment(await site.rounds(task)),
        () => `moment ${n}: ${site.daemon.log}`,
      )
      await site.daemon.end('SIGKILL')
      await site.daemon.start()
    }
    await site.is(task, 'DONE')
    const rounds = await site.rounds(task)
    expect(rounds).toMatchObject([
      { decision: 'request_changes', feedbacks: [{ state: 'sent' }] },
      { decision: 'approve', outcome: 'merged' },
    ])
    const { branch, base_branch } = (await site.daemon.call('work_get', { task_id: task })).work
    const subjects = git(site.repo, 'log', '--format=%s', branch).split('\n')
    expect(subjects.filter((line) => line.startsWith('Feedback'))).toHaveLength(1)
    expect(git(site.repo, 'log', '--format=%s', base_branch).split('\n')).toHaveLength(2)
    const started = rows(databaseOf(site.daemon), "SELECT id FROM agents WHERE role = 'reviewer'")
    expect(started).toHaveLength(2)
    await site.quiet(task)
  })
})
