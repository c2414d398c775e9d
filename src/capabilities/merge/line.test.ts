import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EFFECT_TIMES } from '../../kernel/effect.ts'
import { openTestApp } from '../../testing/app.ts'
import { deferred, until } from '../../testing/signals.ts'
import { CheckingRunner, type Work, WorkGround } from '../../testing/work.ts'
import { inOrder, MOST_PASSED_OVER } from './order.ts'

/** Green: `red.txt` is not there, and neither are `left.txt` and `right.txt` both. */
const CHECKS = 'ls; test ! -e red.txt && { test ! -e left.txt || test ! -e right.txt; }'

class Ground extends WorkGround {
  readonly runner: CheckingRunner

  constructor(app: WorkGround['app'], runner: CheckingRunner) {
    super(app)
    this.runner = runner
  }

  approve({ task }: Work) {
    return this.app.owner.call('review_decide', { task_id: task.id, decision: 'approve' })
  }

  async line() {
    return (await this.app.owner.call('merge_status', { repo_id: this.repo })).lines[0]
  }

  async task({ task }: Work) {
    return (await this.app.owner.call('task_get', { task_id: task.id })).task
  }

  files(branch: string): string[] {
    return this.git(this.top, 'ls-tree', '--name-only', branch).split('\n')
  }
}

async function ground(checks: string | undefined = CHECKS): Promise<Ground> {
  const runner = new CheckingRunner()
  const app = await openTestApp({ ports: { runner }, effectTimes: { ...EFFECT_TIMES, backOffMs: 1 } })
  onTestFinished(() => app.close())
  return new Ground(app, runner).prepare(checks ? { checks } : {})
}

