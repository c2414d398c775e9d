import { execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, test as base, describe, expect } from 'vitest'
import { type Git, GitRefusal, type NewPlace } from '../../ports/git.ts'
import { dig } from '../../testing/deep.ts'
import { gitNow, realGit } from '../../testing/git.ts'
import { until } from '../../testing/signals.ts'
import { kill } from '../../testing/survivors.ts'
import { withLarge } from './diff.ts'
import { execHere } from './exec.ts'
import { addWorktree, fingerprintOf } from './place.ts'
import { opener, type Repo } from './run.ts'
import { Watch } from './stuck.ts'
import { changedIn } from './tree.ts'

const withoutPython = (process.env.SIGNALBOX_TEST_WITHOUT ?? '').split(',').includes('python3')

/** A real repository with one commit, a home of its own, and our git on it. */
class Ground {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-git-')))
  readonly top = join(this.folder, 'web')
  readonly home = join(this.folder, 'home')
  readonly worktrees = join(this.folder, 'worktrees')
  readonly git: Git

  constructor(template?: string) {
    mkdirSync(this.home)
    writeFileSync(
      join(this.home, '.gitconfig'),
      '[user]\nname = ann\nemail = ann@x\n[init]\ndefaultBranch = main\n[protocol "file"]\nallow = always\n',
    )
    template ? cpSync(template, this.top, { recursive: true }) : this.begin()
    this.git = this.another()
  }

  private begin(): void {
    mkdirSync(this.top)
    this.run('init', '-q', '--template=')
    mkdirSync(join(this.top, '.git/hooks'))
    this.write('a.txt', 'one\n')
    this.write('lib/b.txt', 'two\nthree\nfour\nfive\n')
    this.commit('first')
  }

  another(lockWaitMs = 60_000): Git {
    return realGit({ worktrees: this.worktrees, env: this.env, lockWaitMs })
  }

  get env() {
    return { PATH: process.env.PATH, HOME: this.home, GIT_CONFIG_NOSYSTEM: '1' }
  }

  run(...args: string[]): string {
    return this.in(this.top, ...args)
  }

  in(cwd: string, ...args: string[]): string {
    return gitNow(cwd, args, this.env).trim()
  }

  write(path: string, text: string, below = this.top): void {
    mkdirSync(join(below, path, '..'), { recursive: true })
    writeFileSync(join(below, path), text)
  }

  commit(message: string, cwd = this.top): string {
    this.in(cwd, 'add', '-A')
    this.in(cwd, 'commit', '-q', '-m', message)
    return this.in(cwd, 'rev-parse', 'HEAD')
  }

  place(name = 'task-1', more: Partial<NewPlace> = {}): NewPlace {
    const path = this.git.placeFor({ repo_handle: 'web', name })
    return { repo: this.top, path, branch: `signalbox/${name}`, base: 'main', strategy: 'remote', ...more }
  }

  async made(name?: string): Promise<NewPlace & { from: string }> {
    const place = this.place(name)
    const { base } = await this.git.add(place)
    return { ...place, from: base }
  }

  admin(place: NewPlace): string {
    return this.in(place.path, 'rev-parse', '--absolute-git-dir')
  }

  branches(): string[] {
    return this.run('for-each-ref', '--format=%(refname:short)', 'refs/heads/signalbox').split('\n').filter(Boolean)
  }

  /** A program that tells that it was run. */
  trap(name: string): string {
    const path = join(this.folder, name)
    writeFileSync(path, `#!/bin/sh\necho "$0 $*" >> ${this.sprung}\ncat\n`)
    chmodSync(path, 0o755)
    return path
  }

  get sprung() {
    return join(this.folder, 'sprung')
  }
}

const first = new Ground()
afterAll(() => rmSync(first.folder, { recursive: true, force: true }))

const test = base.extend<{ ground: Ground }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  ground: async ({}, use) => {
    const ground = new Ground(first.top)
    await use(ground)
    rmSync(ground.folder, { recursive: true, force: true })
  },
})

async function refusal(attempt: Promise<unknown>): Promise<GitRefusal> {
  const error = await attempt.then(
    () => undefined,
    (thrown) => thrown,
  )
  expect(error).toBeInstanceOf(GitRefusal)
  return error
}

function backdate(path: string): void {
  utimesSync(path, 1_700_000_000, 1_700_000_000)
}

