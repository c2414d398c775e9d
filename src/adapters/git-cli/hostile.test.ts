import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect } from 'vitest'
import type { Place } from '../../ports/git.ts'
import { realGit } from '../../testing/git.ts'
import { type LineGround, test } from '../../testing/line-ground.ts'

const sprung = (ground: LineGround) => join(ground.folder, 'sprung')

/** A program that tells that it was run. */
function trap(ground: LineGround): string {
  const path = join(ground.folder, 'trap')
  writeFileSync(path, `#!/bin/sh\necho "$0 $*" >> '${sprung(ground)}'\ncat\n`, { mode: 0o755 })
  return `'${path}'`
}

function untouched(ground: LineGround): void {
  expect(existsSync(sprung(ground)) ? readFileSync(sprung(ground), 'utf8') : '').toBe('')
}

async function placed(ground: LineGround, name = 'task'): Promise<Place & { from: string }> {
  const place = { repo: ground.top, path: await ground.place(name), branch: `signalbox/${name}` }
  return { ...place, from: ground.tip(place.branch) }
}

/** Whatever can be asked of a repository and a place, by a git that knows nothing of them yet; what came of each. */
async function everything(ground: LineGround, place: Place & { from: string }): Promise<Record<string, string>> {
  const git = ground.another()
  const onto = place.from
  const asked: Record<string, () => Promise<unknown>> = {
    inspect: () => git.inspect(ground.top),
    state: () => git.state(place, place.from),
    diff: () => git.diff(place, { from: place.from, bytes: 1_000 }),
    rescue: () => git.rescue(place, 'task'),
    line: () => git.line(ground.main),
    rebase: () => git.rebase(place, onto, 'task'),
    deliver: () => git.deliver(place, { path: '.signalbox/f/1.md', text: 'x', message: 'm', trailers: { A: 'b' } }),
    remove: () => git.remove(place, 'task'),
    add: () => git.add({ ...place, base: 'main', strategy: 'local' }),
    scratch: () => git.scratch(ground.top, 'line', onto),
    follow: () => git.follow(ground.main),
  }
  const said: Record<string, string> = {}
  for (const [name, ask] of Object.entries(asked))
    said[name] = await ask().then(
      (answer) => (answer === undefined ? 'nothing' : 'done'),
      (error) => String(error.reason ?? error),
    )
  return said
}

describe('the code of a worker is not run', () => {
  test('[GT1] of a repository inside its worktree that it committed a link to', async ({ ground }) => {
    const place = await placed(ground)
    const inner = join(place.path, 'inner')
    mkdirSync(inner)
    ground.in(inner, 'init', '-q')
    const head = ground.commit(inner, { '.gitattributes': '* filter=evil\n', 'x.txt': 'one\n' })
    ground.in(place.path, 'update-index', '--add', '--cacheinfo', `160000,${head},inner`)
    ground.in(place.path, 'commit', '-q', '-m', 'a link')
    ground.in(inner, 'config', 'filter.evil.clean', trap(ground))
    ground.write({ 'x.txt': 'two\n' }, inner)
    ground.commit(ground.top, { 'b.txt': 'b\n' })
    await everything(ground, place)
    untouched(ground)
  })

  test('[GT1] that a configuration names which is too large to be read: it is refused', async ({ ground }) => {
    const place = await placed(ground)
    ground.commit(place.path, { '.gitattributes': '* filter=evil\n' })
    ground.run('config', 'filter.evil.clean', trap(ground))
    const line = `\tx = ${'x'.repeat(1_000)}\n`
    for (let n = 0; n < 66; n++) appendFileSync(join(ground.top, '.git/config'), `[many "${n}"]\n${line.repeat(1_000)}`)
    ground.write({ 'a.txt': 'changed\n' }, place.path)
    const { inspect, ...others } = await everything(ground, place)
    untouched(ground)
    expect([inspect, ...new Set(Object.values(others))]).toEqual(['nothing', 'failed'])
  })

  test('[GT1] that a configuration names which answers differently each time', async ({ ground }) => {
    const place = await placed(ground)
    ground.commit(place.path, { '.gitattributes': '* filter=evil\n' })
    const fifo = join(ground.folder, 'fifo')
    execFileSync('mkfifo', [fifo])
    const evil = `[filter "evil"]\nclean = ${trap(ground)}\nsmudge = ${trap(ground)}\n`
    writeFileSync(join(ground.folder, 'evil'), evil)
    const feeder = spawn(
      'sh',
      [
        '-c',
        `while exec 3>"$1"; do grep -lz '[-]-show-scope' /proc/[0-9]*/cmdline >/dev/null 2>&1 || cat "$2" >&3; exec 3>&-; done`,
        '-',
        fifo,
        join(ground.folder, 'evil'),
      ],
      { stdio: 'ignore' },
    )
    ground.run('config', 'include.path', fifo)
    ground.write({ 'a.txt': 'changed\n' }, place.path)
    const said = await everything(ground, place).finally(async () => {
      feeder.kill('SIGKILL')
      await once(feeder, 'exit')
    })
    untouched(ground)
    expect(said).toMatchObject({ inspect: 'done', state: 'done', diff: 'done', rescue: 'done', line: 'done', remove: 'done', add: 'done' })
  })

  test('[GT1] that its worktree, its record of it, or the repository was told to take the configuration from', async ({ ground }) => {
    const evil = join(ground.folder, 'evil.git')
    ground.in(ground.folder, 'clone', '-q', '--bare', ground.top, evil)
    for (const key of ['clean', 'smudge']) ground.in(evil, 'config', `filter.evil.${key}`, trap(ground))
    ground.run('config', 'extensions.worktreeConfig', 'true')
    const place = await placed(ground)
    ground.commit(place.path, { '.gitattributes': '* filter=evil\n' })
    const admin = ground.in(place.path, 'rev-parse', '--absolute-git-dir')
    writeFileSync(join(admin, 'config.worktree'), readFileSync(join(evil, 'config')))
    writeFileSync(join(admin, 'commondir'), `${evil}\n`)
    ground.write({ 'a.txt': 'changed\n' }, place.path)
    expect(await everything(ground, place)).toMatchObject({ state: 'done', diff: 'done', rescue: 'done' })
    const other = await placed(ground, 'other')
    writeFileSync(join(other.path, '.git'), `gitdir: ${evil}\n`)
    expect(await ground.another().state(other, other.from)).toMatchObject({ state: 'foreign' })
    writeFileSync(join(ground.top, '.git/commondir'), `${evil}\n`)
    expect(await everything(ground, place)).toMatchObject({ inspect: 'nothing', state: 'missing', line: 'missing', scratch: 'missing' })
    untouched(ground)
  })

  test('[GT1] that it writes among what a rebase is about to do', async ({ ground }) => {
    ground.commit(ground.top, { '.gitattributes': '*.txt filter=where\n' })
    const place = await placed(ground)
    ground.commit(place.path, { 'w.txt': 'w\n' })
    const onto = await ground.ahead()
    const where = join(ground.folder, 'where')
    ground.run('config', '--global', 'filter.where.smudge', `echo "$GIT_DIR" >> '${where}'; cat`)
    expect(await ground.git.rebase(place, onto, 'task')).toMatchObject({ result: 'rebased' })
    const folders = new Set(readFileSync(where, 'utf8').trim().split('\n'))
    expect(folders.size).toBe(2)
    // The worktree itself, into which what was made elsewhere is laid.
    folders.delete(ground.in(place.path, 'rev-parse', '--absolute-git-dir'))
    expect([...folders].filter((folder) => folder.startsWith(join(ground.top, '.git')))).toEqual([])
  })

  test('[GT1] nor does a pipe in the place of a file of git hold us up', async ({ ground }) => {
    const place = await placed(ground)
    const admin = ground.in(place.path, 'rev-parse', '--absolute-git-dir')
    const pipe = (path: string) => {
      rmSync(path)
      execFileSync('mkfifo', [path])
    }
    pipe(join(admin, 'index'))
    await expect(ground.git.rescue(place, 'task')).rejects.toMatchObject({ reason: 'failed', message: expect.stringContaining('index') })
    pipe(join(place.path, '.git'))
    expect(await ground.git.state(place, place.from)).toMatchObject({ state: 'foreign' })
    pipe(join(ground.top, '.git/config'))
    await expect(ground.another().line(ground.main)).rejects.toMatchObject({ reason: 'failed', message: expect.stringContaining('config') })
  })
})

