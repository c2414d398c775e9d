import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import { type Caller, openTestApp, type TestApp, test } from '../../testing/app.ts'
import { FakeGit } from '../../testing/fakes/git.ts'
import { fakeHarness, harnessesOf } from '../../testing/fakes/runs.ts'
import { until } from '../../testing/signals.ts'
import { WorkGround } from '../../testing/work.ts'

/** An epic that nobody is started for. */
async function epicIn(app: TestApp, fields: Record<string, unknown> = {}) {
  const project_id = fields.project_id ?? (await app.project())
  return (await app.owner.call('epic_create', { title: 'Passkeys', project_id, start: false, ...fields })).epic
}

async function supervisorOf(app: TestApp, epic_id: string): Promise<Caller> {
  const supervisor = await app.agent('supervisor')
  await app.owner.call('epic_update', { epic_id, supervisor_id: supervisor.id })
  return supervisor
}

async function taskIn(app: TestApp, epic_id: string, fields: Record<string, unknown> = {}) {
  return (await app.owner.call('task_create', { epic_id, title: 'Do it', ...fields })).task
}

describe('an epic', () => {
  test('[EP1] has its number and its branch, and counts its tasks', async ({ app }) => {
    const [first, second] = [await epicIn(app), await epicIn(app, { title: '../$(x) é', max_workers: 2 })]
    expect([first.handle, second.handle]).toEqual(['E-1', 'E-2'])
    expect(first).toMatchObject({ state: 'PLANNING', base_branch: 'main', max_workers: 4, progress: { total: 0 } })
    expect(first.branch).toMatch(/^signalbox\/epic-[0-9a-z]{8}-passkeys$/)
    expect(second.branch).toMatch(/^signalbox\/epic-[0-9a-z]{8}-[a-z-]+$/)
    const [task] = [await taskIn(app, 'E-1'), await taskIn(app, first.id), await taskIn(app, second.id), await app.task()]
    await app.owner.call('task_close', { task_id: task.id, reason: 'enough' })
    const { epic, tasks } = await app.owner.call('epic_get', { epic_id: 'E-1' })
    expect(epic).toMatchObject({ progress: { total: 2, backlog: 1, done: 1, in_progress: 0, review: 0 } })
    expect(tasks.map(({ handle }: { handle: string }) => handle)).toEqual(['T-1', 'T-2'])
    expect(tasks[0]).toMatchObject({ epic_id: first.id, lead: false })
    expect((await app.owner.call('task_list', { epic_id: 'E-2' })).tasks).toHaveLength(1)
    const page = await app.owner.call('epic_list', { limit: 1 })
    expect(page.epics).toMatchObject([{ handle: 'E-2' }])
    expect((await app.owner.call('epic_list', { limit: 1, after: page.next })).epics).toMatchObject([{ handle: 'E-1' }])
    expect((await app.owner.call('epic_list', { state: ['REVIEW'] })).epics).toEqual([])
    expect(await app.events({ type: 'epic.created' })).toMatchObject([{ subject: first.id, data: { handle: 'E-1' } }, {}])
  })

  test('[EP2] changes its state by the moves of the table alone', async ({ app }) => {
    const epic = await epicIn(app)
    const move = (state: string) => ({ epic_id: epic.id, state })
    const supervisor = await supervisorOf(app, epic.id)
    expect(await app.owner.refused('epic_update', move('COMPLETED'))).toMatchObject({ code: 'INVALID_TRANSITION' })
    expect(await app.owner.refused('epic_update', move('REVIEW'))).toMatchObject({ code: 'INVALID_TRANSITION' })
    await app.owner.call('task_create', { epic_id: epic.id, title: 'by hand', task_type: 'PAIR' })
    for (const state of ['IN_PROGRESS', 'PLANNING']) expect((await supervisor.call('epic_update', move(state))).epic.state).toBe(state)
    expect(await supervisor.refused('epic_update', move('CANCELLED'))).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect((await app.owner.call('epic_update', move('CANCELLED'))).epic.state).toBe('CANCELLED')
    for (const state of ['PLANNING', 'IN_PROGRESS', 'COMPLETED'])
      expect(await app.owner.refused('epic_update', move(state))).toMatchObject({ code: 'INVALID_TRANSITION' })
    expect((await app.events({ type: 'epic.moved' })).map(({ data }) => data.to)).toEqual(['IN_PROGRESS', 'PLANNING', 'CANCELLED'])
    const stale = { epic_id: epic.id, title: 'x', expected_version: 1 }
    expect(await app.owner.refused('epic_update', stale)).toMatchObject({ code: 'CONFLICT' })
    expect(await app.owner.refused('epic_update', { epic_id: epic.id })).toMatchObject({ code: 'INVALID_INPUT' })
  })
})

