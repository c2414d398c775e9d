import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test as base, describe, expect } from 'vitest'
import type { Build, Built, Git, LineOf } from '../../ports/git.ts'
import { createGit } from './index.ts'

const LINE = 'refs/signalbox/line/main'
const LONG = Array.from({ length: 12 }, (_, n) => `${n}${'x'.repeat(200)}`).join('/')

type Files = Record<string, string | Buffer | null>

/** A real repository with a person at work in it, at a path that a shell would not like. */
class Ground {
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
    return createGit({ worktrees: join(this.folder, 'work trees'), env, lockWaitMs })
  }

  run(...args: string[]): string {
    return this.in(this.top, ...args)
  }

  in(cwd: string, ...args: string[]): string {
    return execFileSync('git', args, { cwd, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] })
      .toString()
      .trim()
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
    const path = this.git.placeFor('web', name)
    await this.git.add({ repo: this.top, path, branch: `signalbox/${name}`, base: from, strategy: 'local' })
    return path
  }

  /** Work on a task of its own. */
  async work(name: string, files: Files, from?: string): Promise<string> {
    return this.commit(await this.place(name, from), files)
  }

  building(name: string, commit: string, onto: string, more: Partial<Build> = {}): Build {
    return { line: this.main, commit, onto, message: `${name}: done`, trailers: { 'Signalbox-Merge': name }, keep: name, ...more }
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
    expect(this.run('show', `${revision}:a.txt`)).toMatch(/^ONE\n/)
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

const test = base.extend<{ ground: Ground }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  ground: async ({}, use) => {
    const ground = new Ground()
    await use(ground)
    rmSync(ground.folder, { recursive: true, force: true })
  },
})

function old(path: string): void {
  utimesSync(path, 1_700_000_000, 1_700_000_000)
}

