import { execFileSync } from 'node:child_process'
import { existsSync, linkSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as base, describe, expect } from 'vitest'
import type { Git, Place } from '../../ports/git.ts'
import { gitNow, realGit } from '../../testing/git.ts'

const PATH = '.signalbox/feedback/1.md'
const DELIVERY = { path: PATH, text: 'Refuse a wrong passkey.\n', message: 'Feedback 1', trailers: { 'Signalbox-Feedback': 'feedback_1' } }

/** A real repository, and the worktree of a task in it with one commit. */
class Ground {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-deliver-')))
  readonly top = join(this.folder, 'web')
  readonly env = { PATH: process.env.PATH, HOME: this.folder, GIT_CONFIG_NOSYSTEM: '1' }
  git!: Git
  place!: Place

  async prepare(): Promise<this> {
    writeFileSync(join(this.folder, '.gitconfig'), '[user]\nname = ann\nemail = ann@x\n[init]\ndefaultBranch = main\n')
    mkdirSync(this.top)
    this.in(this.top, 'init', '-q')
    this.write(this.top, 'a.txt', 'one\n')
    this.commit(this.top)
    this.git = this.another()
    this.place = { repo: this.top, path: this.git.placeFor({ repo_handle: 'web', name: 'task-1' }), branch: 'signalbox/task-1' }
    await this.git.add({ ...this.place, base: 'main', strategy: 'local' })
    this.write(this.place.path, 'b.txt', 'b\n')
    this.commit(this.place.path)
    return this
  }

  another(env: NodeJS.ProcessEnv = this.env): Git {
    return realGit({ worktrees: join(this.folder, 'worktrees'), env, lockWaitMs: 5_000 })
  }

  /** A git of which the nth call and all later ones are not made: as if we were killed there. */
  cutOffAt(n: number): Git {
    const [real, bin, count] = [
      execFileSync('which', ['git']).toString().trim(),
      join(this.folder, `bin-${n}`),
      join(this.folder, `n-${n}`),
    ]
    mkdirSync(bin)
    writeFileSync(count, '0')
    const lines = ['#!/bin/sh', `n=$(($(cat ${count}) + 1))`, `echo $n > ${count}`, `[ $n -ge ${n} ] && exit 1`, `exec ${real} "$@"`]
    writeFileSync(join(bin, 'git'), `${lines.join('\n')}\n`, { mode: 0o755 })
    return this.another({ ...this.env, PATH: `${bin}:${this.env.PATH}` })
  }

  in(cwd: string, ...args: string[]): string {
    return gitNow(cwd, args, this.env).trimEnd()
  }

  write(cwd: string, name: string, text: string): void {
    writeFileSync(join(cwd, name), text)
  }

  commit(cwd: string): void {
    this.in(cwd, 'add', '-A')
    this.in(cwd, 'commit', '-q', '-m', 'work')
  }

  /** Subjects of the branch, newest first. */
  subjects(): string[] {
    return this.in(this.top, 'log', '--format=%s', `main..${this.place.branch}`).split('\n')
  }

  status(): string[] {
    return this.in(this.place.path, 'status', '--porcelain').split('\n').filter(Boolean)
  }
}

const test = base.extend<{ ground: Ground }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  ground: async ({}, use) => {
    const ground = await new Ground().prepare()
    await use(ground)
    rmSync(ground.folder, { recursive: true, force: true })
  },
})

