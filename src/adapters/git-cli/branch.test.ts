import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as base, describe, expect } from 'vitest'
import type { Git } from '../../ports/git.ts'
import { createGit } from './index.ts'

const EPIC = 'signalbox/epic-1'

/** A real repository with one commit. */
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

  run(...args: string[]): string {
    return this.in(this.top, ...args)
  }

  in(cwd: string, ...args: string[]): string {
    return execFileSync('git', args, { cwd, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] })
      .toString()
      .trim()
  }

  commit(cwd: string, files: Record<string, string>): string {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), content)
    this.in(cwd, 'add', '-A')
    this.in(cwd, 'commit', '-q', '-m', 'work')
    return this.in(cwd, 'rev-parse', 'HEAD')
  }

  get epic() {
    return { repo: this.top, branch: EPIC, base: 'main', strategy: 'local_if_ahead' as const }
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
