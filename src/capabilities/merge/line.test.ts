import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type MergeGround as Ground, mergeGround as ground } from '../../testing/merge-ground.ts'
import { deferred, until } from '../../testing/signals.ts'
import type { Work } from '../../testing/work.ts'
import { inOrder, MOST_PASSED_OVER } from './order.ts'

describe('the order', () => {
  const waiting = (number: number, priority: number, passed_over = 0, state = 'waiting') =>
    ({ number, priority, passed_over, state }) as Parameters<typeof inOrder>[0][number]

  test('[ML1] is by priority, then first come, first served; what was begun goes on, and nobody is passed over for ever', () => {
    const numbers = (...merges: ReturnType<typeof waiting>[]) => inOrder(merges).map(({ number }) => number)
    expect(numbers(waiting(3, 1), waiting(1, 1), waiting(2, 2))).toEqual([2, 1, 3])
    expect(numbers(waiting(1, 0, MOST_PASSED_OVER - 1), waiting(2, 3))).toEqual([2, 1])
    expect(numbers(waiting(1, 0, MOST_PASSED_OVER), waiting(2, 3))).toEqual([1, 2])
    expect(numbers(waiting(1, 3), waiting(2, 0, 0, 'checking'), waiting(3, 0, 99))).toEqual([2, 3, 1])
  })

  test('[ML1] holds while others come, and is shown', async () => {
    const at = await ground()
    const go = deferred()
    at.runner.beforeCheck = () => go.promise
    const low = await at.handedIn('low.txt', 'x', { priority: 'low' })
    const [later, urgent] = [
      await at.handedIn('later.txt', 'x', { priority: 'low' }),
      await at.handedIn('urgent.txt', 'x', { priority: 'high' }),
    ]
    const submit = (work: Work) => at.app.owner.call('merge_submit', { task_id: work.task.id })
    const first = await submit(low)
    expect(first).toMatchObject({ state: 'waiting', target: 'main' })
    await until(async () => (await at.line()).waiting[0]?.state === 'checking')
    for (const work of [later, urgent]) await submit(work)
    const { waiting } = await at.line()
    expect(waiting.map(({ handle, position }: { handle: string; position: number }) => [position, handle])).toEqual([
      [1, low.task.handle],
      [2, urgent.task.handle],
      [3, later.task.handle],
    ])
    expect(await submit(low)).toMatchObject({ merge_id: first.merge_id, state: 'checking' })
    expect((await at.task(low)).attention).toBe('merge')
    go.resolve()
    await until(async () => (await at.line()).waiting.length === 0)
    expect(at.landed('main').reverse()).toEqual([low, urgent, later].map(({ task }) => `${task.handle} ${task.title}`))
    expect((await at.line()).ended.map(({ state }: { state: string }) => state)).toEqual(['landed', 'landed', 'landed'])
  })
})

