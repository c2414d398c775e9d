import { describe, expect, test } from 'vitest'
import { type MergeGround as Ground, mergeGround as ground, LINE } from '../../testing/merge-ground.ts'
import { until } from '../../testing/signals.ts'
import type { Work } from '../../testing/work.ts'

describe('what was handed in before others landed', () => {
  /** Its worker has gone home. */
  const idle = async (at: Ground, work: Work) => {
    const [run] = (await at.app.owner.call('run_list', { task_id: work.task.id })).runs
    at.runner.exit(run.id, 0)
    await until(async () => (await at.app.owner.call('run_list', { task_id: work.task.id })).runs[0].state === 'ended')
  }
  const rebase = ({ task }: Work) => ['review_rebase', { task_id: task.id }] as const

  test('[ML12] is rebased onto it, and then approved as it is', async () => {
    const at = await ground()
    const [first, second] = [await at.handedIn('left.txt'), await at.handedIn('other.txt')]
    await at.approve(first)
    expect(await at.app.owner.refused(...rebase(second))).toMatchObject({ code: 'INVALID_AGENT_STATE' })
    await idle(at, second)
    const done = await at.app.owner.call(...rebase(second))
    const branch = at.git(second.path, 'rev-parse', '--abbrev-ref', 'HEAD')
    expect(done).toMatchObject({ status: 'rebased', commit: at.git(at.top, 'rev-parse', branch), conflicts: [] })
    expect(at.git(at.top, 'rev-list', '--count', `${LINE}..${branch}`)).toBe('1')
    expect(at.files(branch)).toEqual(['a.txt', 'left.txt', 'other.txt'])
    expect(await at.app.owner.call(...rebase(second))).toMatchObject({ status: 'even' })
    expect((await at.task(second)).status).toBe('REVIEW')
    expect(await at.approve(second)).toMatchObject({ status: 'merged' })
    expect(await at.app.owner.refused(...rebase(second))).toMatchObject({ code: 'INVALID_TRANSITION' })
  })

  test('[ML12] is not rebased with commits that were not handed in', async () => {
    const at = await ground()
    const work = await at.handedIn('left.txt')
    await at.approve(await at.handedIn('other.txt'))
    await idle(at, work)
    const head = at.commit(work.path, 'late.txt', 'nobody has read it')
    expect(await at.app.owner.refused(...rebase(work))).toMatchObject({ code: 'CONFLICT', details: { commit: head } })
    expect(at.git(work.path, 'rev-parse', 'HEAD')).toBe(head)
  })

  test('[ML12] in conflict names the files and stays; a worker may not', async () => {
    const at = await ground()
    const [first, second] = [await at.handedIn('a.txt', 'first\n'), await at.handedIn('a.txt', 'second\n')]
    await at.approve(first)
    await idle(at, second)
    const before = at.git(second.path, 'rev-parse', 'HEAD')
    const worker = await at.app.agent('worker')
    expect(await worker.refused(...rebase(second))).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await at.app.owner.call(...rebase(second))).toMatchObject({ status: 'conflict', commit: null, conflicts: ['a.txt'] })
    expect([at.git(second.path, 'rev-parse', 'HEAD'), at.git(second.path, 'status', '--porcelain')]).toEqual([before, ''])
    expect((await at.task(second)).status).toBe('REVIEW')
  })
})