describe('a line', () => {
  test('[GL1] begins at its target, once, however many look at it', async ({ ground }) => {
    const main = ground.tip('main')
    const looks = await Promise.all([1, 2, 3, 4].map(() => ground.another().line(ground.main)))
    expect(looks).toEqual(looks.map(() => ({ state: 'ready', head: main, moved: false })))
    expect(ground.tip(LINE)).toBe(main)
    for (const target of ['--all', 'a..b', '-x', '', 'a b'])
      await expect(ground.git.line({ ...ground.main, target })).rejects.toMatchObject({ reason: 'invalid' })
    await expect(ground.git.line({ ...ground.main, repo: ground.folder })).rejects.toMatchObject({ reason: 'missing' })
  })

  test('[GL1] of an epic makes its branch with it, and again when somebody deleted it', async ({ ground }) => {
    const main = ground.tip('main')
    expect(await ground.git.line(ground.epic)).toEqual({ state: 'ready', head: main, moved: false })
    expect(ground.tip('signalbox/epic-1')).toBe(main)
    const landed = await ground.land('t1', await ground.work('t1', { 'n.txt': 'x\n' }, 'signalbox/epic-1'), ground.epic)
    expect(await ground.git.follow(ground.epic)).toEqual({ state: 'even' })
    ground.run('branch', '-D', '-q', 'signalbox/epic-1')
    expect(await ground.git.line(ground.epic)).toEqual({ state: 'ready', head: landed, moved: false })
    expect([ground.tip('signalbox/epic-1'), ground.tip('main')]).toEqual([landed, main])
    ground.isSound()
  })

  test('[GL1] of a branch that the person renamed or deleted is missing until it is there again', async ({ ground }) => {
    const landed = await ground.ahead()
    ground.run('branch', '-m', 'main', 'trunk')
    const before = ground.seen()
    for (const attempt of [() => ground.git.line(ground.main), () => ground.git.follow(ground.main)])
      await expect(attempt()).rejects.toMatchObject({ reason: 'missing', message: expect.stringContaining('"main"') })
    expect(await ground.git.land(ground.main, landed, ground.tip('trunk'), 't2')).toBe(false)
    expect(ground.seen()).toEqual(before)
    expect(ground.run('branch', '--list', 'main')).toBe('')
    expect(await ground.git.line({ ...ground.main, target: 'trunk' })).toMatchObject({ state: 'ready', head: ground.tip('trunk') })
    ground.run('branch', '-m', 'trunk', 'main')
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    await ground.revertsNothing()
  })

  test('[GL2] takes in what the person committed: by a fast-forward', async ({ ground }) => {
    await ground.head()
    const theirs = ground.commit(ground.top, { 'b.txt': 'mine' })
    expect(await ground.git.line(ground.main)).toEqual({ state: 'ready', head: theirs, moved: true })
    expect(await ground.git.line(ground.main)).toEqual({ state: 'ready', head: theirs, moved: false })
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
  })

  test('[GL2] takes in what the person committed: by a merge commit when both went on', async ({ ground }) => {
    const landed = await ground.ahead()
    const theirs = ground.commit(ground.top, { 'b.txt': 'mine', 'a.txt': 'one\ntwo\nthree\nfour\nFIVE\n' })
    const before = ground.seen()
    expect(await ground.git.follow(ground.main)).toMatchObject({ state: 'behind', by: 1, why: 'moved', at: ground.top })
    expect(ground.seen()).toEqual(before)
    const [one, two] = await Promise.all([ground.git.line(ground.main), ground.another().line(ground.main)])
    expect(one.head).toBe(two.head)
    expect(ground.run('rev-list', '--parents', '-1', LINE).split(' ')).toEqual([one.head, landed, theirs])
    expect(ground.run('show', `${LINE}:a.txt`)).toBe('ONE\ntwo\nthree\nfour\nFIVE')
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect(readFileSync(join(ground.top, 'b.txt'), 'utf8')).toBe('mine')
    await ground.revertsNothing()
  })

  test('[GL2] is apart from what cannot be joined: names the files, moves nothing, and goes on when the person merged', async ({
    ground,
  }) => {
    const landed = await ground.ahead()
    const theirs = ground.commit(ground.top, { 'a.txt': 'EINS\ntwo\nthree\nfour\nfive\n' })
    const before = ground.seen()
    expect(await ground.git.line(ground.main)).toEqual({ state: 'apart', head: landed, target: theirs, files: ['a.txt'] })
    const followed = await ground.git.follow(ground.main)
    expect(followed).toMatchObject({ state: 'behind', by: 1, why: 'apart', at: ground.top })
    expect(followed).toMatchObject({ message: expect.stringMatching(/a\.txt.*git merge refs\/signalbox\/line\/main/) })
    expect([ground.seen(), ground.tip(LINE)]).toEqual([before, landed])
    ground.run('merge', '-q', '-X', 'theirs', '-m', 'merged by hand', LINE)
    expect(await ground.git.line(ground.main)).toEqual({ state: 'ready', head: ground.tip('main'), moved: true })
    // What landed is on the other side of that merge: it is found again all the same.
    const again = await ground.build('t1', ground.tip('signalbox/t1'))
    expect(again).toEqual({ result: 'landed', commit: landed })
    await ground.revertsNothing()
  })

  test('[GL2] is apart from a history that has nothing in common with it', async ({ ground }) => {
    const head = await ground.head()
    const other = ground.run('commit-tree', 'main^{tree}', '-m', 'anew')
    ground.run('update-ref', 'refs/heads/main', other)
    expect(await ground.git.line(ground.main)).toEqual({ state: 'apart', head, target: other, files: [] })
    expect(await ground.git.follow(ground.main)).toMatchObject({ state: 'behind', why: 'apart' })
    expect([ground.tip('main'), ground.tip(LINE)]).toEqual([other, head])
  })

  test('[GL2] has what the remote has, when that is where work begins', async ({ ground }) => {
    const of: LineOf = { ...ground.main, strategy: 'remote' }
    const [here, tree] = [ground.tip('main'), ground.tip('main^{tree}')]
    const there = ground.run('commit-tree', tree, '-p', 'main', '-m', 'by others')
    ground.run('update-ref', 'refs/remotes/origin/main', there)
    expect(await ground.git.line(of)).toMatchObject({ state: 'ready', head: there })
    expect(await ground.git.line({ ...of, strategy: 'local' })).toMatchObject({ state: 'ready', head: there, moved: false })
    expect(ground.tip('main')).toBe(here)
    const mine = ground.commit(ground.top, { 'b.txt': 'not pushed' })
    const head = await ground.head(of)
    expect(ground.run('rev-list', '--parents', '-1', head).split(' ')).toEqual([head, there, mine])
  })

  test('[GL12] is where a place begins that is forked from its target, unless the target went its own way', async ({ ground }) => {
    const landed = await ground.ahead()
    const place = { repo: ground.top, base: 'main', strategy: 'local' as const }
    const add = (name: string) =>
      ground.git.add({ ...place, path: ground.git.placeFor('web', name), branch: `signalbox/${name}` }).then(({ base }) => base)
    expect(await add('t2')).toBe(landed)
    const theirs = ground.commit(ground.top, { 'b.txt': 'mine' })
    expect(await add('t3')).toBe(theirs)
    expect(await add('t4')).not.toBe(await ground.head())
    expect(await add('t5')).toBe(await ground.head())
    expect(await ground.git.line(ground.epic)).toMatchObject({ head: await ground.head() })
  })
})

