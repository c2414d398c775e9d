import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as base, describe, expect } from 'vitest'
import type { Git, Squash } from '../../ports/git.ts'
import { createGit } from './index.ts'

const EPIC = 'signalbox/epic-1'
/** Fewer than a squash tries to be faster. */
const MOVES = 6

/** A real repository with one commit, and work on branches beside it. */
class Ground {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-merge-')))
  readonly top = join(this.folder, 'web')
  readonly env = { PATH: process.env.PATH, HOME: this.folder, GIT_CONFIG_NOSYSTEM: '1' }
  readonly git: Git

  constructor() {
    writeFileSync(join(this.folder, '.gitconfig'), '[user]\nname = ann\nemail = ann@x\n[init]\ndefaultBranch = main\n')
    mkdirSync(this.top)
    this.run('init', '-q')
    this.commit(this.top, { 'a.txt': 'one\ntwo\nthree\nfour\nfive\n' })
    this.git = this.another()
  }

  another(env: NodeJS.ProcessEnv = this.env): Git {
    return createGit({ worktrees: join(this.folder, 'worktrees'), env, lockWaitMs: 30_000 })
  }

  /** With a git that moves the branch of the epic, so many times, whenever it is asked to write a commit. */
  stirred(times: number): NodeJS.ProcessEnv {
    const [real, bin, left] = [execFileSync('which', ['git']).toString().trim(), join(this.folder, 'bin'), join(this.folder, 'left')]
    mkdirSync(bin)
    writeFileSync(left, String(times))
    const lines = [
      '#!/bin/sh',
      `n=$(cat ${left})`,
      `case " $* " in *" commit-tree "*) if [ "$n" -gt 0 ]; then`,
      `  echo $((n - 1)) > ${left}`,
      `  ${real} update-ref refs/heads/${EPIC} $(${real} commit-tree ${EPIC}^{tree} -p ${EPIC} -m stirred)`,
      'fi;; esac',
      `exec ${real} "$@"`,
    ]
    writeFileSync(join(bin, 'git'), `${lines.join('\n')}\n`, { mode: 0o755 })
    return { ...this.env, PATH: `${bin}:${this.env.PATH}` }
  }

  run(...args: string[]): string {
    return this.in(this.top, ...args)
  }

  in(cwd: string, ...args: string[]): string {
    return execFileSync('git', args, { cwd, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] })
      .toString()
      .trim()
  }

  commit(cwd: string, files: Record<string, string | null>): string {
    for (const [name, content] of Object.entries(files)) {
      if (content === null) rmSync(join(cwd, name))
      else writeFileSync(join(cwd, name), content)
    }
    this.in(cwd, 'add', '-A')
    this.in(cwd, 'commit', '-q', '-m', 'work')
    return this.in(cwd, 'rev-parse', 'HEAD')
  }

  /** A task's worktree from the epic, with commits in it. */
  async work(name: string, ...commits: Record<string, string | null>[]): Promise<string> {
    await this.git.branch(this.epic)
    const place = {
      repo: this.top,
      path: this.git.placeFor('web', name),
      branch: `signalbox/${name}`,
      base: EPIC,
      strategy: 'local' as const,
    }
    const { head } = await this.git.add(place)
    return commits.reduce((_, files) => this.commit(place.path, files), head)
  }

  get epic() {
    return { repo: this.top, branch: EPIC, base: 'main', strategy: 'local_if_ahead' as const }
  }

  squash(name: string, commit: string, more: Partial<Squash> = {}): Squash {
    const trailers = { 'Signalbox-Task': name, 'Signalbox-Review': `review-${name}` }
    return { repo: this.top, commit, into: this.epic, message: `${name}: done`, trailers, ...more }
  }

  show(path: string): string {
    return this.run('show', `${EPIC}:${path}`)
  }

  commits(): string[] {
    return this.run('log', '--format=%s', `main..${EPIC}`).split('\n').filter(Boolean)
  }
}

const test = base.extend<{ ground: Ground }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  ground: async ({}, use) => {
    const ground = new Ground()
    await use(ground)
    rmSync(ground.folder, { recursive: true, force: true })
  },
})