describe('a place is made', () => {
  test('[G1] forty at once', async ({ ground }) => {
    ground.in(ground.folder, 'clone', '-q', '--bare', ground.top, 'origin.git')
    ground.run('remote', 'add', 'origin', join(ground.folder, 'origin.git'))
    ground.run('fetch', '-q', 'origin')
    const other = ground.another()
    const places = Array.from({ length: 40 }, (_, n) => ground.place(`task-${n}`))
    const made = await Promise.allSettled(places.map((place, n) => (n % 2 ? ground.git : other).add(place)))
    expect(made.filter(({ status }) => status === 'rejected')).toEqual([])
    expect(ground.branches()).toHaveLength(40)
    for (const { path } of places) expect(readFileSync(join(path, 'a.txt'), 'utf8')).toBe('one\n')
    expect(ground.run('worktree', 'list').split('\n')).toHaveLength(41)
    expect(ground.run('status', '--porcelain')).toBe('')
  })

  test('[G2] a branch without a folder, and a folder without files', async ({ ground }) => {
    const place = ground.place()
    ground.run('branch', place.branch)
    ground.run('worktree', 'add', '-q', '--no-checkout', place.path, place.branch)
    const { head } = await ground.git.add(place)
    expect(head).toBe(ground.run('rev-parse', 'HEAD'))
    expect(ground.in(place.path, 'status', '--porcelain')).toBe('')
    expect(readdirSync(place.path).sort()).toEqual(['.git', 'a.txt', 'lib'])
  })

  test('[G2] cut off in the middle of its files', async ({ ground }) => {
    const place = ground.place()
    ground.write('.gitattributes', '*.slow filter=slow\n')
    for (let n = 0; n < 5; n++) ground.write(`z${n}.slow`, 'x')
    ground.commit('slow')
    // The filter tells that it is at work, and never ends.
    ground.run('config', '--global', 'filter.slow.smudge', `echo > ${join(ground.folder, 'reached')}; sleep 600`)
    const attempt = ground.git.add(place).catch(() => 'cut off')
    await until(() => existsSync(join(ground.folder, 'reached')))
    expect(processesIn(place.path).length).toBeGreaterThan(0)
    // Until there is none: one may just have started another.
    for (let pids = processesIn(place.path); pids.length; pids = processesIn(place.path)) for (const pid of pids) kill(pid)
    expect(await attempt).toBe('cut off')
    const lock = join(ground.admin(place), 'index.lock')
    expect(existsSync(lock)).toBe(true)
    backdate(lock)
    ground.run('config', '--global', '--unset', 'filter.slow.smudge')
    await ground.another().add(place)
    expect(ground.in(place.path, 'status', '--porcelain')).toBe('')
    expect(await ground.git.rescues(ground.top, 'task-1')).toEqual([])
  })

  test('[G2] whoever removed the index has not lost the files', async ({ ground }) => {
    const place = await ground.made()
    ground.write('mine.txt', 'mine', place.path)
    rmSync(join(ground.admin(place), 'index'))
    await ground.git.add(place)
    const [saved] = await ground.git.rescues(ground.top, 'task-1')
    expect(ground.run('show', `${saved?.ref}:mine.txt`)).toBe('mine')
  })

  test('[G4] after its folder was deleted by hand', async ({ ground }) => {
    const place = await ground.made()
    ground.write('w.txt', 'w', place.path)
    const head = ground.commit('work', place.path)
    ground.in(place.path, 'checkout', '-q', '--detach')
    ground.write('l.txt', 'l', place.path)
    const loose = ground.commit('loose', place.path)
    rmSync(place.path, { recursive: true })
    expect(await ground.git.state(place, place.from)).toMatchObject({ state: 'missing', ahead: 1 })
    expect(await ground.git.add(place)).toEqual({ base: place.from, head })
    expect(ground.run('for-each-ref', '--contains', loose, 'refs/signalbox/rescue')).not.toBe('')
    rmSync(place.path, { recursive: true })
    mkdirSync(place.path)
    expect(await ground.git.add(place)).toEqual({ base: place.from, head })
    ground.run('worktree', 'remove', '--force', '--force', place.path)
    expect(await ground.git.add(place)).toEqual({ base: place.from, head })
  })

  test.for(['with its record', 'without its record', 'with half of its record'] as const)(
    '[G4] that was killed while git made it, %s',
    async (left, { ground, expect }) => {
      const place = await ground.made()
      const admin = ground.in(place.path, 'rev-parse', '--absolute-git-dir')
      const link = readFileSync(join(place.path, '.git'), 'utf8')
      rmSync(place.path, { recursive: true })
      mkdirSync(place.path)
      // It makes the file, and then writes to it.
      writeFileSync(join(place.path, '.git'), left === 'with half of its record' ? link : '')
      if (left === 'without its record') rmSync(admin, { recursive: true })
      // Written after the link.
      if (left === 'with half of its record') for (const name of ['HEAD', 'commondir', 'index']) rmSync(join(admin, name), { force: true })
      expect(await ground.git.add(place)).toMatchObject({ base: place.from })
      expect(await ground.git.state(place, place.from)).toMatchObject({ state: 'present', dirty: 0 })
      expect(ground.in(place.path, 'status', '--porcelain')).toBe('')
    },
  )

  test('[G4] while somebody prunes', async ({ ground }) => {
    let on = true
    const pruning = (async () => {
      while (on) await exited(spawn('git', ['worktree', 'prune', '--expire=now'], { cwd: ground.top, env: ground.env }))
    })()
    const places = Array.from({ length: 5 }, (_, n) => ground.place(`task-${n}`))
    await Promise.all(places.map((place) => ground.git.add(place))).finally(() => {
      on = false
      return pruning
    })
    for (const place of places) expect(await ground.git.state(place, 'refs/heads/main')).toMatchObject({ state: 'present', dirty: 0 })
  })

  test('[G4] whose record was pruned before git had locked it', async ({ ground }) => {
    const repo = (await opener(ground.env, join(ground.folder, 'own'), new Watch(execHere, 60_000)).repo(ground.top)) as Repo
    const failures = [
      "fatal: could not open '.git/worktrees/w/locked' for writing: No such file or directory",
      "fatal: could not create directory of '.git/worktrees/w': No such file or directory",
    ]
    const tried: Repo['tried'] = async (...call) => {
      const failed = failures.pop()
      return failed ? { stdout: Buffer.alloc(0), failed } : repo.tried(...call)
    }
    const add = () => addWorktree({ ...repo, tried }, join(ground.folder, 'w'), ['--detach', '--no-checkout'], 'main')
    await add()
    expect(ground.in(join(ground.folder, 'w'), 'rev-parse', 'HEAD')).toBe(ground.run('rev-parse', 'main'))
    await expect(add()).rejects.toThrow('already exists')
  })

  test('[G4] and others that are away stay in the list', async ({ ground }) => {
    const away = join(ground.folder, 'away')
    ground.run('worktree', 'add', '-q', '-b', 'theirs', away)
    renameSync(away, `${away}-unmounted`)
    const place = await ground.made()
    rmSync(place.path, { recursive: true })
    await ground.git.add(place)
    await ground.git.remove(place, 'T-1')
    expect(ground.run('worktree', 'list')).toContain(away)
  })
})

test('[G18] whoever does not see a place does not prune it', async ({ ground }) => {
  const places = [await ground.made('task-1'), await ground.made('task-2')]
  const admins = places.map(({ path }) => ground.in(path, 'rev-parse', '--absolute-git-dir'))
  // As an older version made it.
  rmSync(join(admins[0] as string, 'locked'))
  await ground.another().add(places[1] as NewPlace)
  for (const { path } of places) renameSync(path, `${path}-hidden`)
  ground.run('worktree', 'prune', '--expire=now')
  expect(admins.map((admin) => existsSync(admin))).toEqual([true, true])
})

