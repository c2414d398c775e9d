import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test as base, expect } from 'vitest'
import type { Build, Built, Git, LineOf } from '../ports/git.ts'
import { gitNow, realGit } from './git.ts'

export type Files = Record<string, string | Buffer | null>

/** A real repository with a person at work in it, at a path that a shell would not like. */
export class LineGround {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox line ünï ')))
  readonly top = join(this.folder, 'the web ☂')
  readonly env = { PATH: process.env.PATH, HOME: this.folder, GIT_CONFIG_NOSYSTEM: '1' }
  readonly git: Git

  constructor() {
    const config = '[user]\nname = ann\nemail = ann@x\n[init]\ndefaultBranch = main\n[protocol "file"]\nallow = always\n'
    writeFileSync(join(this.folder, '.gitconfig'), config)
    mkdirSync(this.top)
    this.run('init', '-q', '--template=')
    this.commit(this.top, {
      '.gitignore': 'out/\n*.log\n',
      'a.txt': 'one\ntwo\nthree\nfour\nfive\n',
      'd.txt': 'gone soon\n',
      'e.txt': 'e\n',
    })
    this.git = this.another()
  }

  another(env: NodeJS.ProcessEnv = this.env, lockWaitMs = 8_000): Git {
    return realGit({ worktrees: join(this.folder, 'work trees'), env, lockWaitMs })
  }

  /** From its nth command on, every git of this one is dead. */
  dying(n: number): Git {
    const real = execFileSync('which', ['git']).toString().trim()
    const [bin, count] = [join(this.folder, `bin-${n}`), join(this.folder, `count-${n}`)]
    mkdirSync(bin)
    mkdirSync(count)
    // Without a process of its own: to count the hundredth command by `mkdir` would start a hundred more.
    const counted = `set -C; n=1; while ! true > '${count}/'$n; do n=$((n + 1)); done 2>/dev/null; [ $n -ge ${n} ] && exit 137`
    writeFileSync(join(bin, 'git'), `#!/bin/sh\n${counted}\nexec ${real} "$@"\n`, { mode: 0o755 })
    return this.another({ ...this.env, PATH: `${bin}:${this.env.PATH}` })
  }

  /** Its fast-forward does these steps of a shell instead, of `$git` and on the way to the commit `$to`, and then every git of this one is dead. */
  killedAt(name: string, steps: string): Git {
    const real = execFileSync('which', ['git']).toString().trim()
    const [bin, dead] = [join(this.folder, `bin-${name}`), join(this.folder, `dead-${name}`)]
    mkdirSync(bin)
    const isIt = 'for arg; do [ "$arg" = merge ] && found=1; to=$arg; done'
    const script = `[ -e '${dead}' ] && exit 137\n${isIt}\n[ "$found" ] || exec ${real} "$@"\n: > '${dead}'\ngit=${real}\n${steps}\nexit 137\n`
    writeFileSync(join(bin, 'git'), `#!/bin/sh\n${script}`, { mode: 0o755 })
    return this.another({ ...this.env, PATH: `${bin}:${this.env.PATH}` })
  }

  run(...args: string[]): string {
    return this.in(this.top, ...args)
  }

  in(cwd: string, ...args: string[]): string {
    return gitNow(cwd, args, this.env).trim()
  }