describe('a branch of ours', () => {
  test('[GM1] is made from its base once, however many want it, and never moved', async ({ ground }) => {
    const main = ground.run('rev-parse', 'main')
    const made = await Promise.all([1, 2, 3].map(() => ground.another().branch(ground.epic)))
    expect(made.map(({ head }) => head)).toEqual([main, main, main])
    ground.commit(ground.top, { 'b.txt': 'later' })
    expect(await ground.git.branch(ground.epic)).toEqual({ head: main })
    ground.run('update-ref', 'refs/remotes/origin/main', ground.run('rev-parse', 'main'))
    ground.commit(ground.top, { 'c.txt': 'only here' })
    const remote = await ground.git.branch({ ...ground.epic, branch: 'signalbox/epic-2', strategy: 'remote' })
    expect(remote.head).toBe(ground.run('rev-parse', 'origin/main'))
    for (const branch of ['--all', 'a..b', '-x', ''])
      await expect(ground.git.branch({ ...ground.epic, branch })).rejects.toMatchObject({ reason: 'invalid' })
    await expect(ground.git.branch({ ...ground.epic, branch: 'x', base: 'none' })).rejects.toMatchObject({ reason: 'missing' })
  })
})

describe('a squash', () => {
  test('[GM2] is one commit with all of the work, made away from every checkout', async ({ ground }) => {
    const commit = await ground.work('t1', { 'b.txt': 'new\n' }, { 'a.txt': null, 'c.txt': 'more\n' })
    writeFileSync(join(ground.top, 'a.txt'), 'not committed\n')
    writeFileSync(join(ground.top, 'staged.txt'), 'x')
    ground.run('add', 'staged.txt')
    const before = [ground.run('status', '--porcelain'), ground.run('rev-parse', 'HEAD'), ground.run('rev-parse', 'main', 'signalbox/t1')]
    const squashed = await ground.git.squash(ground.squash('t1', commit, { message: 'T-1 Do it\n\nAll of it.' }))
    expect(squashed).toEqual({ result: 'merged', commit: ground.run('rev-parse', EPIC) })
    expect(ground.commits()).toEqual(['T-1 Do it'])
    expect(ground.run('ls-tree', '--name-only', EPIC).split('\n')).toEqual(['b.txt', 'c.txt'])
    expect(ground.run('log', '-1', '--format=%an|%cn|%(trailers:key=Signalbox-Task,valueonly)', EPIC)).toBe('ann|Signalbox|t1')
    expect(ground.run('rev-list', '--parents', '-1', EPIC).split(' ')).toHaveLength(2)
    expect([ground.run('status', '--porcelain'), ground.run('rev-parse', 'HEAD'), ground.run('rev-parse', 'main', 'signalbox/t1')]).toEqual(
      before,
    )
    expect(existsSync(join(ground.top, 'b.txt'))).toBe(false)
  })

  test('[GM2] of what the branch has already adds nothing', async ({ ground }) => {
    const [same, other] = [await ground.work('t1', { 'b.txt': 'new\n' }), await ground.work('t2', { 'b.txt': 'new\n' })]
    await ground.git.squash(ground.squash('t1', same))
    expect(await ground.git.squash(ground.squash('t2', other))).toEqual({ result: 'nothing', commit: ground.run('rev-parse', EPIC) })
    expect(ground.commits()).toEqual(['t1: done'])
  })

  test('[GM3] of what both sides changed moves nothing and names the files', async ({ ground }) => {
    const mine = await ground.work('t1', { 'a.txt': 'MINE\ntwo\nthree\nfour\nfive\n', 'n w.txt': 'mine' })
    const theirs = await ground.work('t2', { 'a.txt': 'THEIRS\ntwo\nthree\nfour\nfive\n', 'n w.txt': 'theirs', 'ok.txt': 'x' })
    const beside = await ground.work('t3', { 'a.txt': 'one\ntwo\nthree\nfour\nFIVE\n' })
    await ground.git.squash(ground.squash('t1', mine))
    const before = ground.run('rev-parse', EPIC)
    expect(await ground.git.squash(ground.squash('t2', theirs))).toEqual({ result: 'conflict', files: ['a.txt', 'n w.txt'] })
    expect(ground.run('rev-parse', EPIC)).toBe(before)
    expect(await ground.git.squash(ground.squash('t3', beside))).toMatchObject({ result: 'merged' })
    expect(ground.show('a.txt')).toBe('MINE\ntwo\nthree\nfour\nFIVE')
  })

  test('[GM4] that is repeated is on the branch once, whatever came after it', async ({ ground }) => {
    const [one, two] = [await ground.work('t1', { 'b.txt': 'one\n' }), await ground.work('t2', { 'b2.txt': 'two\n' })]
    const first = await ground.git.squash(ground.squash('t1', one))
    // Somebody takes it back: the effect that was cut off must not bring it back.
    await ground.git.squash(ground.squash('t2', two))
    const undone = ground.run('commit-tree', 'main^{tree}', '-p', EPIC, '-m', 'undo')
    ground.run('update-ref', `refs/heads/${EPIC}`, undone)
    expect(await ground.another().squash(ground.squash('t1', one))).toEqual(first)
    expect(ground.commits()).toEqual(['undo', 't2: done', 't1: done'])
    const round = { trailers: { 'Signalbox-Task': 't1', 'Signalbox-Review': 'review-2' } }
    expect(await ground.git.squash(ground.squash('t1', one, round))).toMatchObject({ result: 'merged' })
    expect(ground.show('b.txt')).toBe('one')
  })

  test('[GM4] of one that names another in its message is not taken for that', async ({ ground }) => {
    const [forged, work] = [await ground.work('t1', { 'b.txt': 'x\n' }), await ground.work('t2', { 'c.txt': 'y\n' })]
    await ground.git.squash(ground.squash('t1', forged, { message: 'hi\n\nsignalbox-task: t2\nSignalbox-Review: review-t2' }))
    expect(await ground.git.squash(ground.squash('t2', work))).toMatchObject({ result: 'merged' })
    expect(ground.show('c.txt')).toBe('y')
  })

  test('[GM5] does not move a branch under whoever has it checked out', async ({ ground }) => {
    const commit = await ground.work('t1', { 'b.txt': 'new\n' })
    const beside = join(ground.folder, 'beside\nhere')
    ground.run('worktree', 'add', '-q', beside, EPIC)
    const before = ground.run('rev-parse', EPIC)
    await expect(ground.git.squash(ground.squash('t1', commit))).rejects.toMatchObject({
      reason: 'busy',
      message: expect.stringContaining('checked out in'),
    })
    expect([ground.run('rev-parse', EPIC), ground.in(beside, 'status', '--porcelain')]).toEqual([before, ''])
    ground.in(beside, 'checkout', '-q', '--detach')
    expect(await ground.git.squash(ground.squash('t1', commit))).toMatchObject({ result: 'merged' })
    expect(readFileSync(join(beside, 'a.txt'), 'utf8')).toContain('one')
  })

  test('[GM6] beside others that move the branch loses nothing', async ({ ground }) => {
    const works = []
    for (const n of [1, 2, 3, 4, 5]) works.push(await ground.work(`t${n}`, { [`f${n}.txt`]: `${n}\n` }))
    // Somebody who takes no turn of ours moves it after a squash has looked, and before it moves it itself.
    const moved = MOVES
    const env = ground.stirred(moved)
    const merges = works.map((commit, i) => ground.another(env).squash(ground.squash(`t${i + 1}`, commit)))
    expect((await Promise.all(merges)).map(({ result }) => result)).toEqual(works.map(() => 'merged'))
    const subjects = ground.commits()
    expect(subjects.filter((subject) => subject !== 'stirred').sort()).toEqual([1, 2, 3, 4, 5].map((n) => `t${n}: done`))
    expect(subjects.filter((subject) => subject === 'stirred')).toHaveLength(moved)
    expect(ground.run('ls-tree', '--name-only', EPIC).split('\n')).toHaveLength(6)
  })

  test('[GM2] takes a commit in full and nothing else', async ({ ground }) => {
    for (const commit of ['HEAD', 'main', '--all', 'a'.repeat(39)])
      await expect(ground.git.squash(ground.squash('t1', commit))).rejects.toMatchObject({ reason: 'invalid' })
    await expect(ground.git.squash(ground.squash('t1', 'a'.repeat(40)))).rejects.toMatchObject({ reason: 'missing' })
  })
})
