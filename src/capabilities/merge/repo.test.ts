import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test as base, describe, expect } from 'vitest'
import { type Caller, openTestApp } from '../../testing/app.ts'
import type { FakeRunner } from '../../testing/fakes/runs.ts'
import { until } from '../../testing/signals.ts'
import { WorkGround } from '../../testing/work.ts'

class Ground extends WorkGround {
  get moved(): string {
    return `${this.top}-moved`
  }

  /** Its worker goes home. */
  async idle(task_id: string): Promise<void> {
    const runs = async () => (await this.app.owner.call('run_list', { task_id })).runs
    const runner = this.app.app.kernel.parts.ports.runner as FakeRunner
    runner.exit((await runs())[0].id, 0)
    await until(async () => (await runs())[0].state === 'ended')
  }

  async work(task_id: string) {
    return (await this.app.owner.call('work_list')).works.find((work: { task_id: string }) => work.task_id === task_id)
  }
}

const test = base.extend<{ ground: Ground }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  ground: async ({}, use) => {
    const app = await openTestApp()
    await use(await new Ground(app).prepare())
    await app.close()
  },
})

describe('a repository that was moved', () => {
  test('[P15] is missed in words by every tool, and [P12] all of them go on when its new path is known', async ({ ground }) => {
    const { owner } = ground.app
    const [{ task, path }, begun] = [await ground.handedIn('one.txt'), await ground.begun('two')]
    const task_id = task.id
    await ground.idle(task_id)
    renameSync(ground.top, ground.moved)
    const missing = {
      code: 'RESOURCE_NOT_FOUND',
      message: expect.stringContaining(`There is no git repository at ${ground.top}`),
      hint: expect.stringContaining('repo_update'),
    }
    const looks = [
      ['diff_get', { task_id }],
      ['file_read', { task_id, path: 'one.txt' }],
      ['rescue_list', { task_id }],
      ['merge_submit', { task_id }],
      ['review_rebase', { task_id }],
      ['review_decide', { task_id, decision: 'approve' }],
      ['pr_create', { task_id: begun.task.id, title: 'x', description: 'x' }],
      ['epic_create', { title: 'x', base_branch: 'main', start: false }],
    ] as const
    for (const [tool, input] of looks) expect([tool, await owner.refused(tool, input)]).toEqual([tool, expect.objectContaining(missing)])
    const idle = await ground.app.task()
    expect(await owner.refused('job_submit', { task_id: idle.id, action: 'start_agent', harness: 'fake' })).toMatchObject(missing)
    const pair = await ground.app.task({ task_type: 'PAIR' })
    expect(await owner.refused('session_open', { task_id: pair.id, program: 'shell' })).toMatchObject(missing)
    expect(await owner.refused('work_undo', { task_id })).toMatchObject({ message: missing.message })
    expect(await ground.work(task_id)).toMatchObject({ on_disk: 'unknown', reason: missing.message })

    await owner.call('repo_update', { repo_id: ground.repo, path: ground.moved })
    expect(ground.git(path, 'rev-parse', '--abbrev-ref', 'HEAD')).toContain('signalbox/task-')
    expect(readFileSync(join(path, '.git'), 'utf8')).toContain(`gitdir: ${ground.moved}/.git/worktrees/`)
    expect(await ground.work(task_id)).toMatchObject({ on_disk: 'present' })
    expect((await owner.call('diff_get', { task_id })).files).toMatchObject([{ path: 'one.txt' }])
    expect(await owner.call('review_decide', { task_id, decision: 'approve' })).toMatchObject({ status: 'merged' })
    expect(existsSync(join(ground.moved, 'one.txt'))).toBe(true)
  })

  test('[P15] while its work is in the merge line is what the merge says, and it is tried again', async ({ ground }) => {
    const { owner } = ground.app
    const { task } = await ground.handedIn('one.txt')
    const { git } = ground.app.app.kernel.parts.ports
    const { line } = git
    git.line = (of) => {
      renameSync(ground.top, ground.moved)
      return line(of)
    }
    expect(await owner.call('review_decide', { task_id: task.id, decision: 'approve' })).toMatchObject({
      status: 'stuck',
      message: expect.stringContaining(`There is no git repository at ${ground.top}`),
    })
    git.line = line
    await owner.call('repo_update', { repo_id: ground.repo, path: ground.moved })
    await owner.call('merge_retry', { task_id: task.id })
    await until(async () => (await owner.call('task_get', { task_id: task.id })).task.status === 'DONE')
  })
})