describe('cut off after any step that writes', () => {
  test('[G2] it is made all the same', async ({ ground }) => {
    for (let step = 1, cut = true; cut; step++) {
      const place = ground.place(`task-${step}`)
      cut = await cutOff(ground, step, (git) => git.add(place))
      const { base, head } = await ground.git.add(place)
      expect([base, head, ground.in(place.path, 'status', '--porcelain')]).toEqual([head, ground.run('rev-parse', 'main'), ''])
      expect(step).toBeLessThan(20)
    }
    expect(ground.run('for-each-ref', 'refs/signalbox/rescue')).toBe('')
  })

  test('[G7] it is taken away and brought back, with all that was in it, and saved once', async ({ ground }) => {
    const place = await ground.made()
    for (let step = 1, cut = true; cut; step++) {
      ground.write('draft.txt', `draft ${step}`, place.path)
      ground.in(place.path, 'add', 'draft.txt')
      ground.write('draft.txt', `second ${step}`, place.path)
      const taken = await cutOff(ground, step, (git) => git.remove(place, `T-${step}`))
      await ground.git.remove(place, `T-${step}`)
      const saved = await ground.git.rescues(ground.top, `T-${step}`)
      expect(saved.map(({ ref }) => [ground.run('show', `${ref}:draft.txt`), ground.run('show', `${ref}^2:draft.txt`)])).toEqual([
        [`second ${step}`, `draft ${step}`],
      ])
      await ground.git.add(place)
      ground.write('draft.txt', 'in the way', place.path)
      const brought = await cutOff(ground, step, (git) => git.restore(place, saved[0]?.ref as string, `U-${step}`))
      await ground.git.restore(place, saved[0]?.ref as string, `U-${step}`)
      expect(ground.in(place.path, 'status', '--porcelain')).toBe('?? draft.txt')
      expect(readFileSync(join(place.path, 'draft.txt'), 'utf8')).toBe(`second ${step}`)
      const before = (await ground.git.rescues(ground.top, `U-${step}`)).map(({ ref }) => ground.run('show', `${ref}:draft.txt`))
      expect(before).toContain('in the way')
      cut = taken || brought
      expect(step).toBeLessThan(20)
    }
  })
})

describe('locks of git', () => {
  test('[G3] of the dead are removed', async ({ ground }) => {
    const place = await ground.made()
    const locks = [join(ground.top, '.git/config.lock'), join(ground.top, '.git/packed-refs.lock'), join(ground.admin(place), 'index.lock')]
    for (const lock of locks) {
      writeFileSync(lock, '')
      backdate(lock)
    }
    await ground.git.add(place)
    expect(locks.filter((lock) => existsSync(lock))).toEqual([])
  })

  test('[G3] of the living are waited for, not for ever, and the message says who', async ({ ground }) => {
    const place = await ground.made()
    const lock = join(ground.admin(place), 'index.lock')
    const holder = spawn('git', ['update-index', '--stdin'], { cwd: place.path, env: ground.env, stdio: ['pipe', 'ignore', 'ignore'] })
    await until(() => existsSync(lock))
    backdate(lock)
    const { reason, message } = await refusal(ground.another(100).add(place))
    expect([reason, message]).toEqual(['busy', expect.stringContaining(`process ${holder.pid}`)])
    expect(existsSync(lock)).toBe(true)
    const waiting = ground.git.add(place)
    holder.stdin.end()
    await waiting
  })

  test('[G3] of any program that has one open, and young ones, stay', async ({ ground }) => {
    const place = await ground.made()
    const lock = join(ground.admin(place), 'index.lock')
    writeFileSync(lock, '')
    expect((await refusal(ground.another(50).add(place))).reason).toBe('busy')
    backdate(lock)
    const holder = spawn('sh', ['-c', 'exec 3<"$1"; echo open; read line', '-', lock], { cwd: '/', stdio: ['pipe', 'pipe', 'ignore'] })
    await new Promise((resolve) => holder.stdout.once('data', resolve))
    expect((await refusal(ground.another(50).add(place))).message).toContain(`process ${holder.pid}`)
    holder.kill('SIGKILL')
    await exited(holder)
    await ground.git.add(place)
    expect(existsSync(lock)).toBe(false)
  })

  test('[G3] two processes register one after the other, and one that dies holds nothing', async ({ ground }) => {
    await ground.made('task-0')
    const turn = join(ground.folder, 'git', readdirSync(join(ground.folder, 'git')).find((name) => name.endsWith('.turn')) as string)
    const script = `const { DatabaseSync } = require('@photostructure/sqlite'); new DatabaseSync(process.argv[1]).exec('BEGIN EXCLUSIVE'); console.log('held'); setInterval(() => {}, 1000)`
    const other = spawn(process.execPath, ['-e', script, turn], { stdio: ['ignore', 'pipe', 'ignore'] })
    await new Promise((resolve) => other.stdout.once('data', resolve))
    expect((await refusal(ground.another(50).add(ground.place()))).reason).toBe('busy')
    other.kill('SIGKILL')
    await exited(other)
    await ground.git.add(ground.place())
  })
})

describe('what else is there', () => {
  const OTHERS: [string, (path: string, ground: Ground) => void][] = [
    ['files', (path) => mkdirSync(join(path, 'x'), { recursive: true })],
    ['a file', (path) => writeFileSync(path, 'x')],
    ['a repository of its own', (path, ground) => void ground.in(join(path, '..'), 'init', '-q', path)],
    ['a link to the main checkout', (path, ground) => symlinkSync(ground.top, path)],
    ['a worktree of another repository', (path, ground) => anotherRepo(ground, path)],
  ]
  for (const [what, put] of OTHERS)
    test(`[G5] ${what}`, async ({ ground }) => {
      const place = ground.place()
      mkdirSync(join(place.path, '..'), { recursive: true })
      put(place.path, ground)
      expect((await refusal(ground.git.add(place))).reason).toBe('foreign')
      expect((await refusal(ground.git.remove(place, 'T-1'))).reason).toBe('foreign')
      expect((await refusal(ground.git.rescue(place, 'T-1'))).reason).toBe('foreign')
      expect(await ground.git.state(place, 'refs/heads/main')).toMatchObject({ state: 'foreign' })
      expect(await ground.git.file(place, 'a.txt', 10)).toBeUndefined()
      expect(lstatSync(place.path)).toBeDefined()
      expect(ground.branches()).toEqual([])
      expect(ground.run('status', '--porcelain')).toBe('')
    })

  test('[G5] a place that lost its .git is nobody’s, not the repository’s above it', async ({ ground }) => {
    ground.in(ground.folder, 'init', '-q')
    const place = await ground.made()
    rmSync(join(place.path, '.git'))
    expect((await refusal(ground.git.add(place))).reason).toBe('foreign')
    expect((await refusal(ground.git.diff(place, { from: place.from, bytes: 100 }))).reason).toBe('foreign')
  })

  test('[G5] nothing outside our folder is ever a place', async ({ ground }) => {
    for (const path of [ground.top, join(ground.folder, 'elsewhere'), `${ground.worktrees}/../web`, ground.worktrees])
      expect((await refusal(ground.git.remove({ repo: ground.top, path, branch: 'main' }, 'T-1'))).reason).toBe('invalid')
  })
})