describe('our own git directories', () => {
  /** Wherever they are: of all folders, those that begin where no repository does. */
  const own = (ground: LineGround) => {
    const heads = readdirSync(ground.folder, { recursive: true, encoding: 'utf8' }).filter((path) => basename(path) === 'HEAD')
    const paths = heads.map((path) => join(ground.folder, path))
    return dirname(paths.find((path) => readFileSync(path, 'utf8') === 'ref: refs/signalbox/none\n') as string)
  }

  test('[GT8] are not below the folder that runs can write to, nor anything else that git takes settings from', async ({ ground }) => {
    const place = await placed(ground)
    await everything(ground, place)
    const left = readdirSync(join(ground.folder, 'work trees'), { recursive: true, encoding: 'utf8' })
    expect(left.filter((path) => /^\.own|(?:^|\/)(?:config|info|attributes)$/.test(path))).toEqual([])
    expect(own(ground).startsWith(join(ground.folder, 'git/'))).toBe(true)
  })

  test('[GT8] are what we wrote whenever they are used, whatever somebody put there', async ({ ground }) => {
    const place = await placed(ground)
    ground.write({ 'a.txt': 'changed\n' }, place.path)
    const folder = own(ground)
    const evil = `[filter "x"]\nclean = ${trap(ground)}\nsmudge = ${trap(ground)}\n[core]\nattributesFile = ${join(ground.folder, 'attributes')}\n`
    writeFileSync(join(ground.folder, 'attributes'), '* filter=x\n')
    const elsewhere = join(ground.folder, 'elsewhere')
    mkdirSync(elsewhere)
    const config = readFileSync(join(folder, 'config'), 'utf8')
    const poisons: Record<string, () => void> = {
      config: () => appendFileSync(join(folder, 'config'), evil),
      attributes: () => {
        writeFileSync(join(folder, 'info/attributes'), '* filter=x\n')
        appendFileSync(join(folder, 'config'), evil)
      },
      'a folder that is a link': () => {
        renameSync(join(folder, 'info'), join(ground.folder, 'moved'))
        symlinkSync(join(ground.folder, 'moved'), join(folder, 'info'))
      },
      'a link that leads elsewhere': () => {
        rmSync(join(folder, 'refs'))
        symlinkSync(elsewhere, join(folder, 'refs'))
      },
      'a pipe': () => {
        rmSync(join(folder, 'HEAD'))
        execFileSync('mkfifo', [join(folder, 'HEAD')])
      },
      'a list of roots': () => writeFileSync(join(folder, 'shallow'), `${place.from}\n`),
    }
    for (const [name, poison] of Object.entries(poisons)) {
      poison()
      expect((await ground.git.diff(place, { from: place.from, bytes: 1_000 })).files, name).toMatchObject([{ path: 'a.txt' }])
      untouched(ground)
      expect(readFileSync(join(folder, 'config'), 'utf8')).toBe(config)
      expect(readdirSync(folder, { recursive: true, encoding: 'utf8' })).not.toContain('info/attributes')
      expect(existsSync(join(folder, 'shallow'))).toBe(false)
      expect(lstatSync(join(folder, 'info')).isDirectory()).toBe(true)
    }
  })

  test('[GT8] keep no copy of the attributes of a merge that the next one would go by', async ({ ground }) => {
    ground.commit(ground.top, { '.gitattributes': 'x.txt -merge\n' })
    const two = await ground.work('t2', { 'a.txt': 'EINS\ntwo\n' })
    await ground.land('t1', await ground.work('t1', { 'a.txt': 'ONE\ntwo\n' }))
    expect(await ground.build('t2', two)).toEqual({ result: 'conflict', files: ['a.txt'] })
    const ours = readdirSync(join(own(ground), '..'), { recursive: true, encoding: 'utf8' })
    expect(ours.filter((path) => basename(path) === '.gitattributes')).toEqual([])
  })

  test('[GT9] nor does a pipe beside the lock hold us up, where workers can write or where only we can', async ({ ground }) => {
    const place = await placed(ground)
    mkdirSync(join(ground.top, '.git/signalbox'), { recursive: true })
    const locks = [join(ground.top, '.git/signalbox/turn'), `${own(ground)}.turn`]
    for (const suffix of ['-journal', '-wal', '-shm', '']) {
      for (const path of locks) rmSync(`${path}${suffix}`, { force: true })
      execFileSync(
        'mkfifo',
        locks.map((path) => `${path}${suffix}`),
      )
      await ground.git.remove(place, 'task')
      await ground.git.add({ ...place, base: 'main', strategy: 'local' })
    }
  })
})