describe('what is built', () => {
  test('[GL3] is one commit on top of the line, by its author, made away from every checkout', async ({ ground }) => {
    const path = await ground.place('t1')
    ground.commit(path, { 'b.txt': 'b\n' })
    ground.in(path, 'config', 'user.name', 'Zoë "Z" O’Neil')
    const commit = ground.commit(path, { 'c.txt': 'c\n', 'd.txt': null })
    ground.write({ 'a.txt': 'not committed\n', 'staged.txt': 'x' })
    ground.run('add', 'staged.txt')
    const [before, refs] = [ground.seen(), ground.run('for-each-ref', 'refs/heads')]
    const onto = await ground.head()
    const built = await ground.build('t1', commit, { message: 'T-1 Do it\n\nAll of it.' })
    if (built.result !== 'built') throw new Error(built.result)
    expect(ground.run('log', '--format=%an|%cn|%s|%(trailers:key=Signalbox-Merge,valueonly,separator=)', `${onto}..${built.commit}`)).toBe(
      'Zoë "Z" O’Neil|Signalbox|T-1 Do it|t1',
    )
    expect(ground.run('log', '-1', '--format=%ad', built.commit)).toBe(ground.run('log', '-1', '--format=%ad', commit))
    expect(ground.run('diff', '--name-status', onto, built.commit).split('\n')).toEqual(['A\tb.txt', 'A\tc.txt', 'D\td.txt'])
    expect([ground.seen(), ground.run('for-each-ref', 'refs/heads'), ground.tip(LINE)]).toEqual([before, refs, onto])
    expect(ground.tip('refs/signalbox/build/t1')).toBe(built.commit)
    ground.run('gc', '-q', '--prune=now')
    expect(await ground.git.land(ground.main, onto, built.commit, 't1')).toBe(true)
    expect(ground.run('for-each-ref', 'refs/signalbox/build')).toBe('')
    ground.isSound()
  })

  test('[GL3] takes commits in full that are there, and nothing else', async ({ ground }) => {
    const onto = await ground.head()
    for (const bad of ['HEAD', 'main', '--all', 'a'.repeat(39)]) {
      await expect(ground.git.build(ground.building('t1', bad, onto))).rejects.toMatchObject({ reason: 'invalid' })
      await expect(ground.git.build(ground.building('t1', onto, bad))).rejects.toMatchObject({ reason: 'invalid' })
      await expect(ground.git.land(ground.main, onto, bad, 't1')).rejects.toMatchObject({ reason: 'invalid' })
    }
    await expect(ground.git.build(ground.building('t1', onto, onto, { keep: '../x' }))).rejects.toMatchObject({ reason: 'invalid' })
    const none = 'a'.repeat(40)
    await expect(ground.git.build(ground.building('t1', none, onto))).rejects.toMatchObject({ reason: 'missing' })
    await expect(ground.git.build(ground.building('t1', onto, none))).rejects.toMatchObject({ reason: 'missing' })
    await expect(ground.git.build(ground.building('t1', ground.tip('main^{tree}'), onto))).rejects.toMatchObject({ reason: 'missing' })
  })

  test('[GL3] is by somebody even when the work says nobody', async ({ ground }) => {
    const work = await ground.work('t1', { 'b.txt': 'b' })
    const nobody = (tree: string) => {
      const input = `tree ${tree}\nparent ${ground.tip('main')}\nauthor  <> 99999999999999 +0000\ncommitter x <x> 1 +0000\n\nx\n`
      const run = { cwd: ground.top, env: ground.env, input }
      return execFileSync('git', ['hash-object', '-t', 'commit', '-w', '--stdin', '--literally'], run).toString().trim()
    }
    expect(await ground.build('t0', nobody(ground.tip('main^{tree}')))).toEqual({ result: 'nothing' })
    expect(await ground.build('t1', nobody(ground.tip(`${work}^{tree}`)))).toMatchObject({ result: 'built' })
    expect(ground.run('log', '-1', '--format=%an', 'refs/signalbox/build/t1')).toBe('unknown')
  })

  test('[GL4] leaves out .signalbox/ that is new in the work', async ({ ground }) => {
    const commit = await ground.work('t1', {
      '.signalbox/feedback/1.md': 'do it again',
      'b.txt': 'b\n',
      'ü.txt': 'ü',
      'sub/.signalbox/x': 'x',
    })
    await ground.land('t1', commit)
    expect(ground.run('-c', 'core.quotePath=false', 'diff', '--name-only', 'main', LINE).split('\n')).toEqual([
      'b.txt',
      'sub/.signalbox/x',
      'ü.txt',
    ])
    const only = await ground.work('t2', { '.signalbox/feedback/1.md': 'nothing else' })
    expect(await ground.build('t2', only)).toEqual({ result: 'nothing' })
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    ground.isSound()
  })

  test('[GL4] leaves .signalbox/ of the target as it is there, changed, deleted or in conflict', async ({ ground }) => {
    ground.commit(ground.top, { '.signalbox/config.yml': 'checks: []\n', '.signalbox/x': '1' })
    const changes: Files[] = [
      { '.signalbox/config.yml': 'checks: [evil]\n', 'b1.txt': 'b' },
      { '.signalbox/config.yml': null, '.signalbox/x': null, 'b2.txt': 'b' },
      { '.signalbox/x': 'mine', 'b3.txt': 'b' },
    ]
    const works = []
    for (const [n, files] of changes.entries()) works.push(await ground.work(`t${n}`, files))
    ground.commit(ground.top, { '.signalbox/x': 'theirs' })
    const kept = ground.tip('main:.signalbox')
    for (const [n, commit] of works.entries()) await ground.land(`t${n}`, commit)
    expect(ground.tip(`${LINE}:.signalbox`)).toBe(kept)
    expect(ground.run('diff', '--name-only', 'main', LINE).split('\n')).toEqual(['b1.txt', 'b2.txt', 'b3.txt'])
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    ground.isSound()
  })

  describe('[GL5] of what both sides changed is a conflict that names the files and moves nothing', () => {
    const binary = (last: number) => Buffer.from([0, 1, 2, 255, 254, 0, last])
    const cases: [name: string, mine: Files, theirs: Files, files: string[]][] = [
      ['delete/modify', { 'a.txt': null }, { 'a.txt': 'changed\n' }, ['a.txt']],
      ['modify/delete', { 'a.txt': 'changed\n' }, { 'a.txt': null }, ['a.txt']],
      ['rename/rename', { 'e.txt': null, 'e1.txt': 'e\n' }, { 'e.txt': null, 'e2.txt': 'e\n' }, ['e.txt', 'e1.txt', 'e2.txt']],
      ['binary', { 'pic.bin': binary(7) }, { 'pic.bin': binary(8) }, ['pic.bin']],
      ['add/add with a strange name', { 'n w\t\n"ü.txt': 'mine' }, { 'n w\t\n"ü.txt': 'theirs' }, ['n w\t\n"ü.txt']],
      ['very long paths', { [`${LONG}/f`]: 'mine' }, { [`${LONG}/f`]: 'theirs' }, [`${LONG}/f`]],
    ]
    for (const [name, mine, theirs, files] of cases)
      test(`[GL5] ${name}`, async ({ ground }) => {
        if (name === 'binary') ground.commit(ground.top, { 'pic.bin': binary(6) })
        const [first, second] = [await ground.work('t1', mine), await ground.work('t2', theirs)]
        const landed = await ground.land('t1', first)
        const before = ground.seen()
        const built = await ground.build('t2', second)
        expect(built.result === 'conflict' && { ...built, files: built.files.sort() }).toEqual({ result: 'conflict', files })
        expect([ground.seen(), ground.tip(LINE)]).toEqual([before, landed])
        expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
        ground.isSound()
      })
  })

  test('[GL5] has modes, links, bytes and line ends as the work has them', async ({ ground }) => {
    const path = await ground.place('t1')
    ground.write(
      { 'tool.sh': 'exit 0\n', 'crlf.txt': 'one\r\ntwo\r\n', 'pic.bin': Buffer.from([0, 255, 13, 10, 0]), [`${LONG}/f`]: 'deep' },
      path,
    )
    symlinkSync('a.txt', join(path, 'link'))
    chmodSync(join(path, 'tool.sh'), 0o755)
    chmodSync(join(path, 'e.txt'), 0o755)
    const commit = ground.commit(path, {})
    await ground.land('t1', commit)
    expect(ground.tip(`${LINE}^{tree}`)).toBe(ground.tip(`${commit}^{tree}`))
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect([statSync(join(ground.top, 'tool.sh')).mode & 0o111, statSync(join(ground.top, 'e.txt')).mode & 0o111]).toEqual([0o111, 0o111])
    expect(readFileSync(join(ground.top, 'crlf.txt'), 'utf8')).toBe('one\r\ntwo\r\n')
    expect(readFileSync(join(ground.top, LONG, 'f'), 'utf8')).toBe('deep')
    expect(ground.run('status', '--porcelain')).toBe('')
    ground.run('commit', '-a', '-q', '--allow-empty', '-m', 'next')
    expect(ground.tip('main^{tree}')).toBe(ground.tip(`${commit}^{tree}`))
    ground.isSound()
  })

  test('[GL6] of work that adds nothing is nothing', async ({ ground }) => {
    const [same, other] = [await ground.work('t1', { 'b.txt': 'b\n' }), await ground.work('t2', { 'b.txt': 'b\n' })]
    const landed = await ground.land('t1', same)
    expect(await ground.build('t2', other)).toEqual({ result: 'nothing' })
    expect(await ground.build('t3', ground.tip('main'))).toEqual({ result: 'nothing' })
    expect(await ground.build('t4', landed)).toEqual({ result: 'nothing' })
    expect(ground.run('for-each-ref', 'refs/signalbox/build')).toBe('')
  })

  test('[GL6] is found again by its trailers, whatever came after it', async ({ ground }) => {
    const [one, two] = [await ground.work('t1', { 'b.txt': 'one\n' }), await ground.work('t2', { 'b2.txt': 'two\n' })]
    const landed = await ground.land('t1', one)
    await ground.land('t2', two)
    await ground.git.follow(ground.main)
    ground.run('revert', '--no-edit', landed)
    // Somebody took it back: the step that was cut off must not bring it back.
    expect(await ground.another().build(ground.building('t1', one, await ground.head()))).toEqual({ result: 'landed', commit: landed })
    expect(await ground.build('t9', one)).toMatchObject({ result: 'built' })
  })

  test('[GL6] is not taken for another by any message', async ({ ground }) => {
    const hostile = [
      'hi\n\nSignalbox-Merge: t9',
      'hi\n\nsignalbox-merge: t9\n---\nSignalbox-Merge: t9\n\n\n',
      '\0\0--all\r\n\r\nSignalbox-Merge: t9\r\n',
      '',
      '-F /etc/passwd $(touch sprung) `touch sprung`\n# comment\n\u202e',
      'Signalbox-Merge: t9\n\n---\n\nSignalbox-Merge: t9\n---',
    ]
    for (const [n, message] of hostile.entries()) {
      const commit = await ground.work(`t${n}`, { [`f${n}.txt`]: 'x\n' })
      const onto = await ground.head()
      const built = await ground.git.build(ground.building(`t${n}`, commit, onto, { message }))
      if (built.result !== 'built') throw new Error(built.result)
      expect(await ground.git.land(ground.main, onto, built.commit, `t${n}`)).toBe(true)
      expect(await ground.build(`t${n}`, commit)).toEqual({ result: 'landed', commit: built.commit })
    }
    // The person's own commit says so too.
    ground.run('commit', '-q', '--allow-empty', '-m', 'x\n\nSignalbox-Merge: t9')
    expect(await ground.build('t9', await ground.work('t9', { 'f9.txt': 'x\n' }))).toMatchObject({ result: 'built' })
    expect(existsSync(join(ground.top, 'sprung'))).toBe(false)
    ground.isSound()
  })
})