describe('a repository that is removed', () => {
  test('[P13] with work that has not landed is refused with its tasks; told to close them, nothing of it is lost', async ({ ground }) => {
    const { owner } = ground.app
    const [handedIn, begun, landed] = [await ground.handedIn('one.txt'), await ground.begun('two'), await ground.handedIn('three.txt')]
    await owner.call('review_decide', { task_id: landed.task.id, decision: 'approve' })
    await owner.call('task_close', { task_id: (await ground.begun('four')).task.id, reason: 'x' })
    writeFileSync(join(handedIn.path, 'draft.txt'), 'not committed')
    const open = [`${handedIn.task.handle} (REVIEW)`, `${begun.task.handle} (IN_PROGRESS)`]
    const { epic } = await owner.call('epic_create', { title: 'Passkeys', start: false })
    const refused = await owner.refused('repo_remove', { repo_id: ground.repo })
    expect(refused).toMatchObject({ code: 'CONFLICT', hint: expect.stringContaining('close_tasks') })
    for (const name of [...open, `${epic.handle} (PLANNING)`]) expect(refused.message).toContain(name)
    expect(refused.message).not.toContain(landed.task.handle)

    const told = await owner.call('repo_remove', { repo_id: ground.repo, close_tasks: true })
    for (const name of open) expect(told.message).toContain(name)
    for (const { task } of [handedIn, begun])
      expect((await owner.call('task_get', { task_id: task.id })).task).toMatchObject({
        status: 'DONE',
        closed_reason: expect.stringContaining('web was removed'),
      })
    expect((await owner.call('epic_get', { epic_id: epic.id })).epic.state).toBe('CANCELLED')
    await allEnded(owner, begun.task.id)
    expect(await owner.refused('diff_get', { task_id: handedIn.task.id })).toMatchObject({
      code: 'RESOURCE_NOT_FOUND',
      message: expect.stringContaining('was removed'),
      hint: expect.stringContaining('repo_add'),
    })
    expect((await owner.call('merge_status')).lines).toEqual([])

    // Registered again, it is the same one: what was saved can be brought back.
    await owner.call('repo_add', { path: ground.top })
    await owner.call('work_collect')
    await until(() => !existsSync(handedIn.path))
    expect((await owner.call('rescue_list', { task_id: handedIn.task.id })).rescues).toHaveLength(1)
    expect(ground.git(ground.top, 'branch', '--list', 'signalbox/*').split('\n').length).toBeGreaterThanOrEqual(3)
  })

  test('[P13] is no place to begin: a task that is opened again says so', async ({ ground }) => {
    const { owner } = ground.app
    const { task } = await ground.begun('one')
    await owner.call('task_close', { task_id: task.id, reason: 'x' })
    await allEnded(owner, task.id)
    await owner.call('repo_remove', { repo_id: ground.repo })
    await owner.call('task_move', { task_id: task.id, status: 'BACKLOG' })
    expect(await owner.refused('job_submit', { task_id: task.id, action: 'start_agent', harness: 'fake' })).toMatchObject({
      code: 'RESOURCE_NOT_FOUND',
      hint: expect.stringContaining('repo_add'),
    })
  })
})

/** Its agent and its job: until then a task cannot be started anew. */
async function allEnded(owner: Caller, task_id: string): Promise<void> {
  await until(async () => {
    const { runs } = await owner.call('run_list', { task_id })
    const { jobs } = await owner.call('job_list', { task_id, states: ['queued', 'running'] })
    return !jobs.length && runs.every(({ state }: { state: string }) => state === 'ended')
  })
}