describe('a pipe in the place of what git reads', () => {
  const PIPES: Record<string, (ground: LineGround, place: Place) => string> = {
    'a .gitignore in a folder': (_, { path }) => join(path, 'deep/er/.gitignore'),
    'the .gitattributes': (_, { path }) => join(path, '.gitattributes'),
    'what the repository ignores': ({ top }) => join(top, '.git/info/exclude'),
    'its branch': ({ top }, { branch }) => join(top, '.git/refs/heads', branch),
    'the packed refs': ({ top }) => join(top, '.git/packed-refs'),
    'a file of ignored names elsewhere': (ground) => {
      ground.run('config', 'core.excludesFile', join(ground.folder, 'ignored'))
      return join(ground.folder, 'ignored')
    },
  }
  for (const [what, pipeIn] of Object.entries(PIPES))
    test(`[GT9] ${what}: it is named, and holds up nothing`, async ({ ground }) => {
      const place = await placed(ground)
      const git = realGit({ worktrees: join(ground.folder, 'work trees'), env: ground.env, stuckMs: 100 })
      ground.write({ 'a.txt': 'changed\n', 'deep/er/new.txt': 'new\n' }, place.path)
      const pipe = pipeIn(ground, place)
      mkdirSync(dirname(pipe), { recursive: true })
      const before = existsSync(pipe) ? readFileSync(pipe) : undefined
      rmSync(pipe, { force: true })
      execFileSync('mkfifo', [pipe])
      const named = { reason: 'failed', message: expect.stringContaining(`${pipe} is a pipe`) }
      const said = await Promise.allSettled([git.state(place, place.from), git.diff(place, { from: place.from, bytes: 1_000 })])
      expect(said.map((one) => (one.status === 'rejected' ? one.reason : named))).toMatchObject([named, named])
      expect(said.map(({ status }) => status)).toContain('rejected')
      await expect(git.remove(place, 'task')).rejects.toMatchObject(named)
      rmSync(pipe)
      if (before) writeFileSync(pipe, before)
      expect((await git.diff(place, { from: place.from, bytes: 1_000 })).files).toMatchObject([
        { path: 'a.txt' },
        { path: 'deep/er/new.txt' },
      ])
      await git.remove(place, 'task')
    })

  test('[GT9] the mark of a checkout that was cut off', async ({ ground }) => {
    const place = await placed(ground)
    const admin = ground.in(place.path, 'rev-parse', '--absolute-git-dir')
    rmSync(join(admin, 'index'))
    execFileSync('mkfifo', [join(admin, 'signalbox-checkout')])
    await ground.git.add({ ...place, base: 'main', strategy: 'local' })
    expect(await ground.git.state(place, place.from)).toMatchObject({ state: 'present', dirty: 0 })
  })
})

test('[GT10] nothing is deleted by way of a link in the place of the folder for what is removed', async ({ ground }) => {
  const place = await placed(ground)
  const theirs = join(ground.folder, 'theirs')
  ground.write({ 'kept.txt': 'kept\n' }, theirs)
  symlinkSync(theirs, join(ground.folder, 'work trees/.removed'))
  await ground.git.remove(place, 'task')
  expect([existsSync(place.path), readdirSync(theirs)]).toEqual([false, ['kept.txt']])
  expect(readdirSync(join(ground.folder, 'work trees/.removed'))).toEqual([])
})

test('[GT10] nor is a check’s checkout made, or deleted, by way of a link in the place of a folder above it', async ({ ground }) => {
  const { path } = await ground.git.scratch(ground.top, 'line', ground.tip('main'))
  const theirs = join(ground.folder, 'theirs')
  ground.write({ 'line/kept.txt': 'kept\n' }, theirs)
  for (const above of [dirname(path), dirname(dirname(path))]) {
    rmSync(above, { recursive: true })
    symlinkSync(theirs, above)
    expect(await ground.git.scratch(ground.top, 'line', ground.tip('main'))).toEqual({ path })
    expect(readdirSync(path)).toContain('a.txt')
    expect(readdirSync(theirs, { recursive: true })).toEqual(['line', 'line/kept.txt'])
  }
})