describe('what lands', () => {
  test('[ML7] is what is still wanted: a task that was closed while it waited is taken out', async () => {
    const at = await ground()
    const go = deferred()
    at.runner.beforeCheck = () => go.promise
    const [first, closed] = [await at.handedIn('one.txt'), await at.handedIn('two.txt')]
    for (const { task } of [first, closed]) await at.app.owner.call('merge_submit', { task_id: task.id })
    await until(async () => (await at.line()).waiting[0]?.state === 'checking')
    await at.app.owner.call('task_close', { task_id: closed.task.id, reason: 'not wanted' })
    go.resolve()
    await until(async () => (await at.line()).waiting.length === 0)
    expect((await at.line()).ended.map(({ state }: { state: string }) => state)).toEqual(['withdrawn', 'landed'])
    expect(at.landed('main')).toHaveLength(1)
  })

  test('[ML8] can be tried again by whoever decides, as it was approved', async () => {
    const at = await ground()
    const flag = join(at.app.folder, 'service-is-up')
    await at.app.owner.call('repo_update', { repo_id: at.repo, checks: `test ! -e one.txt || test -e '${flag}'` })
    const work = await at.handedIn('one.txt')
    const again = { task_id: work.task.id }
    expect(await at.app.owner.refused('merge_retry', again)).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect(await at.approve(work)).toMatchObject({ status: 'red' })
    expect(await at.app.owner.refused('merge_retry', again, { actFor: work.worker })).toMatchObject({ code: 'PERMISSION_DENIED' })
    at.commit(work.path, 'late.txt', 'nobody has seen it')
    writeFileSync(flag, '')
    await at.app.owner.call('merge_retry', again)
    await until(async () => (await at.task(work)).status === 'DONE')
    expect(at.files('main')).toEqual(['a.txt', 'one.txt'])
    expect(await at.app.owner.refused('merge_retry', again)).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('landed') })
  })

  test('[ML8] [ML15] is tried again and taken out by those who decide, and by no other agent', async () => {
    const at = await ground()
    const work = await at.handedIn('red.txt')
    expect(await at.approve(work)).toMatchObject({ status: 'red' })
    const orchestrator = await at.app.agent('orchestrator')
    for (const tool of ['merge_retry', 'merge_cancel'] as const)
      expect(await orchestrator.refused(tool, { task_id: work.task.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[ML8] says whether it may be tried again: not when its worker has handed in since, nor when its task is closed', async () => {
    const at = await ground()
    const work = await at.handedIn('red.txt')
    expect(await at.approve(work)).toMatchObject({ status: 'red' })
    const mayBe = async () => (await at.line()).ended[0].can_retry
    expect(await mayBe()).toBe(true)
    await at.handIn(work, 'the same once more')
    expect(await mayBe()).toBe(false)
    expect(await at.app.owner.refused('merge_retry', { task_id: work.task.id })).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('handed in again'),
    })
    expect(await at.approve(work)).toMatchObject({ status: 'red' })
    expect(await mayBe()).toBe(true)
    await at.app.owner.call('task_close', { task_id: work.task.id, reason: 'Not needed' })
    expect(await mayBe()).toBe(false)
    expect(await at.app.owner.refused('merge_retry', { task_id: work.task.id })).toMatchObject({ code: 'INVALID_TRANSITION' })
  })

  test('[ML9] is found again after a restart in the middle of its checks, which are not begun anew', async () => {
    const at = await ground()
    const go = deferred()
    at.runner.beforeCheck = () => go.promise
    const work = await at.handedIn('one.txt')
    await at.app.owner.call('merge_submit', { task_id: work.task.id })
    await until(async () => (await at.line()).waiting[0]?.state === 'checking')
    await at.app.reopen()
    go.resolve()
    await until(async () => (await at.task(work)).status === 'DONE')
    expect(at.runner.checks).toBe(1)
    expect(at.landed('main')).toHaveLength(1)
  })

  test('[ML9] runs its second try where the first one left nothing [ML2], also when the daemon is gone in between', async () => {
    const at = await ground()
    await at.app.owner.call('repo_update', {
      repo_id: at.repo,
      checks: 'test ! -e one.txt -a ! -e two.txt || cat made.txt || { echo x > made.txt; exit 1; }',
    })
    expect(await at.approve(await at.handedIn('one.txt'))).toMatchObject({ status: 'red' })
    // The third is that of the branch alone.
    expect(at.runner.checks).toBe(3)
    const [second, go] = [deferred(), deferred()]
    at.runner.beforeCheck = () => {
      if (at.runner.checks !== 5) return
      second.resolve()
      return go.promise
    }
    const work = await at.handedIn('two.txt')
    await at.app.owner.call('merge_submit', { task_id: work.task.id })
    await second.promise
    await at.app.reopen()
    go.resolve()
    await until(async () => (await at.line()).waiting.length === 0)
    expect(at.runner.checks).toBe(6)
    expect((await at.line()).ended[0]).toMatchObject({ state: 'red' })
  })
})