describe('a supervisor', () => {
  test('[EP3] acts inside its own epic only, by whatever argument', async ({ app }) => {
    const [own, other] = [await epicIn(app), await epicIn(app)]
    const [mine, theirs, loose] = [await taskIn(app, own.id), await taskIn(app, other.id), await app.task()]
    const supervisor = await supervisorOf(app, own.id)
    const worker = await app.worker(theirs.id)
    await supervisor.call('task_update', { task_id: mine.id, priority: 'high', blocked_by: [loose.id] })
    for (const task of [theirs, loose]) {
      const outside: [string, Record<string, unknown>][] = [
        ['task_update', { task_id: task.id, title: 'mine' }],
        ['task_move', { task_id: task.handle, status: 'IN_PROGRESS' }],
        ['task_close', { task_id: task.id, reason: 'x' }],
        ['task_assign', { task_id: task.id, agent_id: null }],
        ['task_note', { task_id: task.id, body: 'x' }],
        ['job_submit', { task_id: task.id, action: 'start_agent' }],
        ['review_request', { task_id: task.id, summary: 'x' }],
        ['transcript_read', { task_id: task.id }],
      ]
      for (const [tool, input] of outside)
        expect([tool, await supervisor.refused(tool, input)]).toEqual([tool, expect.objectContaining({ code: 'PERMISSION_DENIED' })])
    }
    const denied: [string, Record<string, unknown>][] = [
      ['epic_update', { epic_id: other.id, title: 'mine' }],
      ['epic_update', { epic_id: own.id, supervisor_id: supervisor.id }],
      ['epic_create', { title: 'another' }],
      ['task_create', { title: 'there', epic_id: other.id }],
      ['task_create', { title: 'there', project_id: own.project_id }],
      ['task_assign', { task_id: mine.id, agent_id: worker.handle }],
    ]
    for (const [tool, input] of denied)
      expect([tool, await supervisor.refused(tool, input)]).toEqual([tool, expect.objectContaining({ code: 'PERMISSION_DENIED' })])
    const [another] = [await app.agent('supervisor')]
    await app.owner.call('epic_update', { epic_id: own.id, supervisor_id: another.id })
    expect(await supervisor.refused('task_update', { task_id: mine.id, priority: 'low' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await app.owner.refused('epic_update', { epic_id: own.id, supervisor_id: worker.id })).toMatchObject({ code: 'INVALID_INPUT' })
    const elsewhere = { epic_id: other.id, supervisor_id: another.id }
    expect(await app.owner.refused('epic_update', elsewhere)).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('E-1') })
    await app.owner.call('epic_update', { epic_id: own.id, state: 'CANCELLED' })
    expect((await app.owner.call('epic_update', elsewhere)).epic.supervisor_id).toBe(another.id)
  })

  test('[EP3] reads the files of its own epic only, and stops the jobs of no other', async () => {
    const app = await openTestApp({ ports: { git: new FakeGit() } })
    onTestFinished(() => app.close())
    await app.owner.call('repo_add', { path: '/repo', project_id: await app.project() })
    const [own, other] = [await epicIn(app), await epicIn(app)]
    const [mine, theirs] = [await taskIn(app, own.id), await taskIn(app, other.id)]
    const supervisor = await supervisorOf(app, own.id)
    const jobs = []
    for (const task of [mine, theirs]) {
      const start = { task_id: task.id, action: 'start_agent', harness: 'fake' }
      jobs.push((await app.owner.call('job_submit', start)).job_id)
      await until(async () => (await app.owner.call('run_list', { task_id: task.id })).runs[0]?.state === 'running')
    }
    const read = (task: { id: string }) => ({ task_id: task.id, path: 'AGENTS.md' })
    await supervisor.call('file_read', read(mine))
    expect(await supervisor.refused('file_read', read(theirs))).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await supervisor.refused('job_cancel', { job_id: jobs[1] })).toMatchObject({ code: 'PERMISSION_DENIED' })
    await supervisor.call('job_cancel', { job_id: jobs[0] })
    for (const task of [mine, theirs]) await app.owner.call('task_close', { task_id: task.id, reason: 'enough' })
    await until(async () => (await app.owner.call('work_collect', { task_id: mine.id })).kept.length === 0)
    await until(async () => (await app.events({ type: 'run.ended' })).length === 2)
    await until(async () => (await app.events({ type: 'work.removed' })).some(({ task }) => task === mine.id))
    expect(await supervisor.call('work_collect')).toEqual({ collecting: [], kept: [] })
    expect((await app.owner.call('work_collect')).collecting).toEqual([theirs.handle])
  })

  test('[EP5] makes tasks in its own epic, which takes none that do not fit', async ({ app }) => {
    const epic = await epicIn(app)
    const supervisor = await supervisorOf(app, epic.id)
    const { task } = await supervisor.call('task_create', { title: 'a part' })
    expect(task).toMatchObject({ epic_id: epic.id, project_id: epic.project_id })
    expect((await supervisor.call('epic_get')).epic.handle).toBe('E-1')
    const { project_id } = await app.owner.call('project_create', { name: 'Other' })
    const wrong: Record<string, unknown>[] = [{ project_id }, { base_branch: 'main' }]
    for (const more of wrong)
      expect(await app.owner.refused('task_create', { epic_id: epic.id, title: 'x', ...more })).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await app.owner.refused('task_update', { task_id: task.id, base_branch: 'main' })).toMatchObject({ code: 'INVALID_INPUT' })
    await app.owner.call('epic_update', { epic_id: epic.id, state: 'CANCELLED' })
    expect(await app.owner.refused('task_create', { epic_id: epic.id, title: 'x' })).toMatchObject({ code: 'CONFLICT' })
  })
})