describe('what is merged', () => {
  /** Two works that exclude each other. */
  const contrary = async (ground: LineGround) => {
    const [one, two] = [await ground.work('t1', { 'a.txt': 'ONE\ntwo\n' }), await ground.work('t2', { 'a.txt': 'EINS\ntwo\n' })]
    await ground.land('t1', one)
    return two
  }

  test('[GT1] is not what attributes say that only the repository has', async ({ ground }) => {
    const two = await contrary(ground)
    mkdirSync(join(ground.top, '.git/info'), { recursive: true })
    writeFileSync(join(ground.top, '.git/info/attributes'), '* merge=union\n')
    writeFileSync(join(ground.top, 'attributes'), '* merge=union\n')
    ground.run('config', 'core.attributesFile', join(ground.top, 'attributes'))
    expect(await ground.build('t2', two)).toEqual({ result: 'conflict', files: ['a.txt'] })
    const place = { repo: ground.top, path: ground.git.placeFor({ repo_handle: 'web', name: 't2' }), branch: 'signalbox/t2' }
    expect(await ground.git.rebase(place, await ground.head(), 't2')).toEqual({ result: 'conflict', files: ['a.txt'] })
    ground.commit(ground.top, { 'a.txt': 'UN\ntwo\n' })
    expect(await ground.git.line(ground.main)).toMatchObject({ state: 'apart', files: ['a.txt'] })
  })

  test('[GT3] goes by the attributes that the line has, whatever is checked out', async ({ ground }) => {
    const two = await contrary(ground)
    ground.write({ '.gitattributes': '* merge=union\n' })
    expect(await ground.build('t2', two)).toEqual({ result: 'conflict', files: ['a.txt'] })
    rmSync(join(ground.top, '.gitattributes'))
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    ground.commit(ground.top, { '.gitattributes': 'log.txt merge=union\nlock.txt -merge\n', 'log.txt': '1\n', 'lock.txt': '1\n\n\n\n2\n' })
    await ground.land('t3', await ground.work('t3', { 'log.txt': '1\n3\n', 'lock.txt': '1\n\n\n\n3\n' }))
    ground.run('checkout', '-q', '--detach', 'main~1')
    const [log, lock] = [await ground.place('t4', 'refs/heads/main'), await ground.place('t5', 'refs/heads/main')]
    const landed = await ground.land('t4', ground.commit(log, { 'log.txt': '1\n4\n' }))
    expect(ground.run('show', `${landed}:log.txt`).split('\n').sort()).toEqual(['1', '3', '4'])
    expect(await ground.build('t5', ground.commit(lock, { 'lock.txt': '5\n\n\n\n2\n' }))).toEqual({
      result: 'conflict',
      files: ['lock.txt'],
    })
  })

  test('[G16] has the parents that it was made with, not those of a list of roots', async ({ ground }) => {
    const work = await ground.work('t2', { 'x.txt': 'x\n' })
    const landed = await ground.ahead()
    writeFileSync(join(ground.top, '.git/shallow'), `${work}\n${landed}\n`)
    const built = await ground.build('t2', work)
    rmSync(join(ground.top, '.git/shallow'))
    expect(built).toMatchObject({ result: 'built' })
  })
})

