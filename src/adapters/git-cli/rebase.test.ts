import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { Place } from '../../ports/git.ts'
import { type LineGround, test } from '../../testing/line-ground.ts'

const placeOf = (ground: LineGround, name: string): Place => ({
  repo: ground.top,
  path: ground.git.placeFor({ repo_handle: 'web', name }),
  branch: `signalbox/${name}`,
})

/** Two commits of work, and something that landed after they were begun. */
async function behind(ground: LineGround, files: Record<string, string> = { 'e.txt': 'E\n' }) {
  const place = placeOf(ground, 'task')
  await ground.place('task')
  writeFileSync(join(place.path, 'w.txt'), 'w\n')
  ground.in(place.path, 'add', '-A')
  ground.in(place.path, 'commit', '-q', '-m', 'first', '--author=Bea <bea@x>', '--date=2026-01-02T03:04:05Z')
  const head = ground.commit(place.path, files)
  const onto = await ground.ahead()
  return { place, head, onto }
}

const commits = (ground: LineGround, onto: string, { branch }: Place) =>
  ground.run('log', '--reverse', '--format=%an %s', `${onto}..${branch}`).split('\n')

describe('a rebase', () => {
  test('[GR1] has the work on top of what landed, and saves where it was', async ({ ground }) => {
    const { place, head, onto } = await behind(ground)
    writeFileSync(join(place.path, 'untracked.txt'), 'mine\n')
    const done = await ground.git.rebase(place, onto, 'task')
    expect(done).toEqual({ result: 'rebased', head: ground.tip(place.branch) })
    expect(commits(ground, onto, place)).toEqual(['Bea first', 'ann work'])
    expect(ground.run('log', '-1', '--format=%aI', `${place.branch}~1`)).toBe('2026-01-02T03:04:05+00:00')
    ground.hasLanded(place.branch)
    expect(ground.in(place.path, 'status', '--porcelain', '--branch').split('\n')).toEqual([`## ${place.branch}`, '?? untracked.txt'])
    expect(readFileSync(join(place.path, 'a.txt'), 'utf8')).toMatch(/^ONE$/m)
    const [rescue] = await ground.git.rescues(ground.top, 'task')
    expect(ground.run('rev-parse', `${rescue?.ref}^`)).toBe(head)
    expect(await ground.git.rebase(place, onto, 'task')).toEqual({ result: 'even', head: ground.tip(place.branch) })
    expect(ground.run('for-each-ref', 'refs/signalbox/build')).toBe('')
    expect(ground.run('worktree', 'list').split('\n')).toHaveLength(3)
    ground.isSound()
  })

  test('[GR2] names the files of a conflict, and moves nothing', async ({ ground }) => {
    const { place, head, onto } = await behind(ground, { 'a.txt': 'eins\ntwo\nthree\nfour\nfive\n', 'd.txt': 'changed\n' })
    const before = ground.seen(place.path)
    expect(await ground.git.rebase(place, onto, 'task')).toEqual({ result: 'conflict', files: ['a.txt', 'd.txt'] })
    expect([ground.seen(place.path), ground.tip(place.branch)]).toEqual([before, head])
    expect(ground.run('worktree', 'list').split('\n')).toHaveLength(3)
    expect(await ground.git.rescues(ground.top, 'task')).toEqual([])
  })

  test('[GR2] refuses changes that are not committed, another checkout of the branch, and a file in the way', async ({ ground }) => {
    const { place, head, onto } = await behind(ground)
    const refuses = async (words: RegExp) => {
      const before = ground.seen(place.path)
      await expect(ground.git.rebase(place, onto, 'task')).rejects.toThrow(words)
      expect([ground.seen(place.path), ground.tip(place.branch)]).toEqual([before, head])
    }
    writeFileSync(join(place.path, 'w.txt'), 'changed\n')
    await refuses(/not committed.*w\.txt/)
    ground.in(place.path, 'checkout', '-q', '--', '.')
    mkdirSync(join(place.path, 'new'))
    writeFileSync(join(place.path, 'new/n.txt'), 'in the way\n')
    await refuses(/new\/n\.txt/)
    ground.in(place.path, 'clean', '-qfd')
    ground.in(place.path, 'checkout', '-q', '--detach')
    await refuses(/is not on signalbox\/task/)
    ground.run('checkout', '-q', place.branch)
    await refuses(/is checked out in/)
  })

  test('[GR2] leaves what git ignores, and is in the way, as it is', async ({ ground }) => {
    ground.commit(ground.top, { '.gitignore': '*.env\nout\n', 'dir/f': 'f\n' })
    const place = placeOf(ground, 'task')
    await ground.place('task')
    const head = ground.commit(place.path, { 'w.txt': 'w\n' })
    const path = await ground.place('t1')
    rmSync(join(path, 'dir'), { recursive: true })
    ground.write({ 'my.env': 'landed\n', 'out/x': 'landed\n', dir: 'now a file\n' }, path)
    ground.in(path, 'add', '-A', '-f')
    ground.in(path, 'commit', '-q', '-m', 'work')
    const onto = await ground.land('t1', ground.in(path, 'rev-parse', 'HEAD'))
    for (const [mine, named] of [
      ['my.env', 'my.env'],
      ['out', 'out'],
      ['out/x/mine', 'out/x'],
      ['dir/mine.env', 'dir'],
    ] as const) {
      ground.write({ [mine]: 'only I have this\n' }, place.path)
      const before = ground.seen(place.path)
      await expect(ground.git.rebase(place, onto, 'task')).rejects.toThrow(new RegExp(`in the way of what landed: ${named}\\.`))
      expect([ground.seen(place.path), ground.tip(place.branch)]).toEqual([before, head])
      rmSync(join(place.path, mine.startsWith('out') ? 'out' : mine), { recursive: true })
    }
    expect(await ground.git.rebase(place, onto, 'task')).toMatchObject({ result: 'rebased' })
    expect([ground.in(place.path, 'status', '--porcelain'), readFileSync(join(place.path, 'dir'), 'utf8')]).toEqual(['', 'now a file\n'])
  })

  test('[GR2] that git gives up in the middle of moves nothing, and is forgotten', async ({ ground }) => {
    ground.commit(ground.top, { '.gitattributes': '*.last filter=only\n' })
    const { place, head } = await behind(ground)
    const onto = await ground.land('t2', await ground.work('t2', { 'q.last': 'x\n' }))
    const notThere = `case "$PWD" in '${place.path}') exit 1;; *) cat;; esac`
    for (const [key, value] of Object.entries({ smudge: notThere, clean: 'cat', required: 'true' }))
      ground.run('config', '--global', `filter.only.${key}`, value)
    await expect(ground.git.rebase(place, onto, 'task')).rejects.toThrow(/q\.last/)
    expect([ground.tip(place.branch), ground.in(place.path, 'status', '--porcelain')]).toEqual([head, ''])
    expect(ground.run('for-each-ref', 'refs/signalbox/build')).toBe('')
  })

  test('[GR3] takes nothing that is left of an earlier one for its own', async ({ ground }) => {
    const { place, head, onto } = await behind(ground)
    ground.write({ 'new/n.txt': 'in the way\n' }, place.path)
    await expect(ground.git.rebase(place, onto, 'task')).rejects.toThrow(/new\/n\.txt/)
    rmSync(join(place.path, 'new'), { recursive: true })
    // The worker does it alone, and more lands.
    ground.in(place.path, 'merge', '-q', '--no-edit', onto)
    const merged = ground.in(place.path, 'rev-parse', 'HEAD')
    // What the one that failed had made, as if it had been kept.
    const made = ground.run('commit-tree', `${merged}^{tree}`, '-p', onto, '-m', 'made')
    const hash = createHash('sha256').update(place.branch).digest('hex').slice(0, 16)
    for (const name of [hash, `${hash}-${head.slice(0, 12)}`]) ground.run('update-ref', `refs/signalbox/build/rebase-${name}`, made)
    const newest = await ground.land('t2', await ground.work('t2', { 'newer.txt': 'newer\n' }))
    expect(await ground.git.rebase(place, newest, 'task')).toEqual({ result: 'rebased', head: ground.tip(place.branch) })
    expect(ground.run('merge-base', newest, place.branch)).toBe(newest)
    const files = ground.in(place.path, 'ls-files').split('\n')
    expect(files).toEqual(expect.arrayContaining(['newer.txt', 'w.txt', 'new/n.txt']))
    expect(ground.run('for-each-ref', '--contains', merged, 'refs/signalbox/rescue')).not.toBe('')
    expect([ground.in(place.path, 'status', '--porcelain'), ground.run('for-each-ref', 'refs/signalbox/build')]).toEqual(['', ''])
  })

  test('[GR3] that was cut off before the branch moved goes on to what landed since', async ({ ground }) => {
    const { place, onto } = await behind(ground)
    const lock = join(ground.top, `.git/refs/heads/${place.branch}.lock`)
    writeFileSync(lock, '')
    await expect(ground.another(ground.env, 100).rebase(place, onto, 'task')).rejects.toMatchObject({ reason: 'busy' })
    rmSync(lock)
    expect(ground.in(place.path, 'status', '--porcelain')).not.toBe('')
    const newest = await ground.land('t2', await ground.work('t2', { 'newer.txt': 'newer\n' }))
    expect(await ground.git.rebase(place, newest, 'task')).toMatchObject({ result: 'rebased' })
    expect(ground.run('merge-base', newest, place.branch)).toBe(newest)
    expect(commits(ground, newest, place)).toEqual(['Bea first', 'ann work'])
    expect(ground.in(place.path, 'status', '--porcelain')).toBe('')
  })

  test('[GR3] that is cut off at any git command is repeated to the same end, without a hook', async ({ ground }) => {
    const { place, head, onto } = await behind(ground)
    const hook = join(ground.top, '.git/hooks/post-checkout')
    mkdirSync(join(ground.top, '.git/hooks'), { recursive: true })
    writeFileSync(hook, `#!/bin/sh\ntouch '${ground.folder}/hooked'\n`, { mode: 0o755 })
    for (const name of ['pre-rebase', 'post-rewrite', 'post-commit'])
      writeFileSync(join(ground.top, '.git/hooks', name), readFileSync(hook), { mode: 0o755 })
    let cut = 0
    for (let whole = false; !whole; ) {
      cut++
      ground.in(place.path, 'reset', '-q', '--hard', head)
      whole = await ground
        .dying(cut)
        .rebase(place, onto, 'task')
        .then(
          () => true,
          () => false,
        )
      await ground.another().rebase(place, onto, 'task')
      expect([cut, commits(ground, onto, place), ground.in(place.path, 'status', '--porcelain')]).toEqual([
        cut,
        ['Bea first', 'ann work'],
        '',
      ])
    }
    expect(cut).toBeGreaterThan(10)
    expect(existsSync(join(ground.folder, 'hooked'))).toBe(false)
    expect(ground.run('for-each-ref', 'refs/signalbox/build')).toBe('')
    expect(ground.run('worktree', 'list').split('\n')).toHaveLength(3)
    ground.isSound()
  })
})