describe('checks that hang', () => {
  const NEVER = new Promise<void>(() => {})

  /** Work whose checks have begun and do not end. */
  async function hanging(at: Ground, file = 'one.txt'): Promise<Work & { decided: Promise<unknown> }> {
    const begun = deferred()
    at.runner.beforeCheck = () => {
      begun.resolve()
      return NEVER
    }
    const work = await at.handedIn(file)
    const decided = at.app.owner.call('review_decide', { task_id: work.task.id, decision: 'approve' })
    // Cut off where a test reopens the app.
    decided.catch(() => {})
    await begun.promise
    at.runner.beforeCheck = () => {}
    return { ...work, decided }
  }
  const checksLeft = (at: Ground) => at.runner.living.filter((run) => run.startsWith('check-'))

  test('[ML15] are ended by merge_cancel: the entry is out at once, the next one lands, and it can be decided anew', async () => {
    const at = await ground()
    const work = await hanging(at)
    const next = await at.handedIn('two.txt')
    await at.app.owner.call('merge_submit', { task_id: next.task.id })
    const cancel = { task_id: work.task.id, reason: 'It hangs' }
    expect(await at.app.owner.refused('merge_cancel', cancel, { actFor: work.worker })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await at.app.owner.call('merge_cancel', cancel)).toMatchObject({
      message: expect.stringContaining(`${work.task.handle} is out of the merge line`),
    })
    expect((await at.line()).ended).toMatchObject([{ handle: work.task.handle, state: 'withdrawn', reason: 'It hangs', can_retry: true }])
    await until(async () => (await at.task(next)).status === 'DONE')
    expect(checksLeft(at)).toEqual([])
    expect(at.files('main')).toEqual(['a.txt', 'two.txt'])
    expect(await at.task(work)).toMatchObject({ status: 'REVIEW', attention: 'human' })
    expect(await at.app.owner.refused('merge_cancel', cancel)).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('taken out'),
    })
    expect(await at.approve(work)).toMatchObject({ status: 'merged' })
    expect(await at.app.owner.refused('merge_cancel', cancel)).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('landed'),
    })
  })

  test('[ML15] keep nobody from sending it back: the refusal names merge_cancel', async () => {
    const at = await ground()
    const work = await hanging(at)
    const task_id = work.task.id
    const back = { task_id, decision: 'request_changes', feedback: 'Mend the checks' }
    const cancel = { next_tool: 'merge_cancel', next_arguments: { task_id: work.task.handle } }
    expect(await at.app.owner.refused('review_decide', back)).toMatchObject({ code: 'CONFLICT', ...cancel })
    expect(await at.app.owner.refused('merge_retry', { task_id })).toMatchObject({ code: 'CONFLICT', ...cancel })
    await at.app.owner.call('merge_cancel', { task_id })
    expect(await at.app.owner.call('review_decide', back)).toMatchObject({ status: 'changes_requested' })
  })

  test.for([
    ['task_close', { reason: 'Not needed' }],
    ['task_delete', {}],
    ['review_abandon', { reason: 'Another way' }],
    ['task_move', { status: 'IN_PROGRESS' }],
  ] as const)('[ML7] are ended by %s, and not begun again', async ([tool, more]) => {
    const at = await ground()
    const work = await hanging(at)
    const begin = { tool: 'job_submit', input: { task_id: work.task.id, action: 'start_agent' } }
    expect(await at.app.owner.refused(begin.tool, begin.input)).toMatchObject({ code: 'CONFLICT', next_tool: 'merge_cancel' })
    await at.app.owner.call(tool, { task_id: work.task.id, ...more })
    expect(await work.decided).toMatchObject({ status: 'stuck', message: expect.stringMatching(/^[^.]+\. It did not land\.$/) })
    // Moved by hand it leaves the line at the next look at it, which is now.
    if (tool !== 'task_move') expect((await at.line()).waiting).toEqual([])
    await until(async () => !checksLeft(at).length && !(await at.line()).waiting.length)
    expect((await at.line()).ended[0]).toMatchObject({ state: 'withdrawn' })
    expect(await at.approve(await at.handedIn('two.txt'))).toMatchObject({ status: 'merged' })
    expect(at.runner.checks).toBe(2)
    expect(at.files('main')).toEqual(['a.txt', 'two.txt'])
  })

  test('[ML7] do not go on beside those of the next one when the daemon was killed before it had ended them', async () => {
    const at = await ground()
    const work = await hanging(at)
    const stop = at.runner.stop
    at.runner.stop = () => NEVER as never
    await at.app.owner.call('merge_cancel', { task_id: work.task.id })
    await at.app.reopen(() => {
      expect(checksLeft(at)).toHaveLength(1)
      at.runner.stop = stop
    })
    expect(await at.approve(await at.handedIn('two.txt'))).toMatchObject({ status: 'merged' })
    expect(checksLeft(at)).toEqual([])
  })

  test('[ML16] end when other checks are set, which are run in their place', async () => {
    const at = await ground()
    const work = await hanging(at)
    await at.app.owner.call('repo_update', { repo_id: at.repo, checks: 'echo the new ones; exit 1' })
    await until(async () => (await at.line()).held !== null)
    expect((await at.line()).waiting[0].log).toContain('the new ones')
    await at.app.owner.call('repo_update', { repo_id: at.repo, checks: null })
    await at.app.owner.call('merge_retry', { repo_id: at.repo, target: 'main' })
    await until(async () => (await at.task(work)).status === 'DONE')
    expect(checksLeft(at)).toEqual([])
  })

  test('[ML16] end when other checks were set while the daemon was away', async () => {
    const at = await ground()
    const work = await hanging(at)
    const [check] = checksLeft(at)
    at.runner.kept.set(`${check}/check.json`, JSON.stringify({ command: 'what was set before', limit_ms: 1_800_000 }))
    await at.app.reopen()
    await until(async () => (await at.task(work)).status === 'DONE')
    expect(checksLeft(at)).toEqual([])
  })

  test('[ML16] end at a limit that was set while they ran', async () => {
    const at = await ground()
    const work = await hanging(at)
    at.runner.beforeCheck = () => NEVER
    await at.app.owner.call('setting_update', { key: 'merge.checks_minutes', value: 0.01 })
    await until(async () => (await at.line()).held !== null)
    expect((await at.line()).held).toContain('0.01 minutes')
    expect((await at.task(work)).status).toBe('REVIEW')
    expect(checksLeft(at)).toEqual([])
  })

  test('[ML16] are run again when the limit that ended them was raised meanwhile', async () => {
    const at = await ground()
    const work = await hanging(at)
    const [check] = checksLeft(at)
    const limits: (number | null)[] = []
    at.runner.beforeCheck = ({ wallClockMs }) => void limits.push(wallClockMs)
    await at.app.owner.call('setting_update', { key: 'merge.checks_minutes', value: 60 })
    at.runner.exit(String(check), null, { reason: 'wall_clock' })
    await until(async () => (await at.task(work)).status === 'DONE')
    expect(limits).toEqual([3_600_000])
  })
})