describe('a line that we did not move', () => {
  const LINE = 'refs/signalbox/line/main'
  const evil = (ground: LineGround, parent = LINE) => {
    ground.run('branch', '-f', 'evil', parent)
    return ground.run('commit-tree', ground.tip(`${parent}^{tree}`), '-p', parent, '-m', 'evil')
  }

  test('[GT4] is foreign, and neither moved nor followed', async ({ ground }) => {
    const landed = await ground.ahead()
    const [of, main] = [{ ...ground.main, known: [landed] }, ground.tip('main')]
    const older = ground.tip('main')
    for (const at of [evil(ground), evil(ground, 'main'), older]) {
      ground.run('update-ref', LINE, at)
      expect(await ground.git.line(of)).toEqual({ state: 'foreign', head: at })
      expect(await ground.git.follow(of)).toMatchObject({ state: 'behind', by: 1, why: 'foreign' })
      expect([ground.tip('main'), ground.tip(LINE)]).toEqual([main, at])
    }
    expect(await ground.git.line({ ...ground.main, known: [] })).toMatchObject({ state: 'ready', head: main })
    ground.run('update-ref', LINE, evil(ground))
    expect(await ground.git.line({ ...ground.main, known: [] })).toMatchObject({ state: 'foreign' })
    ground.run('update-ref', LINE, landed)
    expect(await ground.git.line(of)).toEqual({ state: 'ready', head: landed, moved: false })
    expect(await ground.git.follow(of)).toEqual({ state: 'even' })
    expect(ground.tip('main')).toBe(landed)
  })

  test('[GT4] that was deleted stands where it stood', async ({ ground }) => {
    const landed = await ground.ahead()
    const of = { ...ground.main, known: [landed] }
    ground.run('update-ref', '-d', LINE)
    expect(await ground.git.follow(of)).toMatchObject({ why: 'foreign' })
    expect(await ground.git.line(of)).toEqual({ state: 'ready', head: landed, moved: false })
    expect(ground.tip(LINE)).toBe(landed)
    ground.run('update-ref', '-d', LINE)
    const theirs = ground.commit(ground.top, { 'mine.txt': 'x' })
    expect(await ground.git.line(of)).toMatchObject({ state: 'ready', moved: true })
    expect(ground.run('rev-list', '--parents', '-1', LINE).split(' ').slice(1)).toEqual([landed, theirs])
    // Of a repository that was cloned again.
    ground.run('update-ref', '-d', LINE)
    expect(await ground.git.line({ ...ground.main, known: ['a'.repeat(40)] })).toEqual({ state: 'ready', head: theirs, moved: true })
  })

  test('[GT4] is ours when only what people committed was taken in, however often, and told by nobody', async ({ ground }) => {
    const landed = await ground.ahead()
    const of = { ...ground.main, known: [landed] }
    for (const n of [1, 2]) {
      ground.commit(ground.top, { [`mine-${n}.txt`]: 'x' })
      expect(await ground.git.line(ground.main)).toMatchObject({ state: 'ready', moved: true })
    }
    const head = ground.tip(LINE)
    expect(ground.run('rev-list', '--count', '--merges', `${landed}..${head}`)).toBe('2')
    expect(await ground.git.line(of)).toEqual({ state: 'ready', head, moved: true })
    // The same parents, and another tree.
    const forged = ground.run('commit-tree', ground.tip(`${landed}^{tree}`), '-p', `${head}^1`, '-p', `${head}^2`, '-m', 'x')
    ground.run('update-ref', LINE, forged)
    expect(await ground.git.line(of)).toEqual({ state: 'foreign', head: forged })
    ground.run('update-ref', LINE, head)
    expect(await ground.git.follow({ ...of, known: [head] })).toEqual({ state: 'even' })
    const next = ground.commit(ground.top, { 'mine-3.txt': 'x' })
    expect(await ground.git.line(of)).toEqual({ state: 'ready', head: next, moved: true })
    // Where the remote has no part in it, what is called so counts for nothing.
    const there = evil(ground)
    ground.run('remote', 'add', 'origin', 'https://example.com/web')
    for (const ref of ['refs/remotes/origin/main', LINE]) ground.run('update-ref', ref, there)
    expect(await ground.git.line(of)).toEqual({ state: 'foreign', head: there })
    expect(await ground.git.line({ ...of, strategy: 'remote' })).toEqual({ state: 'ready', head: there, moved: true })
  })

  test('[GT4] is ours when it stands at what was about to land', async ({ ground }) => {
    const before = await ground.head()
    const landed = await ground.ahead()
    expect(await ground.git.line({ ...ground.main, known: [before] })).toEqual({ state: 'foreign', head: landed })
    expect(await ground.git.line({ ...ground.main, known: [before, landed] })).toEqual({ state: 'ready', head: landed, moved: false })
  })

  test('[GT4] is not where work begins', async ({ ground }) => {
    const landed = await ground.ahead()
    ground.run('update-ref', LINE, evil(ground))
    const begun = (name: string, line: string | null) => {
      const place = { repo: ground.top, path: ground.git.placeFor({ repo_handle: 'web', name }), branch: `signalbox/${name}` }
      return ground.git.add({ ...place, base: 'main', strategy: 'local', line }).then(({ base }) => base)
    }
    expect([await begun('t2', landed), await begun('t3', null)]).toEqual([landed, ground.tip('main')])
    const epic = { repo: ground.top, branch: 'epic', base: 'main', strategy: 'local' as const }
    expect(await ground.git.branch({ ...epic, line: landed })).toEqual({ head: landed })
  })

  test('[GT5] nothing lands that was shown from a commit which is not on the line', async ({ ground }) => {
    const hidden = ground.run('commit-tree', ground.tip('main^{tree}'), '-p', 'main', '-m', 'hidden')
    ground.run('branch', 'hidden', hidden)
    const path = await ground.place('t1', 'hidden')
    const commit = ground.commit(path, { 'b.txt': 'b\n' })
    await expect(ground.build('t1', commit, { from: hidden })).rejects.toMatchObject({
      reason: 'failed',
      message: expect.stringMatching(/not on main.*review_rebase/),
    })
    const from = ground.tip('main')
    expect(await ground.build('t1', commit, { from })).toMatchObject({ result: 'built' })
    const work = await ground.work('t2', { 'c.txt': 'c\n' })
    await ground.ahead()
    expect(await ground.build('t2', work, { from })).toMatchObject({ result: 'built' })
    ground.in(ground.git.placeFor({ repo_handle: 'web', name: 't2' }), 'merge', '-q', '--no-edit', LINE)
    expect(await ground.build('t2', ground.tip('signalbox/t2'), { from })).toMatchObject({ result: 'built' })
    await expect(ground.build('t2', work, { from: 'main' })).rejects.toMatchObject({ reason: 'invalid' })
  })
})

test('[GT1] a record alone sends us to no folder of the person’s', async ({ ground }) => {
  const landed = await ground.ahead()
  ground.run('checkout', '-q', '--detach')
  const [admin, theirs] = [join(ground.top, '.git/worktrees/forged'), join(ground.folder, 'theirs')]
  mkdirSync(admin, { recursive: true })
  ground.in(ground.folder, 'init', '-q', theirs)
  ground.run('read-tree', `--index-output=${join(admin, 'index')}`, 'main')
  const index = { cwd: ground.top, env: { ...ground.env, GIT_INDEX_FILE: join(admin, 'index') } }
  execFileSync('git', ['update-index', '--skip-worktree', '.gitignore', 'a.txt', 'd.txt', 'e.txt'], index)
  for (const [name, text] of Object.entries({ gitdir: join(theirs, '.git'), commondir: '../..', HEAD: 'ref: refs/heads/main' }))
    writeFileSync(join(admin, name), `${text}\n`)
  expect(await ground.git.follow({ ...ground.main, known: [landed] })).toMatchObject({ state: 'behind', why: 'busy', at: theirs })
  expect(readdirSync(theirs)).toEqual(['.git'])
})

