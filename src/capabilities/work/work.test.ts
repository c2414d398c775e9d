import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as base, describe, expect, vi } from 'vitest'
import { z } from 'zod'
import { defineEffect } from '../../kernel/effect.ts'
import { Refusal, refuse } from '../../kernel/error.ts'
import { answer } from '../../kernel/point.ts'
import { defineTool } from '../../kernel/tool.ts'
import { openTestApp, type TestApp } from '../../testing/app.ts'
import { gitNow, realGit } from '../../testing/git.ts'
import { withProbe } from '../../testing/probe.ts'
import { until } from '../../testing/signals.ts'
import { RepoId, TaskId } from '../ids.ts'
import { taskStore } from '../task/index.ts'
import { inUse, makeWorktree, planWork, WorkPlan, workOf, workPlan } from './index.ts'
import { nameOf } from './names.ts'

/** As whoever starts a run does it: plan in a transaction, make in an effect. */
const make = defineEffect({
  type: 'probe.make',
  payload: WorkPlan,
  attempts: 2,
  do: async (ctx, plan) => {
    await makeWorktree(ctx, plan)
    await makeWorktree(ctx, plan)
  },
})
const start = defineTool({
  name: 'probe_start',
  title: 'Start',
  description: 'Plans the work of a task and has it made.',
  input: z.strictObject({ task_id: TaskId, repo_id: RepoId.optional() }),
  output: z.strictObject({ work_id: z.string() }),
  impact: 'write',
  profile: 'operator',
  async run(ctx, { task_id, repo_id }) {
    const task = await taskStore(ctx.tx).find(task_id)
    if (!task) return refuse('RESOURCE_NOT_FOUND', 'no')
    const row = await planWork(ctx, task, repo_id)
    if (row instanceof Refusal) return row
    ctx.enqueue(make(await workPlan(ctx, row), { queue: row.repo_id }))
    return { work_id: row.id }
  },
})

class Ground {
  readonly app: TestApp
  readonly top: string
  constructor(app: TestApp) {
    this.app = app
    this.top = join(app.folder, 'web')
  }

  async prepare(): Promise<void> {
    await this.repo('web')
  }

  async repo(name: string): Promise<string> {
    const path = join(this.app.folder, name)
    mkdirSync(path)
    this.git(path, 'init', '-q', '-b', 'main')
    writeFileSync(join(path, 'a.txt'), 'one\n')
    this.commit(path)
    return (await this.app.owner.call('repo_add', { path, project_id: await this.app.project() })).repo_id
  }

