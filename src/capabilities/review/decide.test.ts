import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test as base, describe, expect } from 'vitest'
import { epicGround, epicTest as test } from '../../testing/epic-ground.ts'
import { mergeGround } from '../../testing/merge-ground.ts'
import { deferred, until } from '../../testing/signals.ts'

describe('the queue', () => {
  test('[V4] is in the order of handing in, whatever is edited meanwhile', async ({ ground }) => {
    const { app } = ground
    const [first, second] = [await ground.begun('first'), await ground.begun('second')]
    for (const work of [second, first]) {
      ground.commit(work.path, `${work.task.handle}.txt`, 'x')
      await ground.handIn(work, 'done')
    }
    expect(await ground.queue()).toEqual([second.task.handle, first.task.handle])
    await app.owner.call('task_update', { task_id: second.task.id, title: 'edited' })
    await app.owner.call('task_note', { task_id: second.task.id, body: 'x' })
    expect(await ground.queue()).toEqual([second.task.handle, first.task.handle])
    await ground.decide(second, 'request_changes', { feedback: 'More tests.' })
    expect(await ground.queue()).toEqual([first.task.handle])
    await ground.handIn(second, 'with tests')
    const { queue } = await ground.supervisor.call('review_queue', { epic_id: ground.epic.id })
    expect(queue).toMatchObject([
      { position: 1, handle: first.task.handle, round: 1, state: 'waiting', summary: 'done' },
      { position: 2, handle: second.task.handle, round: 2, pr_number: 1, branch: expect.stringContaining('signalbox/task-') },
    ])
    const loose = await app.task()
    await app.owner.call('task_move', { task_id: loose.id, status: 'IN_PROGRESS' })
    await app.owner.call('task_move', { task_id: loose.id, status: 'REVIEW' })
    expect(await ground.queue()).not.toContain(loose.handle)
    expect((await app.owner.call('review_queue')).queue.map(({ handle }: { handle: string }) => handle)).toContain(loose.handle)
    const moved = await app.owner.call('review_decide', { task_id: loose.id, decision: 'request_changes', feedback: 'no summary' })
    expect(moved).toMatchObject({ status: 'changes_requested', merged: false })
  })
})