describe('what was handed in', () => {
  const LINE = 'refs/signalbox/line/main'
  const collect = (ground: LineGround) => {
    ground.run('reflog', 'expire', '--expire=now', '--expire-unreachable=now', '--all')
    ground.run('gc', '-q', '--prune=now')
  }
  const file = (ground: LineGround, id: string) => join(ground.top, '.git/objects', id.slice(0, 2), id.slice(2))

  test('[GT6] is kept wherever its branch goes, until it has landed', async ({ ground }) => {
    const commit = await ground.work('t1', { 'b.txt': 'b\n' })
    await ground.git.keep(ground.top, 't1', ground.tip('main'))
    await ground.git.keep(ground.top, 't1', commit)
    const path = ground.git.placeFor({ repo_handle: 'web', name: 't1' })
    ground.in(path, 'reset', '-q', '--hard', 'main')
    collect(ground)
    const landed = await ground.land('t1', commit)
    expect(ground.run('show', `${landed}:b.txt`)).toBe('b')
    expect(ground.run('for-each-ref', 'refs/signalbox/handed-in')).toBe('')
    await ground.git.keep(ground.top, 't2', commit)
    for (const _ of [1, 2]) await ground.git.keep(ground.top, 't2', null)
    expect(ground.run('for-each-ref', 'refs/signalbox/handed-in')).toBe('')
    await expect(ground.git.keep(ground.top, '../x', commit)).rejects.toMatchObject({ reason: 'invalid' })
    await expect(ground.git.keep(ground.top, 't2', 'main')).rejects.toMatchObject({ reason: 'invalid' })
    await expect(ground.git.keep(ground.top, 't2', 'a'.repeat(40))).rejects.toMatchObject({ reason: 'missing' })
  })

  /** As if it had never been there, wherever it is. */
  const lose = (ground: LineGround, id: string) => {
    rmSync(file(ground, id))
    rmSync(join(ground.top, '.git/objects/pack'), { recursive: true, force: true })
  }

  test('[GT7] can be read when it has landed, or the line is where it was', async ({ ground }) => {
    const commit = await ground.work('t1', { 'deep/er/b.txt': 'only here\n' })
    const onto = await ground.head()
    const objects = () => [commit, `${commit}^{tree}`, `${commit}:deep/er`, `${commit}:deep/er/b.txt`].map((name) => ground.tip(name))
    for (const id of objects()) {
      const built = await ground.build('t1', commit)
      if (built.result !== 'built') throw new Error(built.result)
      const content = readFileSync(file(ground, id))
      lose(ground, id)
      const landing = ground.git.land(ground.main, onto, built.commit, 't1')
      if (id === commit) expect(await landing).toBe(true)
      else await expect(landing).rejects.toMatchObject({ reason: 'damaged', message: expect.stringContaining(id) })
      ground.run('update-ref', LINE, onto)
      expect(ground.tip(LINE)).toBe(onto)
      writeFileSync(file(ground, id), content)
    }
    await ground.land('t1', commit)
    ground.isSound()
  })

  test('[GT7] is there when everything was collected that nothing named when it was built', async ({ ground }) => {
    const commit = await ground.work('t1', { 'a.txt': 'ONE\ntwo\nthree\nfour\nfive\n' })
    await ground.land('t2', await ground.work('t2', { 'a.txt': 'one\ntwo\nthree\nfour\nFIVE\n' }))
    const onto = await ground.head()
    const built = await ground.build('t1', commit)
    if (built.result !== 'built') throw new Error(built.result)
    // As a prune does it that began before.
    for (const name of [built.commit, `${built.commit}^{tree}`, `${built.commit}:a.txt`]) rmSync(file(ground, ground.tip(name)))
    ground.run('repack', '-adq')
    expect(await ground.git.land(ground.main, onto, built.commit, 't1')).toBe(true)
    expect(ground.run('show', `${LINE}:a.txt`)).toBe('ONE\ntwo\nthree\nfour\nFIVE')
    ground.isSound()
  })

  test('[GT7] is what its ids say: another content in the place of an object is not landed', async ({ ground }) => {
    const commit = await ground.work('t1', { 'b.txt': 'good\n' })
    const other = await ground.work('t2', { 'b.txt': 'evil\n' })
    const [blob, evil] = [ground.tip(`${commit}:b.txt`), ground.tip(`${other}:b.txt`)]
    const good = readFileSync(file(ground, blob))
    const forge = (content: Buffer) => {
      rmSync(file(ground, blob))
      writeFileSync(file(ground, blob), content)
    }
    const onto = await ground.head()
    forge(readFileSync(file(ground, evil)))
    expect(ground.run('show', `${commit}:b.txt`)).toBe('evil')
    await expect(ground.build('t1', commit)).rejects.toMatchObject({ reason: 'damaged', message: expect.stringContaining(blob) })
    forge(good)
    const built = await ground.build('t1', commit)
    if (built.result !== 'built') throw new Error(built.result)
    // Too late: it is read from the pack.
    forge(readFileSync(file(ground, evil)))
    const packs = join(ground.top, '.git/objects/pack')
    renameSync(packs, `${packs}-away`)
    await expect(ground.another().land(ground.main, onto, built.commit, 't1')).rejects.toMatchObject({ reason: 'damaged' })
    expect(ground.tip(LINE)).toBe(onto)
    rmSync(packs, { recursive: true })
    renameSync(`${packs}-away`, packs)
    expect(await ground.git.land(ground.main, onto, built.commit, 't1')).toBe(true)
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect(readFileSync(join(ground.top, 'b.txt'), 'utf8')).toBe('good\n')
  })

  test('[GT11] is shown as what its ids say: another content in the place of an object is refused', async ({ ground }) => {
    ground.commit(ground.top, { 'in/here/b.txt': 'one\n', 'in/other.txt': 'x\n' })
    const from = ground.tip('main')
    const place = { repo: ground.top, path: await ground.place('t1'), branch: 'signalbox/t1' }
    const evil = await ground.work('t2', { 'in/here/b.txt': 'evil\n' })
    const commit = ground.commit(place.path, { 'in/here/b.txt': 'two\n' })
    // Its tree, without the change; its file, and what was there before, with another content.
    const lies = [
      [`${commit}^{tree}`, `${from}^{tree}`],
      [`${commit}:in/here`, `${from}:in/here`],
      [`${commit}:in/here/b.txt`, `${evil}:in/here/b.txt`],
      [`${from}:in/here/b.txt`, `${evil}:in/here/b.txt`],
      [`${from}^{tree}`, `${evil}^{tree}`],
    ].map((names) => names.map((name) => file(ground, ground.tip(name)))) as [string, string][]
    const diff = (path?: string) => ground.git.diff(place, { from, at: commit, bytes: 10_000, ...(path ? { path } : {}) })
    const read = () => ground.git.file(place, './in/here/b.txt', 100, commit)
    const honest = async () => {
      for (const path of [undefined, 'in', 'in/here/b.txt'])
        expect(await diff(path)).toMatchObject({
          commit,
          files: [{ path: 'in/here/b.txt' }],
          text: expect.stringContaining('-one\n+two\n'),
        })
      expect((await read())?.bytes.toString()).toBe('two\n')
    }
    await honest()
    for (const [told, other] of lies) {
      const before = readFileSync(told)
      rmSync(told)
      writeFileSync(told, readFileSync(other))
      await expect(diff(), told).rejects.toMatchObject({ reason: 'damaged' })
      rmSync(told)
      writeFileSync(told, before)
    }
    const [told, other] = lies[2] as [string, string]
    rmSync(told)
    writeFileSync(told, readFileSync(other))
    await expect(read()).rejects.toMatchObject({ reason: 'damaged' })
    rmSync(told)
    ground.run('hash-object', '-w', join(place.path, 'in/here/b.txt'))
    await honest()
  })

  test('[GT12] is merged with what the line is by its ids: another content in the place of its objects is not landed', async ({
    ground,
  }) => {
    const lines = (first: string, last: string) => `${first}\ntwo\nthree\nfour\n${last}\n`
    ground.commit(ground.top, { 'in/a.txt': lines('one', 'five'), 'b.txt': 'b\n' })
    const from = ground.tip('main')
    const work = await ground.work('t1', { 'in/a.txt': lines('ONE', 'five'), '.signalbox/x': 'x\n' })
    const evil = await ground.work('t2', { 'in/a.txt': lines('one', 'FIVE\nevil'), 'evil.txt': 'evil\n' })
    await ground.land('t3', await ground.work('t3', { 'in/a.txt': lines('one', 'FIVE') }))
    const onto = await ground.head()
    for (const [name, other] of [
      [`${onto}:in/a.txt`, `${evil}:in/a.txt`],
      [`${onto}:in`, `${evil}:in`],
      [`${onto}^{tree}`, `${evil}^{tree}`],
      // It would take back what has landed.
      [`${from}:in/a.txt`, `${onto}:in/a.txt`],
      [work, ground.run('commit-tree', `${evil}^{tree}`, '-p', onto, '-m', 'x')],
    ] as [string, string][]) {
      const [told, content] = [file(ground, ground.tip(name)), readFileSync(file(ground, ground.tip(other)))]
      const packs = join(ground.top, '.git/objects/pack')
      const honest = readFileSync(told)
      renameSync(packs, `${packs}-away`)
      rmSync(told)
      writeFileSync(told, content)
      expect([name, await ground.build('t1', work).catch((error: Error) => error)]).toMatchObject([name, { name: 'GitRefusal' }])
      rmSync(packs, { recursive: true, force: true })
      renameSync(`${packs}-away`, packs)
      rmSync(told)
      writeFileSync(told, honest)
    }
    await ground.land('t1', work)
    expect(ground.run('show', `${LINE}:in/a.txt`)).toBe(lines('ONE', 'FIVE').trim())
    expect(ground.run('ls-tree', '--name-only', LINE)).not.toMatch(/evil|signalbox/)
    ground.isSound()
  })

  test('[GT7] leaves no packs behind once nobody can be collecting any more', async ({ ground }) => {
    const packs = () =>
      readdirSync(join(ground.top, '.git/objects/pack'))
        .map((name) => name.split('.')[1])
        .sort()
    const age = () => {
      for (const name of readdirSync(join(ground.top, '.git/objects/pack'))) utimesSync(join(ground.top, '.git/objects/pack', name), 1, 1)
    }
    await ground.land('t1', await ground.work('t1', { 'b.txt': 'b\n' }))
    await ground.land('t2', await ground.work('t2', { 'c.txt': 'c\n' }))
    expect(packs()).toEqual(['idx', 'idx', 'keep', 'keep', 'pack', 'pack'])
    age()
    await ground.land('t3', await ground.work('t3', { 'd2.txt': 'd\n' }))
    expect(packs()).toEqual(['idx', 'keep', 'pack'])
    // Where git has thrown away the others, it is the only one that has them.
    ground.run('prune-packed')
    age()
    await ground.build('t4', await ground.work('t4', { 'e2.txt': 'e\n' }))
    expect(packs()).toEqual(['idx', 'idx', 'keep', 'pack', 'pack'])
    ground.isSound()
  })

  test('[GT7] or has landed before that was told, it is looked at again', async ({ ground }) => {
    const commit = await ground.work('t1', { 'b.txt': 'b\n' })
    await ground.land('t1', commit)
    lose(ground, ground.tip(`${commit}:b.txt`))
    await expect(ground.build('t1', commit)).rejects.toMatchObject({ reason: 'damaged' })
  })

  test('[GT7] under a loop of repack and prune', async ({ ground }) => {
    const works: string[] = []
    for (let n = 0; n < 40; n++) {
      works.push(await ground.work(`t${n}`, { [`d${n}/f.txt`]: `${n}\n` }))
      await ground.git.keep(ground.top, `t${n}`, works[n] as string)
    }
    const loop = spawn('sh', ['-c', 'while :; do git repack -adq; git prune --expire=now; done'], {
      cwd: ground.top,
      env: ground.env,
      stdio: 'ignore',
      detached: true,
    })
    const landed: string[] = []
    try {
      for (const [n, commit] of works.entries())
        for (let tries = 0; tries < 50; tries++) {
          const to = await ground.land(`t${n}`, commit).catch(() => undefined)
          if (to) landed.push(to)
          if (to) break
        }
    } finally {
      process.kill(-(loop.pid as number), 'SIGKILL')
      await once(loop, 'exit')
    }
    expect(landed).toHaveLength(works.length)
    expect(ground.run('ls-tree', '-d', '--name-only', LINE).split('\n')).toHaveLength(works.length)
    ground.isSound()
  })
})