describe('the work in an epic', () => {
  test('[EP4] begins at the branch of the epic, in its repository', async ({ app }) => {
    const tops = ['web', 'api'].map((name) => join(app.folder, name))
    const git = (cwd: string, ...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd, stdio: 'pipe' })
        .toString()
        .trim()
    const repos: string[] = []
    for (const top of tops) {
      mkdirSync(top)
      git(top, 'init', '-q', '-b', 'main')
      writeFileSync(join(top, 'a.txt'), 'one\n')
      git(top, 'add', '-A')
      git(top, 'commit', '-q', '-m', 'x')
      repos.push((await app.owner.call('repo_add', { path: top, project_id: await app.project() })).repo_id)
    }
    expect(await app.owner.refused('epic_create', { title: 'x', start: false })).toMatchObject({
      code: 'INVALID_INPUT',
      suggestions: ['web', 'api'],
    })
    for (const base_branch of ['nope', '-rf', 'a..b'])
      expect(await app.owner.refused('epic_create', { title: 'x', start: false, repo_id: 'api', base_branch })).toMatchObject({
        code: 'RESOURCE_NOT_FOUND',
        suggestions: ['main'],
      })
    const epic = await epicIn(app, { repo_id: repos[1], base_branch: 'main' })
    const api = tops[1] as string
    const start = async (task: { id: string }) => {
      await app.owner.call('job_submit', { task_id: task.id, action: 'start_agent', harness: 'fake' })
      const made = async () => (await app.events({ type: 'work.made' })).find((event) => event.task === task.id)
      await until(async () => (await made()) !== undefined)
      return (await made())?.data as { branch: string; base_commit: string }
    }
    const first = await start(await taskIn(app, epic.id))
    expect(first.base_commit).toBe(git(api, 'rev-parse', 'main'))
    expect(git(api, 'rev-parse', epic.branch)).toBe(first.base_commit)
    git(api, 'commit', '-q', '--allow-empty', '-m', 'elsewhere')
    git(api, 'update-ref', `refs/heads/${epic.branch}`, git(api, 'commit-tree', `${epic.branch}^{tree}`, '-p', epic.branch, '-m', 'merged'))
    const second = await start(await taskIn(app, epic.id))
    expect(second.base_commit).toBe(git(api, 'rev-parse', epic.branch))
    expect(second.base_commit).not.toBe(git(api, 'rev-parse', 'main'))
    const elsewhere = { task_id: (await taskIn(app, epic.id)).id, action: 'start_agent', harness: 'fake', repo_id: repos[0] }
    expect(await app.owner.refused('job_submit', elsewhere)).toMatchObject({ code: 'CONFLICT' })
  })
})