const LINE = 'refs/signalbox/line/main'

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
  test('[ML2] is green on the merged tree; what is red goes back to its worker with what was printed', async () => {
    const at = await ground()
    const [left, right] = [await at.handedIn('left.txt'), await at.handedIn('right.txt')]
    expect(await at.approve(left)).toMatchObject({ status: 'merged' })
    const before = at.git(at.top, 'rev-parse', LINE)
    expect(await at.approve(right)).toMatchObject({ status: 'red', merged: false, message: expect.stringContaining('went back') })
    expect(at.git(at.top, 'rev-parse', LINE, 'main')).toBe(`${before}\n${before}`)
    expect((await at.task(right)).status).toBe('IN_PROGRESS')
    const [letter] = (await at.letters(right.worker)).filter(({ subject }) => subject.startsWith('Checks failed'))
    expect(letter?.body).toContain('left.txt')
    expect((await at.line()).ended[0]).toMatchObject({ state: 'red', log: expect.stringContaining('right.txt') })
    at.git(right.path, 'rm', '-q', 'right.txt')
    at.commit(right.path, 'other.txt', 'x')
    await at.handIn(right, 'without it')
    expect(await at.approve(right)).toMatchObject({ status: 'merged' })
    expect(at.files('main')).toEqual(['a.txt', 'left.txt', 'other.txt'])
  })

  test('[ML17] comes with what the checks printed last, when it is red or the branch itself is', async () => {
    const at = await ground('seq 100; test ! -e red.txt')
    const red = await at.handedIn('red.txt')
    const lines = Array.from({ length: 40 }, (_, n) => `${n + 61}`).join('\n')
    expect(await at.approve(red)).toMatchObject({ status: 'red', log: lines, resume: false })
    at.commit(at.top, 'red.txt', 'x')
    expect(await at.approve(await at.handedIn('one.txt'))).toMatchObject({ status: 'pending', log: lines, resume: false })
  })

  test('[ML3] is asked once more when it is red, so that a check that fails by chance blames nobody', async () => {
    const at = await ground()
    const flag = join(at.app.folder, 'failed-once')
    await at.app.owner.call('repo_update', { repo_id: at.repo, checks: `test -e '${flag}' || { touch '${flag}'; exit 1; }` })
    expect(await at.approve(await at.handedIn('one.txt'))).toMatchObject({ status: 'merged' })
    expect(at.runner.checks).toBe(2)
  })

  test('[ML4] waits while the branch itself is red: nobody who waits is to blame, and a person is told', async () => {
    const at = await ground()
    at.commit(at.top, 'red.txt', 'x')
    const work = await at.handedIn('one.txt')
    await at.app.owner.call('merge_submit', { task_id: work.task.id })
    await until(async () => (await at.line()).held !== null)
    expect(await at.line()).toMatchObject({ held: expect.stringContaining('main itself'), waiting: [{ state: 'waiting' }] })
    const again = { task_id: work.task.id, decision: 'approve' }
    expect(await at.app.owner.call('review_decide', again)).toMatchObject({
      status: 'pending',
      message: expect.stringMatching(/merge_retry --repo-id \S+ --target main$/),
    })
    expect(await at.task(work)).toMatchObject({ status: 'REVIEW', attention: 'human' })
    expect((await at.app.owner.call('mail_inbox')).letters[0]).toMatchObject({ subject: 'Nothing lands on main', from_id: 'system' })
    const held = { repo_id: at.repo, target: 'main' }
    const agent = await at.app.agent('supervisor')
    expect(await agent.refused('merge_retry', held)).toMatchObject({ code: 'PERMISSION_DENIED' })
    at.git(at.top, 'rm', '-q', 'red.txt')
    at.git(at.top, 'commit', '-q', '-m', 'mended')
    await at.app.owner.call('merge_retry', held)
    await until(async () => (await at.task(work)).status === 'DONE')
    expect(await at.line()).toMatchObject({ held: null, waiting: [], behind: 0 })
    expect(await at.app.owner.refused('merge_retry', held)).toMatchObject({ code: 'CONFLICT' })
  })

  test('[ML5] is checked again when people move the branch meanwhile, and takes nothing of theirs back', async () => {
    const at = await ground()
    const work = await at.handedIn('left.txt')
    const moves = [() => at.commit(at.top, 'theirs.txt', 'x'), () => at.commit(at.top, 'more.txt', 'x')]
    at.runner.beforeCheck = () => void moves.shift()?.()
    expect(await at.approve(work)).toMatchObject({ status: 'merged' })
    expect(at.runner.checks).toBe(3)
    expect(at.files('main')).toEqual(['a.txt', 'left.txt', 'more.txt', 'theirs.txt'])
    expect(at.git(at.top, 'status', '--porcelain')).toBe('')
    // What the move brings may be what makes it red.
    const other = await at.handedIn('another.txt')
    at.runner.beforeCheck = () => {
      at.runner.beforeCheck = () => {}
      at.commit(at.top, 'right.txt', 'x')
    }
    await at.app.owner.call('merge_submit', { task_id: other.task.id })
    await until(async () => (await at.line()).held !== null)
    expect(at.landed('main')).toHaveLength(1)
  })

  test('[ML6] is followed by the branch where that harms nobody; repo_sync brings the rest', async () => {
    const at = await ground()
    const [one, two] = [await at.handedIn('one.txt'), await at.handedIn('two.txt')]
    await at.approve(one)
    expect(existsSync(join(at.top, 'one.txt'))).toBe(true)
    writeFileSync(join(at.top, 'a.txt'), 'mine, not committed')
    const behindNow = expect.stringMatching(/main is 1 behind.*a\.txt.*repo_sync web/)
    expect(await at.approve(two)).toMatchObject({ status: 'merged', behind: 1, message: behindNow })
    expect(existsSync(join(at.top, 'two.txt'))).toBe(false)
    expect(readFileSync(join(at.top, 'a.txt'), 'utf8')).toBe('mine, not committed')
    const behind = await at.line()
    expect(behind).toMatchObject({ behind: 1, behind_reason: expect.stringContaining(at.top) })
    const sync = () => at.app.owner.call('repo_sync', { repo_id: at.repo })
    expect(await sync()).toMatchObject({ branches: [{ target: 'main', behind: 1 }], message: expect.stringContaining('main is 1 behind') })
    // Who begins now begins with what has landed, not with what the branch has.
    const third = await at.handedIn('third.txt')
    expect(existsSync(join(third.path, 'two.txt'))).toBe(true)
    expect(await at.app.owner.call('merge_submit', { task_id: third.task.id })).toMatchObject({ behind: 1, message: behindNow })
    await until(async () => (await at.line()).waiting.length === 0)
    at.git(at.top, 'checkout', '-q', '--', 'a.txt')
    expect(await sync()).toMatchObject({ branches: [{ behind: 0, reason: null }], message: 'Everything is up to date.' })
    expect(existsSync(join(at.top, 'two.txt'))).toBe(true)
    const fourth = await at.handedIn('fourth.txt')
    expect(await at.approve(fourth)).toMatchObject({ behind: 0, message: expect.not.stringContaining('behind') })
    expect(await at.line()).toMatchObject({ behind: 0, behind_reason: null })
  })

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

  test('[ML14] goes back also when its checks print what no database stores', async () => {
    const at = await ground()
    await at.app.owner.call('repo_update', { repo_id: at.repo, checks: "test ! -e bad.txt || { printf 'a\\000b\\355c'; exit 1; }" })
    expect(await at.approve(await at.handedIn('bad.txt'))).toMatchObject({ status: 'red' })
    expect((await at.line()).ended[0].log).toContain('a\ufffdb')
  })

  test('[ML4] is not blamed for a branch that other checks found green', async () => {
    const at = await ground('')
    await at.approve(await at.handedIn('one.txt'))
    await at.app.owner.call('repo_update', { repo_id: at.repo, checks: 'test ! -e one.txt' })
    const innocent = await at.handedIn('two.txt')
    await at.app.owner.call('merge_submit', { task_id: innocent.task.id })
    await until(async () => (await at.line()).held !== null)
    expect(await at.task(innocent)).toMatchObject({ status: 'REVIEW', attention: 'human' })
  })

  test('[ML6] is followed by a branch on which somebody has committed since', async () => {
    const at = await ground()
    writeFileSync(join(at.top, 'a.txt'), 'mine\n')
    const theirs = () => at.git(at.top, 'commit', '-q', '-a', '-m', 'theirs')
    const [first, second] = [await at.handedIn('one.txt'), await at.handedIn('two.txt')]
    await at.approve(first)
    expect(await at.line()).toMatchObject({ behind: 1 })
    theirs()
    expect(await at.app.owner.call('repo_sync', { repo_id: at.repo })).toMatchObject({ branches: [{ target: 'main', behind: 0 }] })
    expect(at.files('main')).toEqual(['a.txt', 'one.txt'])
    at.runner.beforeCheck = () => writeFileSync(join(at.top, 'a.txt'), 'mine again\n')
    await at.approve(second)
    theirs()
    await at.app.owner.call('repo_sync', { repo_id: at.repo })
    expect([at.files('main'), at.git(at.top, 'show', 'main:a.txt')]).toEqual([['a.txt', 'one.txt', 'two.txt'], 'mine again'])
    expect(at.git(at.top, 'rev-parse', 'main')).toBe(at.git(at.top, 'rev-parse', LINE))
    at.git(at.top, 'commit', '-q', '--allow-empty', '-m', 'theirs alone')
    await at.app.owner.call('repo_sync', { repo_id: at.repo })
    expect(at.git(at.top, 'rev-parse', LINE)).toBe(at.git(at.top, 'rev-parse', 'main'))
  })

  test('[V7] is what was handed in: what was committed later is approved only by name', async () => {
    const at = await ground()
    const work = await at.handedIn('one.txt')
    const head = at.commit(work.path, 'late.txt', 'nobody has read it')
    const approve = { task_id: work.task.id, decision: 'approve' }
    expect(await at.app.owner.refused('review_decide', approve)).toMatchObject({ code: 'CONFLICT', details: { commit: head } })
    expect(await at.app.owner.refused('merge_submit', { task_id: work.task.id })).toMatchObject({ code: 'CONFLICT' })
    expect(await at.app.owner.refused('review_decide', { ...approve, commit: 'f'.repeat(12) })).toMatchObject({ code: 'CONFLICT' })
    expect(await at.app.owner.call('review_decide', { ...approve, commit: head.slice(0, 12) })).toMatchObject({ status: 'merged' })
    expect(at.files('main')).toEqual(['a.txt', 'late.txt', 'one.txt'])
  })

  test('[P13] leaves no checkout of ours registered in a repository that is removed', async () => {
    const at = await ground()
    expect(await at.approve(await at.handedIn('one.txt'))).toMatchObject({ merged: true })
    const registered = () => at.git(at.top, 'worktree', 'list')
    expect(registered()).toContain('.scratch')
    await at.app.owner.call('repo_remove', { repo_id: at.repo, close_tasks: true })
    await until(() => !registered().includes('.scratch'))
  })

  test('[ML10] needs no checks where a repository has none', async () => {
    const at = await ground('')
    expect(await at.approve(await at.handedIn('one.txt'))).toMatchObject({ status: 'merged' })
    rmSync(join(at.top, 'one.txt'))
    expect(at.runner.checks).toBe(0)
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

  test('[ML13] lands as one commit, or with its own where the setting says so', async () => {
    const at = await ground()
    const parents = () => at.git(at.top, 'log', '-1', '--format=%P', 'main').split(' ')
    await at.approve(await at.handedIn('left.txt'))
    expect(parents()).toHaveLength(1)
    await at.app.owner.call('setting_update', { key: 'merge.method', value: 'merge' })
    const work = await at.handedIn('other.txt')
    const head = at.git(work.path, 'rev-parse', 'HEAD')
    const before = at.git(at.top, 'rev-parse', 'main')
    await at.approve(work)
    expect(parents()).toEqual([before, head])
    expect(at.files('main')).toEqual(['a.txt', 'left.txt', 'other.txt'])
  })
})