describe('work is saved', () => {
  test('[G6] before its folder goes: changed, staged, untracked, deleted', async ({ ground }) => {
    const place = await ground.made()
    ground.write('a.txt', 'staged\n', place.path)
    ground.in(place.path, 'add', 'a.txt')
    ground.write('a.txt', 'changed\n', place.path)
    ground.write('sub dir/ünï\tcode', 'new', place.path)
    rmSync(join(place.path, 'lib'), { recursive: true })
    const { rescue } = await ground.git.remove(place, 'T-1')
    expect(existsSync(place.path)).toBe(false)
    expect(ground.branches()).toEqual([place.branch])
    const ref = rescue?.ref as string
    expect(rescue).toMatchObject({ branch: place.branch, ref: expect.stringMatching(/^refs\/signalbox\/rescue\/T-1\/\d{8}T\d{9}Z$/) })
    expect(ground.run('ls-tree', '-r', '-z', '--name-only', ref).split('\0').filter(Boolean)).toEqual(['a.txt', 'sub dir/ünï\tcode'])
    expect(ground.run('show', `${ref}:a.txt`)).toBe('changed')
    expect(ground.run('show', `${ref}^2:a.txt`)).toBe('staged')
    expect(await ground.git.remove(place, 'T-1')).toEqual({ rescue: undefined })
    expect(await ground.git.rescues(ground.top, 'T-1')).toEqual([rescue])
  })

  test('[G6] untracked files alone; ignored ones are not work; clean is nothing to save', async ({ ground }) => {
    ground.write('.gitignore', 'node_modules\n')
    ground.commit('ignore')
    const place = await ground.made()
    ground.write('node_modules/x', 'x', place.path)
    expect(await ground.git.rescue(place, 'T-1')).toBeUndefined()
    ground.write('only.txt', 'x', place.path)
    const { rescue } = await ground.git.remove(place, 'T-1')
    expect(ground.run('ls-tree', '--name-only', rescue?.ref as string)).toBe('.gitignore\na.txt\nlib\nonly.txt')
  })

  test('[G6] commits that no branch has', async ({ ground }) => {
    const place = await ground.made()
    ground.in(place.path, 'checkout', '-q', '--detach')
    ground.write('x', 'x', place.path)
    const loose = ground.commit('loose', place.path)
    const { rescue } = await ground.git.remove(place, 'T-1')
    expect(ground.run('rev-parse', `${rescue?.ref}^1`)).toBe(loose)
  })

  test('[G6] in the middle of a merge and of a rebase, and nothing of that is changed', async ({ ground }) => {
    const place = await ground.made()
    ground.write('a.txt', 'theirs\n')
    ground.commit('theirs')
    ground.write('a.txt', 'ours\n', place.path)
    ground.commit('ours', place.path)
    for (const command of ['merge', 'rebase']) {
      expect(() => ground.in(place.path, command, 'main')).toThrow()
      ground.write('extra.txt', command, place.path)
      const before = [ground.in(place.path, 'status', '--porcelain=v2', '--branch'), ground.in(place.path, 'ls-files', '-s')]
      const saved = await ground.git.rescue(place, 'T-1')
      expect([ground.in(place.path, 'status', '--porcelain=v2', '--branch'), ground.in(place.path, 'ls-files', '-s')]).toEqual(before)
      expect(ground.run('show', `${saved?.ref}:extra.txt`)).toBe(command)
      expect(ground.run('show', `${saved?.ref}:a.txt`)).toContain('<<<<<<<')
      rmSync(join(place.path, 'extra.txt'))
      ground.in(place.path, command, '--abort')
    }
    expect(await ground.git.rescues(ground.top, 'T-1')).toHaveLength(2)
  })

  test('[G6] a change of the same length in the same moment as the index', async ({ ground }) => {
    const place = await ground.made()
    const file = join(place.path, 'a.txt')
    // The one time that cannot be set.
    ground.run('config', 'core.trustctime', 'false')
    backdate(file)
    ground.in(place.path, 'update-index', '--refresh')
    ground.write('a.txt', 'two\n', place.path)
    backdate(file)
    backdate(join(ground.admin(place), 'index'))
    const saved = await ground.git.rescue(place, 'T-1')
    expect(ground.run('show', `${saved?.ref}:a.txt`)).toBe('two')
  })

  test('[G6] a file that became a folder, and a folder that became a file', async ({ ground }) => {
    const place = await ground.made()
    rmSync(join(place.path, 'a.txt'))
    ground.write('a.txt/inner', 'x', place.path)
    rmSync(join(place.path, 'lib'), { recursive: true })
    ground.write('lib', 'x', place.path)
    const saved = await ground.git.rescue(place, 'T-1')
    expect(ground.run('ls-tree', '-r', '--name-only', saved?.ref as string)).toBe('a.txt/inner\nlib')
  })

  test('[G7] and comes back; what was there is saved before', async ({ ground }) => {
    const place = await ground.made()
    ground.write('a.txt', 'first\n', place.path)
    ground.write('new.txt', 'new', place.path)
    const first = await ground.git.rescue(place, 'T-1')
    expect(await ground.another().rescue(place, 'T-1')).toEqual(first)
    ground.in(place.path, 'checkout', '-q', '--', 'a.txt')
    rmSync(join(place.path, 'new.txt'))
    ground.write('later.txt', 'later', place.path)
    const head = ground.commit('went on', place.path)
    ground.write('junk.txt', 'junk', place.path)
    const { rescue } = await ground.git.restore(place, first?.ref as string, 'T-1')
    expect(ground.run('show', `${rescue?.ref}:junk.txt`)).toBe('junk')
    expect(readdirSync(place.path).sort()).toEqual(['.git', 'a.txt', 'lib', 'new.txt'])
    expect(ground.in(place.path, 'rev-parse', 'HEAD')).toBe(head)
    expect(ground.in(place.path, 'status', '--porcelain').split('\n')).toEqual([' M a.txt'.trim(), ' D later.txt', '?? new.txt'])
    expect(await ground.git.restore(place, first?.ref as string, 'T-1')).toEqual({ rescue: undefined })
    await ground.git.restore(place, rescue?.ref as string, 'T-1')
    expect(readFileSync(join(place.path, 'junk.txt'), 'utf8')).toBe('junk')
    expect((await refusal(ground.git.restore(place, 'refs/signalbox/rescue/T-1/none', 'T-1'))).reason).toBe('missing')
  })

  test('[G6] and its folder goes, whatever may not be written in it and however deep it is; it keeps no other in its place', async ({
    ground,
  }) => {
    const [place, other] = [await ground.made(), await ground.made('other')]
    ground.write('cache/x/y', '', place.path)
    ground.write('cache/.gitignore', '*\n', place.path)
    dig(join(place.path, 'cache'))
    chmodSync(join(place.path, 'cache/x'), 0o555)
    chmodSync(place.path, 0o555)
    await ground.git.remove(place, 'T-1')
    expect(readdirSync(join(ground.worktrees, '.removed'))).toEqual([])
    await ground.git.remove(other, 'T-2')
    expect([place, other].map(({ path }) => existsSync(path))).toEqual([false, false])
  })

  test('[G8] a repository inside keeps its place until its work is elsewhere too', async ({ ground }) => {
    const place = await ground.made()
    const inner = join(place.path, 'inner')
    mkdirSync(inner)
    ground.in(inner, 'init', '-q')
    expect((await ground.git.diff(place, { from: place.from, bytes: 1_000 })).files).toEqual([])
    ground.write('only-here', 'x', inner)
    expect((await refusal(ground.git.remove(place, 'T-1'))).reason).toBe('unsaved')
    ground.commit('inner', inner)
    expect((await refusal(ground.git.remove(place, 'T-1'))).message).toContain(inner)
    ground.in(inner, 'init', '-q', '--bare', join(ground.folder, 'inner.git'))
    ground.in(inner, 'remote', 'add', 'origin', join(ground.folder, 'inner.git'))
    ground.in(inner, 'push', '-q', 'origin', 'HEAD')
    await ground.git.remove(place, 'T-1')
    expect(existsSync(place.path)).toBe(false)
  })
})