describe('the programs of an epic', () => {
  const ready = (name: string) => fakeHarness({ name, account: async () => ({ signedIn: true }) })
  async function withPrograms(...names: string[]): Promise<TestApp> {
    const harnesses = harnessesOf(fakeHarness({ name: 'scripted' }), ...names.map(ready))
    const app = await openTestApp({ ports: { git: new FakeGit(), harnesses } })
    onTestFinished(() => app.close())
    await app.owner.call('repo_add', { path: '/repo', project_id: await app.project() })
    return app
  }
  const programsOf = ({ supervisor_harness, worker_harness }: Record<string, unknown>) => [supervisor_harness, worker_harness]

  test('[J28] are chosen when it is begun, and named', async () => {
    const app = await withPrograms('alpha')
    expect(programsOf((await app.owner.call('epic_create', { title: 'Now' })).epic)).toEqual(['alpha', 'alpha'])
    const planned = await epicIn(app, { workers: { harness: 'scripted' } })
    expect(programsOf(planned)).toEqual([null, 'scripted'])
    const { epic } = await app.owner.call('epic_update', { epic_id: planned.id, state: 'IN_PROGRESS' })
    expect(programsOf(epic)).toEqual(['alpha', 'scripted'])
    await until(async () => (await app.owner.call('job_list', { task_id: epic.lead_task_id })).jobs.length === 1)
    expect((await app.owner.call('job_list', { task_id: epic.lead_task_id })).jobs).toMatchObject([{ harness: 'alpha' }])
  })

  test('[J28] are asked for where there are none or several; an epic that is led from a window can be begun all the same', async () => {
    const app = await withPrograms('alpha', 'beta')
    expect(await app.owner.refused('epic_create', { title: 'Now' })).toMatchObject({
      code: 'INVALID_INPUT',
      suggestions: ['alpha', 'beta'],
    })
    const planned = await epicIn(app)
    const begin = { epic_id: planned.id, state: 'IN_PROGRESS' }
    expect(await app.owner.refused('epic_update', begin)).toMatchObject({ code: 'INVALID_INPUT', suggestions: ['alpha', 'beta'] })
    await supervisorOf(app, planned.id)
    expect((await app.owner.call('epic_update', begin)).epic.state).toBe('IN_PROGRESS')
    const task = await taskIn(app, planned.id)
    await until(async () => (await app.events({ type: 'mail.sent' })).length === 1)
    await app.owner.call('setting_update', { key: 'runs.default_harness', value: 'beta' })
    await until(async () => (await app.owner.call('job_list', { task_id: task.id })).jobs.length === 1)
    expect((await app.owner.call('job_list', { task_id: task.id })).jobs).toMatchObject([{ harness: 'beta' }])
  })
})

describe('the end of an epic', () => {
  /** Handed in, with one file on its branch; the person has not merged it. */
  async function handedIn(app: TestApp) {
    const ground = await new WorkGround(app).prepare()
    const epic = await epicIn(app)
    await supervisorOf(app, epic.id)
    const work = await ground.handedIn('feature.txt', 'new\n', { epic_id: epic.id })
    await app.owner.call('review_decide', { task_id: work.task.id, decision: 'approve' })
    await app.owner.call('epic_update', { epic_id: epic.id, state: 'IN_PROGRESS' })
    await app.owner.call('epic_finish', { epic_id: epic.id })
    return { ground, epic, complete: { epic_id: epic.id, state: 'COMPLETED' } }
  }

  test('[EP17] is asked for in the words that a person types', async ({ app }) => {
    await handedIn(app)
    const [letter] = (await app.owner.call('mail_inbox')).letters
    expect(letter.body).toContain('`signalbox epic update E-1 --state COMPLETED`')
    expect(letter.body).not.toContain('epic_update')
  })

  test.for([
    ['as a merge', ['merge', '--no-ff', '--quiet', '-m', 'merged']],
    ['as one commit', ['merge', '--squash', '--quiet']],
  ] as const)('[EP16] is completed only when its work is on the base branch, merged %s', async ([, merge], { app }) => {
    const { ground, epic, complete } = await handedIn(app)
    expect(await app.owner.refused('epic_update', complete)).toMatchObject({
      code: 'CONFLICT',
      message: `${epic.handle} is not merged: main does not have what is on ${epic.branch}.`,
      hint: expect.stringContaining(`git merge ${epic.branch}`),
    })
    expect((await app.owner.call('epic_get', { epic_id: epic.id })).epic.state).toBe('REVIEW')
    ground.git(ground.top, ...merge, epic.branch)
    // What others bring to the base branch meanwhile has no say in it.
    ground.commit(ground.top, 'other.txt', 'x\n')
    expect((await app.owner.call('epic_update', complete)).epic.state).toBe('COMPLETED')
    expect(await app.owner.call('pr_get', { epic_id: epic.id })).toMatchObject({ pr: { state: 'MERGED' } })
  })

  test('[EP16] that git cannot tell of is completed when a person says that it was merged elsewhere', async ({ app }) => {
    const { ground, epic, complete } = await handedIn(app)
    ground.git(ground.top, 'branch', '-D', epic.branch)
    expect(await app.owner.refused('epic_update', complete)).toMatchObject({
      code: 'CONFLICT',
      hint: expect.stringContaining('merged_elsewhere'),
    })
    expect((await app.owner.call('epic_update', { ...complete, merged_elsewhere: true })).epic.state).toBe('COMPLETED')
  })
})