  git(cwd: string, ...args: string[]): string {
    return gitNow(cwd, ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args]).trim()
  }

  commit(cwd: string): void {
    this.git(cwd, 'add', '-A')
    this.git(cwd, 'commit', '-q', '-m', 'x')
  }

  /** A task whose worktree is made. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
  async work(title = 'Do it'): Promise<{ task: any; path: string }> {
    const task = await this.app.task({ title })
    await this.start(task.id)
    return { task, path: (await this.row(task.id))?.path as string }
  }

  async start(task_id: string): Promise<void> {
    const before = (await this.app.events({ type: 'work.made' })).length
    await this.app.owner.call('probe_start', { task_id })
    await until(async () => (await this.app.events({ type: 'work.made' })).length > before)
  }

  row(taskId: string) {
    return workOf(this.app.app.engine.view, taskId)
  }

  async collected(task_id: string): Promise<void> {
    const before = (await this.app.events({ type: 'work.removed' })).length
    expect((await this.app.owner.call('work_collect', { task_id })).kept).toEqual([])
    await until(async () => (await this.app.events({ type: 'work.removed' })).length > before)
  }
}

const test = base.extend<{ ground: Ground; app: TestApp }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  app: async ({}, use) => {
    const app = await openTestApp({ capabilities: withProbe([start], { effects: [make] }) })
    await use(app)
    await app.close()
  },
  ground: async ({ app }, use) => {
    const ground = new Ground(app)
    await ground.prepare()
    await use(ground)
  },
})

describe('a work', () => {
  test('[W12] is told with its task: none, planned, made', async ({ app, ground }) => {
    const task = await app.task({ title: 'Add user auth' })
    const worker = await app.worker(task.id)
    expect(await worker.call('work_get')).toMatchObject({ task: { id: task.id }, work: null })
    await ground.start(task.id)
    const name = `task-${task.id.slice(-8)}-add-user-auth`
    const work = { name, state: 'made', path: expect.stringContaining(name), branch: `signalbox/${name}`, base_branch: 'main' }
    expect(await worker.call('work_get')).toMatchObject({ task: { id: task.id }, work })
    expect(await app.owner.call('work_get', { task_id: task.handle })).toMatchObject({ work })
    expect(await app.owner.refused('work_get')).toMatchObject({ code: 'INVALID_INPUT' })
    await app.owner.call('task_close', { task_id: task.id, reason: 'x' })
    await ground.collected(task.id)
    expect(await app.owner.call('work_get', { task_id: task.id })).toMatchObject({ work: { ...work, state: 'removed', path: null } })
  })

  test('[W1] is one for a task, however often it is planned, in the repository that somebody named', async ({ app, ground }) => {
    const task = await app.task()
    const planned = await Promise.all([1, 2, 3].map(() => app.owner.call('probe_start', { task_id: task.id })))
    expect(new Set(planned.map(({ work_id }) => work_id)).size).toBe(1)
    const second = await ground.repo('api')
    const other = await app.task()
    expect(await app.owner.refused('probe_start', { task_id: other.id })).toMatchObject({
      code: 'INVALID_INPUT',
      suggestions: ['web', 'api'],
    })
    await app.owner.call('probe_start', { task_id: other.id, repo_id: second })
    expect((await ground.row(other.id))?.repo_id).toBe(second)
    expect(await app.owner.refused('probe_start', { task_id: task.id, repo_id: second })).toMatchObject({ code: 'CONFLICT' })
  })

  test('[W2] is named by one function, whatever its title holds', () => {
    const titles = ['--upload-pack=x', '$(rm -rf /)', '../../etc', 'ünïcode', '…', '\n\0', 'x'.repeat(300), 'a.lock']
    const ids = titles.map((_, n) => `work_${'0'.repeat(35)}${n}`)
    for (const [n, title] of titles.entries()) {
      const { name, branch } = nameOf(ids[n] as string, title)
      expect([name, branch]).toEqual([expect.stringMatching(/^task-[0-9a-z]{8}-[a-z][a-z0-9-]{0,31}$/), `signalbox/${name}`])
    }
    expect(new Set(ids.map((id) => nameOf(id, 'same').name)).size).toBe(ids.length)
  })

  test('[W3] is made after its commit, and told once', async ({ app, ground }) => {
    const { task, path } = await ground.work('Log in')
    expect(path).toMatch(/worktrees\/web\/task-[0-9a-z]{8}-log-in$/)
    expect(readFileSync(join(path, 'a.txt'), 'utf8')).toBe('one\n')
    const row = await ground.row(task.id)
    expect(row).toMatchObject({ state: 'made', base_branch: 'main', base_commit: ground.git(ground.top, 'rev-parse', 'main') })
    expect(await app.events({ type: 'work.made' })).toMatchObject([
      { subject: row?.id, task: task.id, actor: 'system', data: { handle: task.handle, branch: row?.branch, path } },
    ])
  })
})

describe('what is in it', () => {
  test('[W4] the difference, committed or not', async ({ app, ground }) => {
    const unmade = await app.task()
    expect(await app.owner.refused('diff_get', { task_id: unmade.id })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    const { task, path } = await ground.work()
    writeFileSync(join(path, 'b.txt'), 'new\n')
    ground.commit(path)
    writeFileSync(join(path, 'a.txt'), 'two\n')
    const diff = await app.owner.call('diff_get', { task_id: task.handle })
    expect(diff).toMatchObject({ cut: false, patch: expect.stringContaining('+two'), files: [{ path: 'a.txt' }, { path: 'b.txt' }] })
    expect((await app.owner.call('diff_get', { task_id: task.id, path: 'b.txt' })).files).toHaveLength(1)
    rmSync(ground.top, { recursive: true })
    expect(await app.owner.refused('diff_get', { task_id: task.id })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
  })

  test('[W13] of work in review, what is committed and nothing that lies beside it', async ({ app, ground }) => {
    const { task, path } = await ground.work()
    writeFileSync(join(path, 'b.txt'), 'bad\n')
    ground.commit(path)
    writeFileSync(join(path, 'b.txt'), 'good\n')
    const seen = async () => {
      const { patch } = await app.owner.call('diff_get', { task_id: task.id })
      const { content, size_bytes } = await app.owner.call('file_read', { task_id: task.id, path: './b.txt', max_bytes: 3 })
      return [/^\+(\w+)/m.exec(patch.slice(patch.indexOf('@@')))?.[1], content, size_bytes]
    }
    expect(await seen()).toEqual(['good', 'goo', 5])
    for (const status of ['IN_PROGRESS', 'REVIEW']) await app.owner.call('task_move', { task_id: task.id, status })
    expect(await seen()).toEqual(['bad', 'bad', 4])
    for (const outside of ['../a.txt', '/etc/passwd', '.git/config', 'none', ''])
      expect(['RESOURCE_NOT_FOUND', 'INVALID_INPUT']).toContain(
        (await app.owner.refused('file_read', { task_id: task.id, path: outside })).code,
      )
  })

  test('[W13] of work in review, the commit that was handed in, wherever its branch is moved', async ({ app, ground }) => {
    const { task, path } = await ground.work()
    const worker = await app.worker(task.id)
    writeFileSync(join(path, 'b.txt'), 'bad\n')
    ground.commit(path)
    const bad = ground.git(path, 'rev-parse', 'HEAD')
    await app.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    await worker.call('review_request', { summary: 'Done.' })
    const shown = async (more = {}) => {
      const { commit, moved_to, patch } = await app.owner.call('diff_get', { task_id: task.id, ...more })
      const file = await app.owner.call('file_read', { task_id: task.id, path: 'b.txt', ...more })
      return [/^\+(\w+)/m.exec(patch.slice(patch.indexOf('@@')))?.[1], commit, moved_to, file.content, file.commit]
    }
    expect(await shown()).toEqual(['bad', bad, null, 'bad\n', bad])
    ground.git(path, 'reset', '-q', '--hard', 'HEAD~')
    writeFileSync(join(path, 'b.txt'), 'good\n')
    ground.commit(path)
    const good = ground.git(path, 'rev-parse', 'HEAD')
    expect(await shown()).toEqual(['bad', bad, good, 'bad\n', bad])
    expect(await shown({ latest: true })).toEqual(['good', good, null, 'good\n', good])
    expect(await app.owner.refused('merge_submit', { task_id: task.id, commit: bad })).toMatchObject({
      code: 'CONFLICT',
      next_arguments: { latest: true },
    })
  })

  test('[W5] files, as text where they are', async ({ app, ground }) => {
    const { task, path } = await ground.work()
    writeFileSync(join(path, 'pic'), Buffer.from([0, 255, 1]))
    writeFileSync(join(path, 'word'), 'grün')
    const read = (name: string, more = {}) => app.owner.call('file_read', { task_id: task.id, path: name, ...more })
    expect(await read('a.txt')).toMatchObject({ encoding: 'utf8', content: 'one\n', size_bytes: 4, cut: false })
    expect(await read('pic')).toMatchObject({ encoding: 'base64', content: 'AP8B' })
    expect(await read('word', { max_bytes: 3 })).toMatchObject({ encoding: 'utf8', content: 'gr', cut: true })
    for (const outside of ['../../../web/a.txt', '/etc/passwd', '.git', 'none'])
      expect(await app.owner.refused('file_read', { task_id: task.id, path: outside })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
  })

  test('[W6] an agent below operator reads its own task alone', async ({ app, ground }) => {
    const { task } = await ground.work()
    const own = await app.worker(task.id)
    const other = await app.worker((await app.task()).id)
    const planner = await app.agent('planner')
    const operator = await app.agent('orchestrator')
    for (const [tool, more] of [
      ['diff_get', {}],
      ['file_read', { path: 'a.txt' }],
      ['rescue_list', {}],
    ] as const) {
      for (const reader of [own, operator, app.owner]) await reader.call(tool, { task_id: task.id, ...more })
      for (const stranger of [other, planner])
        expect(await stranger.refused(tool, { task_id: task.id, ...more })).toMatchObject({ code: 'PERMISSION_DENIED' })
    }
    expect(await own.refused('work_undo', { task_id: task.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[W7] the list says what is in each, and why it is kept', async ({ app, ground }) => {
    const { task, path } = await ground.work()
    writeFileSync(join(path, 'b.txt'), 'x'.repeat(10_000))
    ground.commit(path)
    writeFileSync(join(path, 'c.txt'), 'x')
    const only = async () => (await app.owner.call('work_list')).works[0]
    expect(await only()).toMatchObject({ on_disk: 'present', dirty: 1, ahead: 1, collectable: false, reason: `${task.handle} is BACKLOG.` })
    expect((await only()).size_bytes).toBeGreaterThan(10_000)
    await app.owner.call('task_close', { task_id: task.id, reason: 'enough' })
    expect(await only()).toMatchObject({
      collectable: true,
      reason: expect.stringContaining('1 files that are not committed will be saved'),
    })
    rmSync(path, { recursive: true })
    expect(await only()).toMatchObject({ on_disk: 'missing', size_bytes: null, ahead: 1 })
    rmSync(ground.top, { recursive: true })
    expect(await only()).toMatchObject({ on_disk: 'unknown', collectable: false, reason: expect.stringContaining('no git repository') })
  })
})

describe('many who ask', () => {
  test('[W14] for the same list look at each worktree together, not one by one', async ({ app, ground }) => {
    await ground.work()
    const { git } = app.app.kernel.parts.ports
    const looked = vi.spyOn(git, 'state')
    const lists = await Promise.all(Array.from({ length: 10 }, () => app.owner.call('work_list')))
    expect(looked.mock.calls.length).toBeLessThan(5)
    for (const { works } of lists) expect(works).toMatchObject([{ on_disk: 'present', dirty: 0 }])
    looked.mockRestore()
  })
})

describe('clearing up', () => {
  test('[W15] one worktree that cannot be read is listed as such, with the reason, beside the others', async ({ onTestFinished }) => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-work-'))
    const git = realGit({ worktrees: join(folder, 'worktrees'), stuckMs: 100 })
    const app = await openTestApp({ capabilities: withProbe([start], { effects: [make] }), ports: { git } })
    onTestFinished(async () => {
      await app.close()
      rmSync(folder, { recursive: true, force: true })
    })
    const ground = new Ground(app)
    await ground.prepare()
    const [bad, good] = [await ground.work('Bad'), await ground.work('Good')]
    const pipe = join(bad.path, '.gitignore')
    execFileSync('mkfifo', [pipe])
    const { works } = await app.owner.call('work_list')
    // biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
    const of = (task: any) => works.find(({ task_id }: any) => task_id === task.id)
    expect(of(bad.task)).toMatchObject({ on_disk: 'unknown', collectable: false, reason: expect.stringContaining(pipe) })
    expect(of(good.task)).toMatchObject({ on_disk: 'present', dirty: 0 })
    await expect(app.owner.call('file_read', { task_id: bad.task.id, path: '.gitignore' })).rejects.toThrow('RESOURCE_NOT_FOUND')
  })

  test('[W8] takes what is finished, keeps what somebody needs, and saves before', async ({ onTestFinished }) => {
    let needed = ''
    const reason = async (_: unknown, row: { task_id: string }) => (row.task_id === needed ? 'Its run is alive.' : undefined)
    const app = await openTestApp({ capabilities: withProbe([start], { effects: [make], answers: [answer(inUse, reason)] }) })
    onTestFinished(() => app.close())
    const ground = new Ground(app)
    await ground.prepare()
    const [open, done, used] = [await ground.work('open'), await ground.work('done'), await ground.work('used')]
    for (const { task } of [done, used]) await app.owner.call('task_close', { task_id: task.id, reason: 'enough' })
    needed = used.task.id
    writeFileSync(join(done.path, 'unsaved.txt'), 'x')
    expect(await app.owner.call('work_collect')).toEqual({
      collecting: [done.task.handle],
      kept: [
        { handle: open.task.handle, reason: `${open.task.handle} is BACKLOG.` },
        { handle: used.task.handle, reason: 'Its run is alive.' },
      ],
    })
    expect(await app.owner.refused('work_undo', { task_id: used.task.id })).toMatchObject({ code: 'INVALID_AGENT_STATE' })
    await until(async () => (await app.events({ type: 'work.removed' })).length > 0)
    expect([open, done, used].map(({ path }) => existsSync(path))).toEqual([true, false, true])
    expect(await ground.row(done.task.id)).toMatchObject({ state: 'removed' })
    const [saved] = (await app.owner.call('rescue_list', { task_id: done.task.id })).rescues
    expect(await app.events({ type: 'work.rescued' })).toMatchObject([{ data: { ref: saved.ref, commit: saved.commit } }])
    expect(ground.git(ground.top, 'show', `${saved.ref}:unsaved.txt`)).toBe('x')
    await app.owner.call('task_delete', { task_id: open.task.id })
    await ground.collected(open.task.id)
  })

  test('[W9] what was saved comes back, also into a work that was collected', async ({ app, ground }) => {
    const { task, path } = await ground.work()
    expect(await app.owner.refused('work_undo', { task_id: task.id })).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('Nothing was saved'),
    })
    writeFileSync(join(path, 'draft.txt'), 'draft')
    await app.owner.call('task_close', { task_id: task.id, reason: 'enough' })
    await ground.collected(task.id)
    const undone = await app.owner.call('work_undo', { task_id: task.id })
    expect(undone).toMatchObject({ restored: true })
    expect(readFileSync(join(path, 'draft.txt'), 'utf8')).toBe('draft')
    expect(await ground.row(task.id)).toMatchObject({ state: 'made' })
    writeFileSync(join(path, 'draft.txt'), 'later')
    expect(await app.owner.call('work_undo', { task_id: task.id, ref: undone.ref })).toMatchObject({ ref: undone.ref })
    expect(readFileSync(join(path, 'draft.txt'), 'utf8')).toBe('draft')
    const { rescues } = await app.owner.call('rescue_list', { task_id: task.id })
    expect(rescues.map(({ ref }: { ref: string }) => ground.git(ground.top, 'show', `${ref}:draft.txt`))).toEqual(['later', 'draft'])
    for (const ref of ['refs/heads/main', 'refs/signalbox/rescue/task-00000000-x/1', '--all'])
      expect(await app.owner.refused('work_undo', { task_id: task.id, ref })).toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('[W10] what git refuses is told', async ({ app, ground }) => {
    const { task, path } = await ground.work()
    rmSync(path, { recursive: true })
    mkdirSync(join(path, 'mine'), { recursive: true })
    await app.owner.call('task_close', { task_id: task.id, reason: 'enough' })
    await app.owner.call('work_collect', { task_id: task.id })
    await until(async () => (await app.events({ type: 'work.failed' })).length > 0)
    expect(await app.events({ type: 'work.failed' })).toMatchObject([
      { task: task.id, data: { what: 'remove', message: expect.stringContaining('no worktree of') } },
    ])
    expect(existsSync(join(path, 'mine'))).toBe(true)
    expect(await ground.row(task.id)).toMatchObject({ state: 'made' })
    expect((await app.owner.call('work_list')).works[0]).toMatchObject({ on_disk: 'foreign', collectable: false })
  })
})