test('[G8] commits of a submodule are kept when its folder was deleted by hand', async ({ ground }) => {
  const place = await withSubmodule(ground)
  ground.write('more.txt', 'x', join(place.path, 'sub'))
  ground.in(join(place.path, 'sub'), 'checkout', '-q', '-b', 'topic')
  const only = ground.commit('only here', join(place.path, 'sub'))
  rmSync(place.path, { recursive: true })
  await ground.git.remove(place, 'T-1')
  const [kept] = readdirSync(join(ground.top, '.git/signalbox/modules'))
  const folder = join(ground.top, '.git/signalbox/modules', kept as string, 'sub')
  expect(ground.in(ground.folder, '--git-dir', folder, '--work-tree', folder, 'rev-parse', 'topic')).toBe(only)
})

base('[W14] [G15] a state with tens of thousands of files is read in portions', async () => {
  let [now, most] = [0, 0]
  const stamp = async (entry: string) => {
    most = Math.max(most, ++now)
    await Promise.resolve()
    now--
    return entry
  }
  const entries = Array.from({ length: 20_000 }, (_, i) => `?? ${i}`)
  const fingerprint = await fingerprintOf('x', entries, stamp)
  expect(most).toBeLessThanOrEqual(200)
  expect(await fingerprintOf('x', entries, stamp)).toBe(fingerprint)
  for (const other of [entries.slice(1), entries.with(-1, '?? other')]) expect(await fingerprintOf('x', other, stamp)).not.toBe(fingerprint)
})

