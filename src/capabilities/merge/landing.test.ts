import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { mergeGround as ground, LINE } from '../../testing/merge-ground.ts'
import { until } from '../../testing/signals.ts'

// About what git and the checks make of it, whatever the engine: on PostgreSQL in the soak.

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
      message: expect.stringMatching(/signalbox merge retry --repo-id \S+ --target main$/),
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