describe('a decision', () => {
  test('[V7] about work without a change says that there was nothing to merge', async ({ ground }) => {
    const work = await ground.begun('nothing')
    await ground.handIn(work, 'it was all there')
    const decided = await ground.decide(work, 'approve')
    expect(decided).toMatchObject({ status: 'merged', merge_commit: null, message: expect.stringContaining('nothing to merge') })
    expect(ground.landed()).toEqual([])
    expect(await ground.decide(await ground.handedIn('one'), 'approve')).toMatchObject({ message: expect.stringContaining('PR merged') })
  })

  test('[V5] is not for those who work, whatever their profile', async ({ ground }) => {
    const { app } = ground
    const work = await ground.handedIn('one')
    const other = await ground.begun('two')
    const approve = { task_id: work.task.id, decision: 'approve' }
    for (const worker of [work.worker, other.worker])
      expect(await app.owner.refused('review_decide', approve, { actFor: worker })).toMatchObject({ code: 'PERMISSION_DENIED' })
    const mighty = await app.agent('worker', { profile: 'maintainer' })
    await app.owner.call('task_assign', { task_id: work.task.id, agent_id: mighty.id })
    expect(await mighty.refused('review_decide', approve)).toMatchObject({ code: 'PERMISSION_DENIED' })
    const orchestrator = await app.agent('orchestrator')
    expect(await orchestrator.refused('review_decide', approve)).toMatchObject({ code: 'PERMISSION_DENIED' })
    await app.owner.call('task_assign', { task_id: work.task.id, agent_id: orchestrator.id })
    expect(await orchestrator.refused('review_decide', approve)).toMatchObject({ code: 'PERMISSION_DENIED' })
    const stranger = await app.agent('supervisor')
    const { epic } = await app.owner.call('epic_create', { title: 'Other', start: false })
    await app.owner.call('epic_update', { epic_id: epic.id, supervisor_id: stranger.id })
    expect(await stranger.refused('review_decide', approve)).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(ground.landed()).toEqual([])
    expect((await app.owner.call('review_decide', approve)).merged).toBe(true)
    expect(await app.owner.refused('review_decide', approve)).toMatchObject({ code: 'INVALID_TRANSITION' })
  })

  test('[V6] that asks for changes leaves row, note and letter', async ({ ground }) => {
    const { app } = ground
    const work = await ground.handedIn('one')
    const incomplete = { task_id: work.task.id, decision: 'request_changes' }
    expect(await ground.supervisor.refused('review_decide', incomplete)).toMatchObject({ code: 'INVALID_INPUT' })
    const feedback = 'Missing error handling'
    expect(await ground.decide(work, 'request_changes', { feedback })).toMatchObject({
      status: 'changes_requested',
      merged: false,
      message: 'Feedback sent to worker. Task returned to IN_PROGRESS.',
    })
    const { task } = await app.owner.call('task_get', { task_id: work.task.id })
    expect(task).toMatchObject({ status: 'IN_PROGRESS', notes: [{ author: ground.supervisor.id, body: feedback }] })
    expect(await ground.letters(work.worker)).toMatchObject([{ from_id: ground.supervisor.id, body: feedback }])
    const { reviews } = await app.owner.call('review_list', { task_id: work.task.id })
    expect(reviews).toMatchObject([{ decision: 'request_changes', feedback, decided_by: ground.supervisor.id, outcome: null }])
    expect(await app.events({ type: 'review.decided' })).toMatchObject([{ actor: ground.supervisor.id, data: { round: 1 } }])
    expect(ground.landed()).toEqual([])
  })

  test('[V7] that approves merges what was approved, and then it is done', async ({ ground }) => {
    const { app } = ground
    const work = await ground.handedIn('one.txt')
    writeFileSync(join(work.path, 'draft.txt'), 'not committed')
    const approved = await ground.decide(work, 'approve')
    expect(approved).toMatchObject({ status: 'merged', merged: true, conflicts: [], rebase_requests: 0 })
    expect(approved.message).toBe('PR merged successfully. 0 rebase requests sent.')
    expect(approved.merge_commit).toBe(ground.git(ground.top, 'rev-parse', ground.epic.branch))
    expect(ground.landed()).toEqual([`${work.task.handle} one.txt`])
    expect(ground.git(ground.top, 'log', '-1', '--format=%b', ground.epic.branch)).toContain('one.txt is there')
    expect(ground.git(ground.top, 'ls-tree', '--name-only', ground.epic.branch).split('\n')).toEqual(['a.txt', 'one.txt'])
    expect((await app.owner.call('task_get', { task_id: work.task.id })).task).toMatchObject({ status: 'DONE', closed_reason: null })
    expect(ground.git(ground.top, 'status', '--porcelain')).toBe('')
    expect(existsSync(join(ground.top, 'one.txt'))).toBe(false)
    const loose = await app.task()
    await app.owner.call('task_move', { task_id: loose.id, status: 'IN_PROGRESS' })
    await app.owner.call('task_move', { task_id: loose.id, status: 'REVIEW' })
    const elsewhere = { task_id: loose.id, decision: 'approve' }
    expect(await app.owner.refused('review_decide', elsewhere)).toMatchObject({ code: 'CONFLICT' })
  })

  base('[V7] tells truly what is not merged yet, and what was committed later stays out', async () => {
    const [begun, go] = [deferred(), deferred()]
    const ground = await epicGround((real) => ({
      build: async (build) => {
        begun.resolve()
        await go.promise
        return real.build(build)
      },
    }))
    const { app } = ground
    // The merge of the first keeps that of the second waiting in line.
    const [first, work] = [await ground.handedIn('first.txt'), await ground.handedIn('one.txt')]
    const approve = { task_id: work.task.id, decision: 'approve' }
    await ground.supervisor.call('review_decide', { task_id: first.task.id, decision: 'approve' }, { holdMs: 1 })
    await begun.promise
    const pending = await ground.supervisor.call('review_decide', approve, { holdMs: 1 })
    expect(pending).toMatchObject({ status: 'pending', merged: false, merge_commit: null, resume: true })
    expect((await ground.supervisor.call('review_queue')).queue).toMatchObject([{ state: 'merging' }, { state: 'merging' }])
    expect((await app.owner.call('task_get', { task_id: work.task.id })).task.attention).toBe('merge')
    const changes = { task_id: work.task.id, decision: 'request_changes', feedback: 'x' }
    expect(await ground.supervisor.refused('review_decide', changes)).toMatchObject({ code: 'CONFLICT' })
    ground.commit(work.path, 'late.txt', 'nobody has seen it')
    const again = await ground.supervisor.call('review_decide', approve, { holdMs: 1 })
    expect(again).toMatchObject({ status: 'pending', review_id: pending.review_id })
    go.resolve()
    await until(async () => (await app.events({ type: 'merge.landed' })).length === 2)
    expect(ground.git(ground.top, 'ls-tree', '--name-only', ground.epic.branch).split('\n')).toEqual(['a.txt', 'first.txt', 'one.txt'])
    expect(ground.landed()).toHaveLength(2)
  })

  test('[V8] of what does not fit any more sends it back with the files', async ({ ground }) => {
    const { app } = ground
    const [one, two] = [await ground.handedIn('same.txt', 'one\n'), await ground.handedIn('same.txt', 'two\n')]
    await ground.decide(one, 'approve')
    expect(await ground.decide(two, 'approve')).toMatchObject({ status: 'conflict', merged: false, conflicts: ['same.txt'], log: null })
    const { task } = await app.owner.call('task_get', { task_id: two.task.id })
    expect(task.status).toBe('IN_PROGRESS')
    expect(task.notes.at(-1).body).toContain('same.txt')
    const letters = await ground.letters(two.worker)
    expect(letters.map(({ subject }) => subject).sort()).toEqual([`Conflict: ${two.task.handle}`, 'Rebase Required'])
    ground.git(two.path, 'merge', '-q', '-X', 'ours', '--no-edit', ground.epic.branch)
    await ground.handIn(two, 'resolved')
    expect(await ground.decide(two, 'approve')).toMatchObject({ status: 'merged' })
    expect(ground.git(ground.top, 'show', `${ground.epic.branch}:same.txt`)).toBe('two')
  })

  base('[V8] that git will not carry out is said, and can be made again', async () => {
    const broken = { on: true }
    const ground = await epicGround((real) => ({
      build: (build) => real.build(broken.on ? { ...build, commit: 'f'.repeat(40) } : build),
    }))
    const { app } = ground
    const work = await ground.handedIn('one.txt')
    expect(await ground.decide(work, 'approve')).toMatchObject({
      status: 'stuck',
      merged: false,
      message: expect.stringContaining('no commit'),
    })
    expect((await ground.supervisor.call('review_queue')).queue).toMatchObject([
      { state: 'stuck', reason: expect.stringContaining('no commit') },
    ])
    expect((await app.owner.call('task_get', { task_id: work.task.id })).task).toMatchObject({ status: 'REVIEW', attention: 'human' })
    broken.on = false
    expect(await ground.decide(work, 'approve')).toMatchObject({ status: 'merged' })
  })

  base('[ML17] comes with what the checks printed last, when it is red or the branch itself is', async () => {
    const at = await mergeGround('seq 100; test ! -e red.txt')
    const red = await at.handedIn('red.txt')
    const lines = Array.from({ length: 40 }, (_, n) => `${n + 61}`).join('\n')
    expect(await at.approve(red)).toMatchObject({ status: 'red', log: lines, resume: false })
    at.commit(at.top, 'red.txt', 'x')
    expect(await at.approve(await at.handedIn('one.txt'))).toMatchObject({ status: 'pending', log: lines, resume: false })
  })
})

describe('what moves it next', () => {
  test('[V4] is whoever leads the epic, and without one a person', async ({ ground }) => {
    const { app } = ground
    const work = await ground.handedIn('one')
    const attention = async () => (await app.owner.call('task_get', { task_id: work.task.id })).task.attention
    expect(await attention()).toBe('reviewer')
  })
})