describe('an untrusted repository', () => {
  const NAMES = [
    '-b',
    '--upload-pack=touch x',
    'ext::sh -c x',
    '$(touch x)',
    '`touch x`',
    'a\nb',
    'a\0b',
    'a b',
    '../x',
    'a..b',
    '@{-1}',
    'x.lock',
    '',
  ]
  test('[G9] names that are options, commands or expressions', async ({ ground }) => {
    const place = await ground.made()
    const before = ground.run('for-each-ref')
    for (const name of NAMES) {
      const inert = name.startsWith('$(')
      if (!inert) for (const more of [{ branch: name }, { base: name }]) await refusal(ground.git.add(ground.place('task-2', more)))
      await refusal(ground.git.state(place, name))
      await refusal(ground.git.diff(place, { from: name, bytes: 10 }))
      await refusal(ground.git.rescue(place, name))
      await refusal(ground.git.restore(place, name, 'T-1'))
      await refusal(ground.git.remove({ ...place, path: name }, 'T-1'))
      expect(await ground.git.inspect(name)).toBeUndefined()
      expect(() => ground.git.placeFor({ repo_handle: 'web', name })).toThrow(GitRefusal)
    }
    expect(ground.run('for-each-ref')).toBe(before)
    for (const path of ['--output=x', ':(top)*', '-'])
      expect((await ground.git.diff(place, { from: place.from, path, bytes: 10 })).files).toEqual([])
    ground.run('branch', '$(touch-x)')
    await ground.git.add(ground.place('task-3', { base: '$(touch-x)' }))
    expect(readdirSync(ground.folder)).not.toContain('x')
  })

  test('[G10] names programs, and none of them is run', async ({ ground }) => {
    const trap = ground.trap('trap')
    for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change', 'pre-commit', 'fsmonitor-watchman'])
      symlinkSync(trap, join(ground.top, '.git/hooks', hook))
    ground.write('.gitattributes', '*.txt filter=evil diff=evil\n*.odd filter=a=b\n')
    ground.write('x.odd', 'x')
    ground.commit('attributes')
    // Once they are checked out: the person's own git would run these.
    const config: [string, string][] = [
      ['core.fsmonitor', trap],
      ['core.sshCommand', trap],
      ['core.pager', trap],
      ['core.alternateRefsCommand', trap],
      ['credential.helper', `!${trap}`],
      ['diff.external', trap],
      ['diff.evil.command', trap],
      ['diff.evil.textconv', trap],
      ['filter.evil.clean', trap],
      ['filter.evil.smudge', trap],
      ['filter.evil.process', trap],
      ['filter.evil.required', 'true'],
      ['filter.a=b.clean', trap],
      ['filter.a=b.smudge', trap],
      ['remote.origin.url', `ext::${trap}`],
      ['remote.origin.uploadpack', trap],
      ['gpg.program', trap],
      ['commit.gpgSign', 'true'],
    ]
    for (const [key, value] of config) ground.run('config', key, value)
    ground.run('config', 'include.path', join(ground.folder, 'more'))
    writeFileSync(join(ground.folder, 'more'), `[filter "included"]\nclean = ${trap}\nsmudge = ${trap}\n`)
    rmSync(ground.sprung, { force: true })

    await ground.git.inspect(ground.top)
    const place = await ground.made()
    ground.write('a.txt', 'changed\n', place.path)
    ground.write('y.odd', 'y', place.path)
    ground.write('.gitattributes', '* filter=included\n', place.path)
    await ground.git.state(place, place.from)
    expect((await ground.git.diff(place, { from: place.from, bytes: 10_000 })).text).toContain('+changed')
    const saved = await ground.git.rescue(place, 'T-1')
    ground.write('a.txt', 'again\n', place.path)
    await ground.git.restore(place, saved?.ref as string, 'T-1')
    expect(readFileSync(join(place.path, 'a.txt'), 'utf8')).toBe('changed\n')
    await ground.git.remove(place, 'T-1')
    expect(existsSync(ground.sprung) ? readFileSync(ground.sprung, 'utf8') : '').toBe('')
  })

  test('[G10] nor those that a submodule’s configuration names', async ({ ground }) => {
    const trap = ground.trap('trap')
    const place = await withSubmodule(ground)
    const inner = join(place.path, 'sub')
    for (const [key, value] of [
      ['core.fsmonitor', trap],
      ['filter.evil.clean', trap],
    ] as const)
      ground.in(inner, 'config', key, value)
    ground.write('.gitattributes', '* filter=evil\n', inner)
    ground.write('inside.txt', 'changed', inner)
    await ground.git.state(place, place.from)
    await ground.git.diff(place, { from: place.from, bytes: 100 })
    await ground.git.rescue(place, 'T-1')
    expect((await refusal(ground.git.remove(place, 'T-1'))).reason).toBe('unsaved')
    expect(existsSync(ground.sprung) ? readFileSync(ground.sprung, 'utf8') : '').toBe('')
  })

  test('[G10] the person’s own filters are honoured, over what the repository says', async ({ ground }) => {
    const trap = ground.trap('trap')
    ground.run('config', '--global', 'filter.large.clean', 'tr a-z A-Z')
    ground.run('config', '--global', 'filter.large.smudge', 'tr A-Z a-z')
    ground.run('config', '--global', 'filter.large.required', 'true')
    ground.write('.gitattributes', '*.bin filter=large\n')
    ground.write('x.bin', 'hello\n')
    ground.commit('large')
    expect(ground.run('show', 'HEAD:x.bin')).toBe('HELLO')
    ground.run('config', 'filter.large.smudge', trap)
    const place = await ground.made()
    expect(readFileSync(join(place.path, 'x.bin'), 'utf8')).toBe('hello\n')
    expect(await ground.git.state(place, place.from)).toMatchObject({ dirty: 0 })
    ground.write('y.bin', 'world\n', place.path)
    const saved = await ground.git.rescue(place, 'T-1')
    expect(ground.run('show', `${saved?.ref}:y.bin`)).toBe('WORLD')
    rmSync(join(place.path, 'y.bin'))
    await ground.git.restore(place, saved?.ref as string, 'T-1')
    expect(readFileSync(join(place.path, 'y.bin'), 'utf8')).toBe('world\n')
    expect(existsSync(ground.sprung)).toBe(false)
  })
})

