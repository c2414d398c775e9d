import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { Place } from '../../ports/git.ts'
import { type LineGround, test } from '../../testing/line-ground.ts'

const placeOf = (ground: LineGround, name: string): Place => ({
  repo: ground.top,
  path: ground.git.placeFor('web', name),
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

  test('[GR1] goes to the branch alone where the worktree is gone', async ({ ground }) => {
    const { place, onto } = await behind(ground)
    await ground.git.remove(place, 'task')
    expect(await ground.git.rebase(place, onto, 'task')).toMatchObject({ result: 'rebased' })
    expect(commits(ground, onto, place)).toEqual(['Bea first', 'ann work'])
    expect(existsSync(place.path)).toBe(false)
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