  write(files: Files, cwd = this.top): void {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(cwd, name)), { recursive: true })
      if (content === null) rmSync(join(cwd, name))
      else writeFileSync(join(cwd, name), content)
    }
  }

  commit(cwd: string, files: Files): string {
    this.write(files, cwd)
    this.in(cwd, 'add', '-A')
    this.in(cwd, 'commit', '-q', '-m', 'work')
    return this.in(cwd, 'rev-parse', 'HEAD')
  }

  get main(): LineOf {
    return { repo: this.top, target: 'main', strategy: 'local' }
  }

  get epic(): LineOf {
    return { repo: this.top, target: 'signalbox/epic-1', base: 'main', strategy: 'local_if_ahead' }
  }

  async place(name: string, from = 'main'): Promise<string> {
    const path = this.git.placeFor({ repo_handle: 'web', name })
    await this.git.add({ repo: this.top, path, branch: `signalbox/${name}`, base: from, strategy: 'local' })
    return path
  }

  /** Work on a task of its own. */
  async work(name: string, files: Files, from?: string): Promise<string> {
    return this.commit(await this.place(name, from), files)
  }

  building(name: string, commit: string, onto: string, more: Partial<Build> = {}): Build {
    return {
      line: this.main,
      commit,
      onto,
      message: `${name}: done`,
      trailers: { 'Signalbox-Merge': name },
      keep: name,
      method: 'squash',
      ...more,
    }
  }

  async head(of = this.main): Promise<string> {
    const line = await this.git.line(of)
    expect(line.state).toBe('ready')
    return line.head
  }

  async build(name: string, commit: string, more: Partial<Build> = {}): Promise<Built> {
    return this.git.build(this.building(name, commit, await this.head(more.line), more))
  }

  async land(name: string, commit: string, of = this.main): Promise<string> {
    const onto = await this.head(of)
    const built = await this.git.build(this.building(name, commit, onto, { line: of }))
    if (built.result !== 'built') throw new Error(`${name}: ${JSON.stringify(built)}`)
    expect(await this.git.land(of, onto, built.commit, name)).toBe(true)
    return built.commit
  }

  /** What one task changed, adds and deletes has landed; main did not follow yet. */
  async ahead(): Promise<string> {
    return this.land('t1', await this.work('t1', { 'a.txt': 'ONE\ntwo\nthree\nfour\nfive\n', 'new/n.txt': 'new\n', 'd.txt': null }))
  }

  hasLanded(revision: string): void {
    const tree = this.run('ls-tree', '-r', '--name-only', revision).split('\n')
    expect(tree).toContain('new/n.txt')
    expect(tree).not.toContain('d.txt')
    expect(this.run('show', `${revision}:a.txt`)).toMatch(/^ONE$/m)
  }

  /** Every file with its bytes, its mode and when it was written, and what git has staged and where it stands. */
  seen(cwd = this.top): unknown {
    const files = readdirSync(cwd, { recursive: true, encoding: 'utf8' }).filter((path) => !/^\.git(?:\/|$)/.test(path))
    const facts = files.sort().map((path) => {
      const stat = lstatSync(join(cwd, path))
      const content = stat.isSymbolicLink() ? readlinkSync(join(cwd, path)) : stat.isFile() ? readFileSync(join(cwd, path), 'latin1') : ''
      return [path, stat.mode, stat.isDirectory() ? 0 : stat.mtimeMs, content]
    })
    return [facts, this.in(cwd, 'ls-files', '-s'), this.in(cwd, 'rev-parse', 'HEAD'), this.in(cwd, 'status', '--porcelain', '--branch')]
  }

  /** The person commits all that is changed: what landed is still there, in the line and then in the branch. */
  async revertsNothing(cwd = this.top): Promise<void> {
    this.in(cwd, 'commit', '-q', '-a', '--allow-empty', '-m', 'next')
    const next = this.in(cwd, 'rev-parse', 'HEAD')
    const head = await this.head()
    this.hasLanded(head)
    expect(this.run('merge-base', next, head)).toBe(next)
    this.isSound()
  }

  isSound(): void {
    expect(this.run('fsck', '--strict', '--no-dangling', '--no-progress')).toBe('')
  }

  tip(ref: string): string {
    return this.run('rev-parse', '--verify', '--quiet', ref)
  }
}

export const test = base.extend<{ ground: LineGround }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  ground: async ({}, use) => {
    const ground = new LineGround()
    await use(ground)
    rmSync(ground.folder, { recursive: true, force: true })
  },
})