describe('what is in a place', () => {
  test('[G11] modes, links and line ends', async ({ ground }) => {
    ground.write('run.sh', '#!/bin/sh\n')
    chmodSync(join(ground.top, 'run.sh'), 0o755)
    symlinkSync('lib/b.txt', join(ground.top, 'link'))
    ground.write('.gitattributes', '*.bat text eol=crlf\n')
    ground.write('go.bat', 'one\r\ntwo\r\n')
    for (let n = 0; n < 150; n++) ground.write(`many/${n}`, String(n))
    ground.commit('kinds')
    const place = await ground.made()
    expect(lstatSync(join(place.path, 'run.sh')).mode & 0o111).toBe(0o111)
    expect(readlinkSync(join(place.path, 'link'))).toBe('lib/b.txt')
    expect(readFileSync(join(place.path, 'go.bat'), 'utf8')).toBe('one\r\ntwo\r\n')
    expect(readdirSync(join(place.path, 'many'))).toHaveLength(150)
    expect(await ground.git.state(place, place.from)).toMatchObject({ state: 'present', dirty: 0, ahead: 0 })
  })

  test('[G11] a submodule is left to be filled, works, and goes with its place when it holds nothing of its own', async ({ ground }) => {
    const place = await withSubmodule(ground)
    expect(readFileSync(join(place.path, 'sub/inside.txt'), 'utf8')).toBe('inside')
    expect(await ground.git.rescue(place, 'T-1')).toBeUndefined()
    ground.write('new.txt', 'x', place.path)
    const saved = await ground.git.rescue(place, 'T-1')
    expect(ground.run('ls-tree', saved?.ref as string, 'sub')).toMatch(/^160000 commit/)
    rmSync(join(place.path, 'new.txt'))
    await ground.git.restore(place, saved?.ref as string, 'T-1')
    expect(ground.in(place.path, 'submodule', 'status')).toMatch(/^[0-9a-f]{40} sub/)
    await ground.git.remove(place, 'T-1')
    expect(existsSync(place.path)).toBe(false)
    await ground.git.add(place)
    expect(readdirSync(join(place.path, 'sub'))).toEqual([])
  })

  test('[G17] [SU9] files of a commit differ by their mode as by their content', async ({ ground }) => {
    ground.write('run.sh', '#!/bin/sh\n')
    const filesOf = async (message: string) =>
      (await ground.git.filesOf(ground.top, ground.commit(message))).find(({ path }) => path === 'run.sh')?.id
    const before = await filesOf('as a text')
    chmodSync(join(ground.top, 'run.sh'), 0o755)
    const program = await filesOf('as a program')
    chmodSync(join(ground.top, 'run.sh'), 0o644)
    expect(program).not.toBe(before)
    expect(await filesOf('as a text again')).toBe(before)
  })

  test('[G17] [SU9] files of a commit have their whole names, whatever is in them', async ({ ground }) => {
    ground.write('a\tb', 'x')
    ground.write('c\nd', 'y')
    const names = (await ground.git.filesOf(ground.top, ground.commit('strange'))).map(({ path }) => path)
    expect(names).toEqual(expect.arrayContaining(['a\tb', 'c\nd']))
  })

  test.skipIf(process.platform !== 'linux')(
    '[SU8] a copy that was cut off, as by a full disk, is made whole by the next attempt; others stay as they are',
    async ({ ground }) => {
      ground.write('.gitignore', '.env*\n')
      ground.commit('ignored')
      const place = await ground.made()
      for (const name of ['.env', '.env.own', '.env.shut']) ground.write(name, `KEY=${'x'.repeat(50_000)}\n`)
      chmodSync(join(ground.top, '.env.shut'), 0o400)
      ground.write('.env.own', 'KEY=', place.path)
      // Files of this process may not grow beyond that: a full disk for it alone.
      const limit = (bytes: string) => execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`])
      limit('10000')
      try {
        await expect(ground.git.bring(ground.top, place.path, ['.env*'])).rejects.toThrow('EFBIG')
      } finally {
        limit('unlimited')
      }
      expect(await ground.git.bring(ground.top, place.path, ['.env*'])).toEqual(['.env', '.env.own', '.env.shut'])
      const text = (name: string, below = place.path) => readFileSync(join(below, name), 'utf8')
      expect([text('.env') === text('.env', ground.top), text('.env.shut') === text('.env', ground.top), text('.env.own')]).toEqual([
        true,
        true,
        'KEY=',
      ])
      expect(['.env', '.env.shut'].map((name) => lstatSync(join(place.path, name)).mode & 0o777)).toEqual([0o644, 0o400])
    },
  )

  test.skipIf(process.platform !== 'linux' || withoutPython)(
    '[SU8] no folder becomes a link to what is hidden in the middle of a copy',
    async ({ ground }) => {
      const hidden = join(ground.folder, 'hidden')
      ground.write('token', 'secret', hidden)
      ground.write('.gitignore', 'config\n')
      ground.commit('ignored')
      ground.write('config/token', 'mine')
      const place = await ground.made()
      const copy = join(place.path, 'config/token')
      const link = join(ground.folder, 'link')
      symlinkSync(hidden, link)
      // Two names change places in one step, over and over.
      const swap =
        'import ctypes, os, sys\nc = ctypes.CDLL(None)\na, b = map(os.fsencode, sys.argv[1:])\nwhile True: c.renameat2(-100, a, -100, b, 2)'
      const racer = spawn('python3', ['-c', swap, join(ground.top, 'config'), link])
      try {
        for (let i = 0; i < 40; i++) {
          await ground.git.bring(ground.top, place.path, ['config/*']).catch(() => {})
          if (existsSync(copy)) expect(readFileSync(copy, 'utf8')).toBe('mine')
          rmSync(copy, { force: true })
        }
      } finally {
        racer.kill('SIGKILL')
      }
    },
  )

  test('[SU8] a link in the place of one folder keeps no other file from being copied', async ({ ground }) => {
    ground.write('.gitignore', '.env\n')
    ground.commit('ignored')
    const place = await ground.made()
    rmSync(join(place.path, 'lib'), { recursive: true })
    symlinkSync('..', join(place.path, 'lib'))
    for (const name of ['lib/.env', 'lib/deep/.env', 'web/.env']) ground.write(name, 'A=1\n')
    expect(await ground.git.bring(ground.top, place.path, ['**/.env'])).toEqual(['web/.env'])
    expect(readdirSync(join(place.path, '..'))).toEqual(['task-1'])
  })

  test('[G17] [SU9] a submodule that is filled is not as it was, whatever it says about itself', async ({ ground }) => {
    const place = await withSubmodule(ground)
    const extras = () => ground.git.extras(ground.top, place.path)
    expect(await extras()).toEqual({ ignored: [], untracked: [], changed: ['sub'] })
    ground.in(place.path, 'submodule', '--quiet', 'deinit', '--force', 'sub')
    expect(await extras()).toEqual({ ignored: [], untracked: [], changed: [] })
    ground.write('sub/node_modules/a.js', 'a', place.path)
    expect(await extras()).toEqual({ ignored: [], untracked: [], changed: ['sub'] })
  })

  test('[G12] the difference has what is committed, staged, changed and untracked, and leaves nothing behind', async ({ ground }) => {
    const place = await ground.made()
    ground.in(place.path, 'mv', 'lib/b.txt', 'lib/c.txt')
    ground.commit('moved', place.path)
    appendFileSync(join(place.path, 'a.txt'), 'more\n')
    ground.write('new.txt', 'x\ny\n', place.path)
    ground.write('pic.bin', '\0\x01\x02', place.path)
    const before = [ground.run('count-objects', '-v'), ground.in(place.path, 'status', '--porcelain')]
    const diff = await ground.git.diff(place, { from: place.from, bytes: 10_000 })
    expect(diff.files).toEqual([
      { path: 'a.txt', from: null, status: 'M', added: 1, removed: 0 },
      { path: 'lib/c.txt', from: 'lib/b.txt', status: 'R', added: 0, removed: 0 },
      { path: 'new.txt', from: null, status: 'A', added: 2, removed: 0 },
      { path: 'pic.bin', from: null, status: 'A', added: null, removed: null },
    ])
    expect(diff).toMatchObject({ cut: false, text: expect.stringContaining('Binary files') })
    expect([ground.run('count-objects', '-v'), ground.in(place.path, 'status', '--porcelain')]).toEqual(before)
    expect((await ground.git.diff(place, { from: place.from, path: 'new.txt', bytes: 10_000 })).files).toHaveLength(1)
    const short = await ground.git.diff(place, { from: place.from, bytes: 100 })
    expect([short.cut, short.text.endsWith('\n'), diff.text.startsWith(short.text), short.text.length <= 100]).toEqual([
      true,
      true,
      true,
      true,
    ])
    await ground.git.remove(place, 'T-1')
    expect((await ground.git.diff(place, { from: place.from, bytes: 10_000 })).files).toMatchObject([{ path: 'lib/c.txt' }])
  })

  test('[G12] a file too large to be read for a look is told like a binary one, and is saved all the same', async ({ ground }) => {
    const place = await ground.made()
    const sizes = { 'new.img': 65 * 1024 * 1024, 'a.txt': 70 * 1024 * 1024, 'small.txt': 3 }
    for (const [name, size] of Object.entries(sizes)) {
      ground.write(name, 'abc', place.path)
      truncateSync(join(place.path, name), size)
    }
    const diff = await ground.git.diff(place, { from: place.from, bytes: 10_000 })
    expect(diff.files).toEqual([
      { path: 'small.txt', from: null, status: 'A', added: 1, removed: 0 },
      { path: 'a.txt', from: null, status: 'M', added: null, removed: null },
      { path: 'new.img', from: null, status: 'A', added: null, removed: null },
    ])
    expect((await ground.git.diff(place, { from: place.from, path: 'small.txt', bytes: 10_000 })).files).toHaveLength(1)
    const { rescue } = await ground.git.remove(place, 'T-1')
    expect(ground.run('cat-file', '-s', `${rescue?.ref}:new.img`)).toBe(String(sizes['new.img']))
  })

  test('[G12] tens of thousands of large files keep nobody waiting, and the list of them is cut', () => {
    const large = Array.from({ length: 60_000 }, (_, n) => ({ path: `${'deep/'.repeat(20)}${n}.img`, isNew: n % 2 === 0 }))
    const told = large.map(({ path }) => ({ path, from: null, status: 'M', added: 1, removed: 1 }))
    const listed = Buffer.from(large.map(({ path, isNew }) => `${isNew ? '?' : 'C'} ${path}\0`).join(''))
    const began = performance.now()
    const { paths, added } = changedIn(listed)
    const { files, cut } = withLarge({ files: told, text: '', cut: false, commit: null, tip: null }, large, undefined)
    // Each compared with every other, it would be ten times as long.
    expect(performance.now() - began).toBeLessThan(5_000)
    expect([paths.length, added.size, files.length, cut]).toEqual([60_000, 30_000, 5_000, true])
    expect(files[0]).toMatchObject({ added: null })
    expect(
      withLarge({ files: told.slice(0, 1), text: '', cut: false, commit: null, tip: null }, large.slice(1, 2), undefined),
    ).toMatchObject({ cut: false })
  })

  test('[G13] files below it, and no others', async ({ ground }) => {
    const place = await ground.made()
    writeFileSync(join(ground.folder, 'secret'), 'secret')
    symlinkSync(join(ground.folder, 'secret'), join(place.path, 'out'))
    symlinkSync('../../..', join(place.path, 'up'))
    symlinkSync('a.txt', join(place.path, 'in'))
    symlinkSync('.git', join(place.path, 'dot'))
    mkdirSync(join(place.path, 'x/.GIT'), { recursive: true })
    ground.write('x/.GIT/config', 'x', place.path)
    execFileSync('mkfifo', [join(place.path, 'pipe')])
    const outside = [
      '../secret',
      join(ground.folder, 'secret'),
      'out',
      'up/secret',
      '.git',
      'dot',
      'x/.GIT/config',
      'lib',
      'pipe',
      'a.txt\0',
      '',
      '.',
      'none',
    ]
    for (const path of outside) expect([path, await ground.git.file(place, path, 100)]).toEqual([path, undefined])
    for (const path of ['a.txt', 'in', 'lib/../a.txt']) expect((await ground.git.file(place, path, 100))?.bytes.toString()).toBe('one\n')
    expect(await ground.git.file(place, 'a.txt', 2)).toEqual({ bytes: Buffer.from('on'), size: 4, cut: true, commit: null })
  })

  test('[G15] is told also while it is made and taken away: how it is, or that git will not say', async ({ ground }) => {
    const place = await ground.made()
    let over = false
    const looking = async () => {
      const seen = new Set<string>()
      while (!over)
        seen.add(
          await ground.git.state(place, place.from).then(
            ({ state }) => state,
            (error) => (error instanceof GitRefusal ? error.reason : `${error}`),
          ),
        )
      return [...seen]
    }
    const looks = [looking(), looking()]
    for (let n = 0; n < 6; n++) {
      await ground.git.remove(place, 'x')
      await ground.git.add(place)
    }
    over = true
    const seen = new Set((await Promise.all(looks)).flat())
    expect([...seen].filter((what) => !['present', 'missing', 'foreign', 'failed'].includes(what))).toEqual([])
  })
})

/** The work as a SIGKILL after its n-th writing command leaves it; false when there are not so many. */
async function cutOff(ground: Ground, step: number, work: (git: Git) => Promise<unknown>): Promise<boolean> {
  const folder = join(ground.folder, 'shim')
  const count = join(folder, 'count')
  mkdirSync(folder, { recursive: true })
  const real = execFileSync('sh', ['-c', 'command -v git']).toString().trim()
  // Others write objects that nothing names yet.
  const writing = ['update-ref', 'worktree', 'reset', 'read-tree']
  const script = `#!/bin/sh
n=$(cat ${count}); [ $n -ge ${step} ] && exit 137
${real} "$@"; code=$?
case " $* " in ${writing.map((word) => `*" ${word} "*`).join('|')}) n=$((n+1)); echo $n > ${count}; [ $n = ${step} ] && exit 137;; esac
exit $code
`
  writeFileSync(join(folder, 'git'), script)
  chmodSync(join(folder, 'git'), 0o755)
  writeFileSync(count, '0')
  await work(realGit({ worktrees: ground.worktrees, env: { ...ground.env, PATH: `${folder}:${ground.env.PATH}` } })).catch(() => {})
  return Number(readFileSync(count, 'utf8')) >= step
}

function anotherRepo(ground: Ground, path: string): void {
  const other = join(ground.folder, 'other')
  ground.in(ground.folder, 'clone', '-q', ground.top, other)
  ground.in(other, 'worktree', 'add', '-q', '-b', 'x', path)
}

async function withSubmodule(ground: Ground) {
  const library = join(ground.folder, 'library')
  mkdirSync(library)
  ground.in(library, 'init', '-q')
  ground.write('inside.txt', 'inside', library)
  ground.commit('library', library)
  ground.run('submodule', '--quiet', 'add', library, 'sub')
  ground.commit('with a submodule')
  const place = await ground.made()
  expect(readdirSync(join(place.path, 'sub'))).toEqual([])
  ground.in(place.path, 'submodule', '--quiet', 'update', '--init')
  return place
}

function processesIn(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)
      } catch {
        return false
      }
    })
    .map(Number)
}

function exited(child: ReturnType<typeof spawn>): Promise<void> {
  return new Promise((resolve) => (child.exitCode === null && child.signalCode === null ? child.once('exit', () => resolve()) : resolve()))
}