describe('a delivery', () => {
  test('[GD1] is one commit with one file; what else is changed or staged stays as it is, and no hook runs', async ({ ground }) => {
    const { git, place } = ground
    for (const hook of ['pre-commit', 'commit-msg', 'post-commit', 'reference-transaction'])
      writeFileSync(join(ground.top, '.git/hooks', hook), `#!/bin/sh\ntouch ${ground.folder}/ran\nexit 1\n`, { mode: 0o755 })
    ground.write(place.path, '.gitignore', '.signalbox\n')
    ground.write(place.path, 'b.txt', 'changed\n')
    ground.write(place.path, 'staged.txt', 's\n')
    execFileSync('git', ['add', 'staged.txt'], { cwd: place.path, env: ground.env })
    const before = ground.status()
    const { commit } = await git.deliver(place, DELIVERY)
    expect(ground.in(place.path, 'rev-parse', 'HEAD')).toBe(commit)
    expect(ground.in(ground.top, 'show', '--format=%s%n%an%n%(trailers)', '--name-only', commit).split('\n')).toEqual(
      expect.arrayContaining(['Feedback 1', 'Signalbox', 'Signalbox-Feedback: feedback_1', PATH]),
    )
    expect(ground.in(ground.top, 'diff', '--name-only', `${commit}~`, commit)).toBe(PATH)
    expect(readFileSync(join(place.path, PATH), 'utf8')).toBe(DELIVERY.text)
    expect(ground.status()).toEqual(before)
    expect(existsSync(join(ground.folder, 'ran'))).toBe(false)
  })

  test('[GD2] that is cut off at any step and repeated is on the branch once, and leaves a clean worktree', async ({ ground }) => {
    const { git, place } = ground
    for (let n = 2; ; n++) {
      const delivery = { ...DELIVERY, path: `.signalbox/feedback/${n}.md`, trailers: { 'Signalbox-Feedback': `feedback_${n}` } }
      const cut = await ground
        .cutOffAt(n)
        .deliver(place, delivery)
        .catch(() => undefined)
      const { commit } = await git.deliver(place, delivery)
      expect(await git.deliver(place, delivery)).toEqual({ commit })
      expect(ground.subjects()).toHaveLength(n)
      expect(ground.status()).toEqual([])
      if (cut) return expect(n).toBeGreaterThan(8)
    }
  })

  test('[GD3] moves no branch under another checkout, nor in the middle of a rebase', async ({ ground }) => {
    const { git, place } = ground
    const head = () => ground.in(ground.top, 'rev-parse', place.branch)
    const before = head()
    ground.in(place.path, 'checkout', '-q', '--detach')
    await expect(git.deliver(place, DELIVERY)).rejects.toMatchObject({ reason: 'busy' })
    ground.in(ground.top, 'checkout', '-q', place.branch)
    await expect(git.deliver(place, DELIVERY)).rejects.toMatchObject({ reason: 'busy', message: expect.stringContaining(ground.top) })
    expect(head()).toBe(before)
    expect(ground.in(ground.top, 'status', '--porcelain')).toBe('')
  })

  test('[GD3] goes through no link', async ({ ground }) => {
    const { git, place } = ground
    const outside = join(ground.folder, 'outside')
    mkdirSync(outside)
    symlinkSync(outside, join(place.path, '.signalbox'))
    await expect(git.deliver(place, DELIVERY)).rejects.toMatchObject({ reason: 'failed' })
    expect(existsSync(join(outside, 'feedback'))).toBe(false)
    rmSync(join(place.path, '.signalbox'))
    mkdirSync(join(place.path, '.signalbox/feedback'), { recursive: true })
    writeFileSync(join(outside, 'mine'), 'mine')
    symlinkSync(join(outside, 'mine'), join(place.path, PATH))
    await expect(git.deliver(place, DELIVERY)).rejects.toMatchObject({ reason: 'failed' })
    expect(readFileSync(join(outside, 'mine'), 'utf8')).toBe('mine')
  })

  test('[GD3] writes into no file that has another name too', async ({ ground }) => {
    const { git, place } = ground
    const mine = join(ground.folder, 'mine')
    writeFileSync(mine, 'precious')
    mkdirSync(join(place.path, '.signalbox/feedback'), { recursive: true })
    for (const name of ['1.md', '.1.md.new']) linkSync(mine, join(place.path, '.signalbox/feedback', name))
    await git.deliver(place, DELIVERY)
    expect([readFileSync(mine, 'utf8'), readFileSync(join(place.path, PATH), 'utf8')]).toEqual(['precious', DELIVERY.text])
    expect(ground.status()).toEqual([])
  })

  test('[GD1] in the middle of a merge belongs to the branch, and the merge goes on', async ({ ground }) => {
    const { git, place } = ground
    ground.write(ground.top, 'b.txt', 'other\n')
    ground.commit(ground.top)
    expect(() => ground.in(place.path, 'merge', '-q', 'main')).toThrow()
    const { commit } = await git.deliver(place, DELIVERY)
    ground.write(place.path, 'b.txt', 'both\n')
    ground.commit(place.path)
    expect(ground.in(place.path, 'rev-parse', 'HEAD^1')).toBe(commit)
    expect(ground.in(place.path, 'ls-tree', '--name-only', 'HEAD', PATH)).toBe(PATH)
  })
})
