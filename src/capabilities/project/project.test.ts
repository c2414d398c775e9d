import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { type TestApp, test } from '../../testing/app.ts'

const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', '-c', 'init.defaultBranch=main', ...args], {
    cwd,
    encoding: 'utf8',
    stdio: 'pipe',
  }).trim()

function repository(app: TestApp, name: string, options: { commits?: number } = {}): string {
  const path = join(app.folder, name)
  mkdirSync(path)
  git(path, 'init', '--quiet')
  for (let i = 0; i < (options.commits ?? 1); i++) git(path, 'commit', '--quiet', '--allow-empty', '--message', `c${i}`)
  return path
}

describe('projects', () => {
  test('[P1] a new project is the current one of the token that made it', async ({ app }) => {
    const { project_id, handle, project } = await app.owner.call('project_create', { name: 'Web Shop', description: 'all of it' })
    expect(project).toMatchObject({ id: project_id, handle: 'web-shop', name: 'Web Shop', description: 'all of it' })
    expect(await app.owner.call('project_list')).toMatchObject({ projects: [{ handle }], current: project_id, next: null })
    expect(await app.events({ type: 'project.created' })).toMatchObject([{ subject: project_id, project: project_id }])
  })

  test('[P2] projects of the same name have handles of their own, accepted wherever an id is', async ({ app }) => {
    const handles: string[] = []
    for (const name of ['Web', 'web!', 'WEB', '???']) handles.push((await app.owner.call('project_create', { name })).handle)
    expect(handles).toEqual(['web', 'web-2', 'web-3', 'project'])
    const { task } = await app.owner.call('task_create', { project_id: 'web-2', title: 'x' })
    expect(await app.owner.call('task_list', { project_id: 'web-2' })).toMatchObject({ tasks: [{ id: task.id }] })
    expect(await app.owner.call('task_list', { project_id: 'web' })).toMatchObject({ tasks: [] })
  })

  test('[P3] opening a project is for one token only, and survives a restart', async ({ app }) => {
    const [a, b] = [await app.owner.call('project_create', { name: 'A' }), await app.owner.call('project_create', { name: 'B' })]
    const agent = await app.agent('orchestrator')
    expect(await app.owner.call('project_open', { project_id: 'a' })).toMatchObject({ project: { id: a.project_id } })
    expect(await agent.call('project_list')).toMatchObject({ current: null })
    await agent.call('project_open', { project_id: 'b' })
    expect(await agent.call('project_list')).toMatchObject({ current: b.project_id })
    await app.reopen()
    expect(await app.owner.call('project_list')).toMatchObject({ current: a.project_id })
    expect(await app.owner.refused('project_open', { project_id: 'c' })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
  })

  test('[P4] a call that names no project means the agent’s own, the opened one or the only one; else it asks which', async ({ app }) => {
    const agent = await app.agent('orchestrator')
    expect(await agent.refused('task_create', { title: 'x' })).toMatchObject({ code: 'INVALID_INPUT', next_tool: 'project_list' })
    const a = await app.owner.call('project_create', { name: 'A' })
    expect((await agent.call('task_create', { title: 'the only one' })).task.project_id).toBe(a.project_id)
    const b = await app.owner.call('project_create', { name: 'B' })
    expect(await agent.refused('task_create', { title: 'x' })).toMatchObject({
      code: 'INVALID_INPUT',
      hint: expect.stringContaining('project_open'),
    })
    await agent.call('project_open', { project_id: b.project_id })
    expect((await agent.call('task_create', { title: 'opened' })).task.project_id).toBe(b.project_id)
    const bound = await app.agent('orchestrator', { project_id: a.project_id })
    expect((await bound.call('task_create', { title: 'own' })).task.project_id).toBe(a.project_id)
  })

  test('[P4] an agent of one project does not leave it', async ({ app }) => {
    const a = await app.owner.call('project_create', { name: 'A' })
    await app.owner.call('project_create', { name: 'B' })
    const bound = await app.agent('orchestrator', { project_id: a.project_id })
    expect(await bound.refused('project_open', { project_id: 'b' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await bound.refused('task_create', { title: 'x', project_id: 'b' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await bound.call('project_list')).toMatchObject({ current: a.project_id })
  })

  test('[P5] lists come oldest first, in pages that skip and repeat nothing', async ({ app }) => {
    const made: string[] = []
    for (let i = 0; i < 12; i++) made.push((await app.owner.call('project_create', { name: `P${i}` })).project_id)
    const seen: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await app.owner.call('project_list', { limit: 5, after })
      seen.push(...page.projects.map((project: { id: string }) => project.id))
      after = page.next ?? undefined
      if (!after) break
    }
    expect(seen).toEqual(made)
  })
})

describe('a project that is deleted', () => {
  test('[P14] is on no list and nobody’s current one, and its repositories are free for another', async ({ app }) => {
    const { project_id } = await app.owner.call('project_create', { name: 'Web' })
    const path = repository(app, 'shop')
    await app.owner.call('repo_add', { path })
    const agent = await app.agent('orchestrator', { profile: 'maintainer' })
    expect(await agent.refused('project_delete', { project_id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    await app.owner.call('project_delete', { project_id: 'web' })
    expect(await app.owner.call('project_list')).toMatchObject({ projects: [], current: null })
    expect(await app.owner.refused('task_create', { title: 'x', project_id })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect(await app.events({ type: 'project.deleted' })).toMatchObject([{ subject: project_id, data: { handle: 'web', name: 'Web' } }])
    const again = await app.owner.call('project_create', { name: 'Web' })
    expect(again.handle).toBe('web')
    expect(await app.owner.call('repo_add', { path })).toMatchObject({ repo: { project_id: again.project_id } })
  })

  test('[P14] with tasks that are open is refused with their names, unless they are to go with it', async ({ app }) => {
    const project_id = await app.project()
    const [open, done] = [await app.task(), await app.task()]
    const worker = await app.worker(open.id)
    const planner = await app.agent('orchestrator', { project_id })
    const { plan_id } = await planner.call('plan_propose', { tasks: [{ title: 'x' }] })
    await app.owner.call('task_close', { task_id: done.id, reason: 'x' })
    expect(await app.owner.refused('project_delete', { project_id })).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining(`${open.handle} (BACKLOG)`),
      hint: expect.stringContaining('with_tasks'),
    })
    const { message } = await app.owner.call('project_delete', { project_id, with_tasks: true })
    expect(message).toContain(open.handle)
    expect((await app.owner.call('task_list')).tasks).toEqual([])
    expect(await app.owner.refused('task_get', { task_id: done.id })).toMatchObject({ code: 'TASK_DELETED' })
    expect(await worker.refused('task_note', { task_id: open.id, body: 'x' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await app.events({ type: 'task.deleted' })).toMatchObject([{ subject: open.id }])
    const deleted = { code: 'RESOURCE_NOT_FOUND', message: expect.stringContaining('deleted') }
    expect(await planner.refused('task_create', { title: 'x' })).toMatchObject(deleted)
    expect(await app.owner.refused('plan_accept', { plan_id })).toMatchObject(deleted)
  })
})

describe('repositories', () => {
  test('[P6] a work tree is registered with its branch, head and remote as git has them', async ({ app }) => {
    const project = await app.project()
    const path = repository(app, 'My Shop')
    git(path, 'remote', 'add', 'origin', 'https://example.org/shop.git')
    const { repo, handle } = await app.owner.call('repo_add', { path, checks: 'npm test' })
    expect(repo).toMatchObject({
      handle: 'my-shop',
      project_id: project,
      path,
      base_branch: 'main',
      remote: 'https://example.org/shop.git',
      checks: 'npm test',
      head: git(path, 'rev-parse', 'HEAD'),
    })
    expect(await app.owner.call('repo_list', { project_id: project })).toMatchObject({ repos: [{ handle }], next: null })
    expect(await app.events({ type: 'repo.added' })).toMatchObject([{ subject: repo.id, project }])
  })

  test('[P7] one repository is registered once, by whatever path it is reached', async ({ app }) => {
    await app.project()
    const path = repository(app, 'shop')
    mkdirSync(join(path, 'src'))
    symlinkSync(path, join(app.folder, 'link'))
    await app.owner.call('repo_add', { path: join(app.folder, 'link') })
    for (const again of [path, join(path, 'src'), join(app.folder, 'link', 'src'), `${path}/../shop`]) {
      expect(await app.owner.refused('repo_add', { path: again })).toMatchObject({
        code: 'ALREADY_EXISTS',
        message: expect.stringContaining('shop'),
      })
    }
    expect((await app.owner.call('repo_list')).repos).toMatchObject([{ path }])
  })

  test('[P6] what is no work tree, has no such branch or has no branch at all is refused with the way out', async ({ app }) => {
    await app.project()
    const path = repository(app, 'shop', { commits: 2 })
    mkdirSync(join(app.folder, 'plain'))
    writeFileSync(join(app.folder, 'file'), '')
    for (const bad of [join(app.folder, 'plain'), join(app.folder, 'none'), join(app.folder, 'file'), join(path, '.git')]) {
      expect(await app.owner.refused('repo_add', { path: bad })).toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringContaining('There is no git work tree at'),
        hint: expect.stringContaining('git init'),
      })
    }
    expect(await app.owner.refused('repo_add', { path: 'shop' })).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('absolute'),
    })
    expect(await app.owner.refused('repo_add', { path, base_branch: 'develop' })).toMatchObject({
      code: 'INVALID_INPUT',
      suggestions: ['main'],
    })
    git(path, 'checkout', '--quiet', '--detach')
    expect(await app.owner.refused('repo_add', { path })).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('detached'),
    })
    expect(await app.owner.call('repo_add', { path, base_branch: 'main' })).toMatchObject({ repo: { base_branch: 'main' } })
  })

  test('[P6] a repository without a commit is refused: nothing could begin there', async ({ app }) => {
    await app.project()
    const path = repository(app, 'fresh', { commits: 0 })
    expect(await app.owner.refused('repo_add', { path })).toMatchObject({
      code: 'INVALID_INPUT',
      message: `${path} has no commit yet.`,
      hint: expect.stringContaining('git commit'),
    })
    git(path, 'commit', '--quiet', '--allow-empty', '--message', 'first')
    expect(await app.owner.call('repo_add', { path })).toMatchObject({ repo: { base_branch: 'main' } })
  })

  test.for(['-x', '--upload-pack=evil', 'a..b', 'a b', 'a~1', 'a:b', 'x.lock', '/x', 'x/', 'a//b', '@{-1}', 'a\nb', 'a\\b', '.x'])(
    '[P8] the branch name %j never reaches git',
    async (base_branch, { app }) => {
      await app.project()
      expect(await app.owner.refused('repo_add', { path: repository(app, 'shop'), base_branch })).toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringContaining('not a branch name'),
      })
    },
  )

  test('[P8] nothing that the repository configures is run when we look at it', async ({ app }) => {
    await app.project()
    const path = repository(app, 'hostile')
    const trap = join(app.folder, 'trap.sh')
    writeFileSync(trap, `#!/bin/sh\ntouch ${join(app.folder, 'sprung')}\n`, { mode: 0o755 })
    for (const key of ['core.fsmonitor', 'core.sshCommand', 'core.pager', 'core.editor', 'diff.external']) git(path, 'config', key, trap)
    git(path, 'config', 'core.hooksPath', app.folder)
    await app.owner.call('repo_add', { path })
    await app.owner.call('repo_sync', { repo_id: 'hostile' })
    expect(() => readFileSync(join(app.folder, 'sprung'))).toThrow()
  })

  test('[P9] a second look sees the new head and remote, says whether something changed, and changes nothing in the work tree', async ({
    app,
  }) => {
    await app.project()
    const path = repository(app, 'shop')
    const { repo_id } = await app.owner.call('repo_add', { path })
    expect(await app.owner.call('repo_sync', { repo_id: 'shop' })).toMatchObject({ changed: false })
    expect(await app.events({ type: 'repo.synced' })).toEqual([])
    git(path, 'commit', '--quiet', '--allow-empty', '--message', 'more')
    const before = git(path, 'for-each-ref') + git(path, 'status', '--porcelain')
    const operator = await app.agent('orchestrator')
    expect(await operator.call('repo_sync', { repo_id })).toMatchObject({ changed: true, repo: { head: git(path, 'rev-parse', 'HEAD') } })
    expect(git(path, 'for-each-ref') + git(path, 'status', '--porcelain')).toBe(before)
    expect(await app.events({ type: 'repo.synced' })).toMatchObject([{ subject: repo_id, actor: operator.id }])
  })

  test('[P9] a repository that was moved away is told apart from one that never was', async ({ app }) => {
    await app.project()
    const path = repository(app, 'shop')
    await app.owner.call('repo_add', { path })
    renameSync(path, `${path}-moved`)
    expect(await app.owner.refused('repo_sync', { repo_id: 'shop' })).toMatchObject({
      code: 'RESOURCE_NOT_FOUND',
      message: expect.stringContaining(path),
      hint: expect.stringContaining('repo_update'),
    })
    expect(await app.owner.refused('repo_update', { repo_id: 'shop', base_branch: 'main' })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect(await app.owner.refused('repo_sync', { repo_id: 'none' })).toMatchObject({
      code: 'RESOURCE_NOT_FOUND',
      message: expect.stringContaining('none'),
    })
  })

  test('[P10] only a person points Signalbox at a folder of this machine', async ({ app }) => {
    await app.project()
    const path = repository(app, 'shop')
    const agent = await app.agent('orchestrator', { profile: 'maintainer' })
    expect(await agent.refused('repo_add', { path })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[P11] a person changes checks and base branch; a branch that is not there is refused', async ({ app }) => {
    await app.project()
    const { repo_id, repo } = await app.owner.call('repo_add', { path: repository(app, 'shop') })
    const update = (fields: object) => app.owner.call('repo_update', { repo_id, ...fields })
    expect(await update({ checks: 'make' })).toMatchObject({ repo: { checks: 'make', base_branch: repo.base_branch } })
    expect(await update({ checks: null })).toMatchObject({ repo: { checks: null } })
    expect(await app.owner.refused('repo_update', { repo_id, base_branch: 'none' })).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await app.owner.refused('repo_update', { repo_id })).toMatchObject({ code: 'INVALID_INPUT' })
    const agent = await app.agent('orchestrator', { profile: 'maintainer' })
    expect(await agent.refused('repo_update', { repo_id, checks: 'true' })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[P12] a repository that was moved is found again by its new path, and only by that', async ({ app }) => {
    await app.project()
    const path = repository(app, 'shop')
    const { repo_id } = await app.owner.call('repo_add', { path })
    const move = (to: string) => ['repo_update', { repo_id, path: to }] as const
    const clone = join(app.folder, 'clone')
    git(app.folder, 'clone', '--quiet', path, clone)
    expect(await app.owner.refused(...move(clone))).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining(`still at ${path}`),
    })
    const [moved, other] = [`${path}-moved`, repository(app, 'other', { commits: 0 })]
    git(other, 'commit', '--quiet', '--allow-empty', '--message', 'of its own')
    renameSync(path, moved)
    expect(await app.owner.refused(...move(join(app.folder, 'none')))).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await app.owner.refused(...move(other))).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('another repository'),
    })
    expect(await app.owner.call(...move(moved))).toMatchObject({ repo: { path: moved, handle: 'shop', base_branch: 'main' } })
    expect(await app.owner.call('repo_sync', { repo_id })).toMatchObject({ changed: false })
    expect(await app.events({ type: 'repo.moved' })).toMatchObject([{ subject: repo_id, data: { from: path, path: moved } }])
    await app.owner.call('repo_add', { path: other })
    renameSync(moved, path)
    expect(await app.owner.refused(...move(other))).toMatchObject({ code: 'ALREADY_EXISTS' })
  })

  test('[P13] a repository that is removed is on no list, is left as it is, and comes back as the one that it was', async ({ app }) => {
    const project = await app.project()
    const path = repository(app, 'shop')
    const { repo_id } = await app.owner.call('repo_add', { path, checks: 'make' })
    const before = git(path, 'for-each-ref') + git(path, 'status', '--porcelain')
    const agent = await app.agent('orchestrator', { profile: 'maintainer' })
    expect(await agent.refused('repo_remove', { repo_id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await app.owner.call('repo_remove', { repo_id: 'shop' })).toMatchObject({ repo_id, message: expect.stringContaining(path) })
    expect(await app.events({ type: 'repo.removed' })).toMatchObject([{ subject: repo_id, project, data: { handle: 'shop', path } }])
    expect((await app.owner.call('repo_list')).repos).toEqual([])
    for (const ref of ['shop', repo_id])
      expect(await app.owner.refused('repo_sync', { repo_id: ref })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect(git(path, 'for-each-ref') + git(path, 'status', '--porcelain')).toBe(before)
    expect(await app.owner.call('repo_add', { path })).toMatchObject({ repo_id, handle: 'shop', repo: { path, checks: null } })
  })

  test('[P13] one whose folder is gone is removed too', async ({ app }) => {
    await app.project()
    const path = repository(app, 'shop')
    const { repo_id } = await app.owner.call('repo_add', { path })
    renameSync(path, `${path}-moved`)
    expect(await app.owner.call('repo_remove', { repo_id })).toMatchObject({ message: expect.stringContaining('is not there') })
    expect((await app.owner.call('repo_list')).repos).toEqual([])
  })

  test('[P6] a replay answers as the first time, also when the folder is gone by then', async ({ app }) => {
    await app.project()
    const path = repository(app, 'shop')
    const input = { path, idempotency_key: 'once' }
    const first = await app.owner.call('repo_add', input)
    renameSync(path, `${path}-moved`)
    expect(await app.owner.call('repo_add', input)).toEqual(first)
  })
})