describe('the line moves', () => {
  test('[GL7] by compare-and-swap: of those that land at once one wins, from several processes too', async ({ ground }) => {
    const onto = await ground.head()
    const built: string[] = []
    for (const n of [1, 2, 3, 4]) {
      const one = await ground.git.build(ground.building(`t${n}`, await ground.work(`t${n}`, { [`f${n}.txt`]: 'x\n' }), onto))
      if (one.result === 'built') built.push(one.commit)
    }
    // Nothing in this process keeps them apart: the git processes race.
    const won = await Promise.all(built.map((to, n) => ground.another().land(ground.main, onto, to, `t${n + 1}`)))
    expect(won.filter(Boolean)).toHaveLength(1)
    expect(ground.tip(LINE)).toBe(built[won.indexOf(true)])
    expect(ground.run('rev-list', '--count', `${onto}..${LINE}`)).toBe('1')
    expect(ground.run('for-each-ref', 'refs/signalbox/build')).toBe('')
    ground.isSound()
  })

  test('[GL7] once: to repeat it says so, also when others landed since', async ({ ground }) => {
    const onto = await ground.head()
    const landed = await ground.ahead()
    expect(await ground.another().land(ground.main, onto, landed, 't1')).toBe(true)
    const next = await ground.land('t2', await ground.work('t2', { 'f.txt': 'x' }))
    expect(await ground.git.land(ground.main, onto, landed, 't1')).toBe(true)
    expect(ground.tip(LINE)).toBe(next)
    const lost = await ground.git.build(ground.building('t3', await ground.work('t3', { 'g.txt': 'x' }), onto))
    expect(lost.result === 'built' && (await ground.git.land(ground.main, onto, lost.commit, 't3'))).toBe(false)
    expect([ground.tip(LINE), ground.run('for-each-ref', 'refs/signalbox/build')]).toEqual([next, ''])
  })

  test('[GL7] not when the person committed on the target meanwhile; and it does when the target is only behind', async ({ ground }) => {
    const [one, two] = [await ground.work('t1', { 'b.txt': 'b' }), await ground.work('t2', { 'c.txt': 'c' })]
    const onto = await ground.head()
    const built = await ground.build('t1', one)
    const theirs = ground.commit(ground.top, { 'mine.txt': 'x' })
    expect(built.result === 'built' && (await ground.git.land(ground.main, onto, built.commit, 't1'))).toBe(false)
    expect(ground.tip(LINE)).toBe(onto)
    expect(await ground.git.line(ground.main)).toEqual({ state: 'ready', head: theirs, moved: true })
    await ground.land('t1', one)
    ground.write({ 'e.txt': 'at work' })
    await ground.land('t2', two)
    // Who has not looked at the line before does it as well.
    const head = await ground.head()
    const more = await ground.git.build(ground.building('t3', await ground.work('t3', { 'g.txt': 'x' }), head))
    expect(more.result === 'built' && (await ground.another().land(ground.main, head, more.commit, 't3'))).toBe(true)
    expect(ground.tip('main')).toBe(theirs)
    ground.isSound()
  })

  test('[GL14] past the lock of a git that died, and waits for one that lives', async ({ ground }) => {
    const onto = await ground.head()
    const built = await ground.build('t1', await ground.work('t1', { 'b.txt': 'b' }))
    const lock = join(ground.top, '.git', `${LINE}.lock`)
    writeFileSync(lock, '')
    const commit = built.result === 'built' ? built.commit : ''
    const holder = spawn('sh', ['-c', 'exec 3<"$0"; echo; read x', lock], { stdio: ['pipe', 'pipe', 'ignore'] })
    await new Promise((resolve) => holder.stdout.once('data', resolve))
    old(lock)
    await expect(ground.another(ground.env, 100).land(ground.main, onto, commit, 't1')).rejects.toMatchObject({ reason: 'busy' })
    const ended = new Promise((resolve) => holder.once('exit', resolve))
    holder.stdin.end('\n')
    await ended
    expect(await ground.git.land(ground.main, onto, commit, 't1')).toBe(true)
    expect(existsSync(lock)).toBe(false)
  })
})