describe('a repository is the same one', () => {
  /** From a place to what landed. */
  const throughAll = async (ground: LineGround, repo: string) => {
    const git = ground.another()
    const place = { repo, path: git.placeFor({ repo_handle: 'web', name: 'through' }), branch: 'signalbox/through' }
    const { base } = await git.add({ ...place, base: 'main', strategy: 'local' })
    const commit = ground.commit(place.path, { 'through.txt': 'x\n' })
    expect(await git.state(place, base)).toMatchObject({ state: 'present', ahead: 1, dirty: 0, head: commit })
    expect((await git.diff(place, { from: base, bytes: 1_000 })).files).toMatchObject([{ path: 'through.txt', status: 'A' }])
    const line = { repo, target: 'main', strategy: 'local' as const }
    const { head } = await git.line(line)
    const built = await git.build({ ...ground.building('through', commit, head), line })
    if (built.result !== 'built') throw new Error(JSON.stringify(built))
    expect(await git.land(line, head, built.commit, 'through')).toBe(true)
    expect(await git.follow(line)).toEqual({ state: 'even' })
    expect(ground.in(repo, 'rev-parse', 'main')).toBe(built.commit)
    expect(ground.in(repo, 'status', '--porcelain', '--untracked-files=no')).toBe('')
    await git.remove(place, 'through')
    expect(ground.in(repo, 'fsck', '--no-dangling', '--no-progress')).toBe('')
  }

  test('[GT2] as a linked worktree, beside a git directory elsewhere, and through a link', async ({ ground }) => {
    const [apart, linked] = [join(ground.folder, 'apart'), join(ground.folder, 'linked')]
    ground.in(ground.folder, 'clone', '-q', '--separate-git-dir', join(ground.folder, 'apart.git'), ground.top, apart)
    expect(await ground.git.inspect(apart)).toMatchObject({ top: apart, branch: 'main', remote: ground.top })
    await throughAll(ground, apart)
    ground.run('checkout', '-q', '-b', 'elsewhere')
    ground.run('worktree', 'add', '-q', linked, 'main')
    expect(await ground.git.inspect(linked)).toMatchObject({ top: linked, branch: 'main' })
    await throughAll(ground, linked)
    const moved = join(ground.folder, 'moved.git')
    renameSync(join(apart, '.git'), `${moved}-link`)
    symlinkSync(join(ground.folder, 'apart.git'), join(apart, '.git'))
    expect(await ground.git.inspect(apart)).toMatchObject({ top: apart, branch: 'main' })
    mkdirSync(join(apart, 'sub'))
    expect(await ground.git.inspect(join(apart, 'sub'))).toMatchObject({ top: apart })
    expect(await ground.git.inspect(join(ground.top, '.git/refs'))).toBeUndefined()
  })

  test('[GT2] as a submodule, and when its files are elsewhere it is none', async ({ ground }) => {
    const outer = join(ground.folder, 'outer')
    mkdirSync(outer)
    ground.in(outer, 'init', '-q')
    ground.in(outer, 'submodule', '--quiet', 'add', ground.top, 'sub')
    await throughAll(ground, join(outer, 'sub'))
    ground.run('config', 'core.worktree', ground.folder)
    expect(await ground.git.inspect(ground.top)).toBeUndefined()
  })

  test('[GT2] with SHA-256', async ({ ground }) => {
    const repo = join(ground.folder, 'sha256')
    ground.in(ground.folder, 'init', '-q', '--object-format=sha256', repo)
    ground.commit(repo, { 'a.txt': 'a\n' })
    await throughAll(ground, repo)
  })

  test('[GT2] as a shallow clone', async ({ ground }) => {
    ground.commit(ground.top, { 'b.txt': 'b\n' })
    const repo = join(ground.folder, 'shallow')
    ground.in(ground.folder, 'clone', '-q', '--depth=1', `file://${ground.top}`, repo)
    await throughAll(ground, repo)
  })

  test('[GT2] with a sparse checkout, which stays as sparse as it is', async ({ ground }) => {
    ground.commit(ground.top, { 'in/a.txt': 'a\n', 'out-of-it/b.txt': 'b\n' })
    ground.run('sparse-checkout', 'set', 'in')
    const path = await ground.place('t1')
    ground.in(path, 'sparse-checkout', 'disable')
    const commit = ground.commit(path, { 'out-of-it/b.txt': 'B\n', 'out-of-it/c.txt': 'c\n', 'in/a.txt': 'A\n' })
    await ground.land('t1', commit)
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect([existsSync(join(ground.top, 'out-of-it')), readFileSync(join(ground.top, 'in/a.txt'), 'utf8')]).toEqual([false, 'A\n'])
    expect(ground.run('status', '--porcelain')).toBe('')
  })
})
