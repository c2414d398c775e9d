import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { Git, LineOf } from '../../ports/git.ts'
import { type Files, type LineGround, test } from '../../testing/line-ground.ts'

const LINE = 'refs/signalbox/line/main'
const LONG = Array.from({ length: 12 }, (_, n) => `${n}${'x'.repeat(200)}`).join('/')

function old(path: string): void {
  utimesSync(path, 1_700_000_000, 1_700_000_000)
}

describe('a line', () => {
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

  test('[GL1] has room where the line of a branch that is gone has its name, which is saved', async ({ ground }) => {
    const of = (target: string): LineOf => ({ ...ground.main, target })
    ground.run('branch', 'rel')
    ground.run('branch', 'reliable')
    await ground.head(of('reliable'))
    const first = await ground.land('t1', await ground.work('t1', { 'b.txt': 'b\n' }), of('rel'))
    ground.run('branch', '-D', '-q', 'rel')
    ground.run('branch', 'rel/1')
    expect(await ground.git.line(of('rel/1'))).toEqual({ state: 'ready', head: ground.tip('main'), moved: false })
    const second = await ground.land('t2', await ground.work('t2', { 'c.txt': 'c\n' }), of('rel/1'))
    ground.run('branch', '-D', '-q', 'rel/1')
    ground.run('branch', 'rel')
    expect(await ground.git.line(of('rel'))).toMatchObject({ state: 'ready', head: ground.tip('main') })
    const saved = await ground.git.rescues(ground.top, 'lines')
    expect(saved.map(({ ref, branch }) => [branch, ground.tip(`${ref}^`)])).toEqual([
      ['rel/1', second],
      ['rel', first],
    ])
    ground.run('remote', 'add', 'origin', 'https://example.com/web')
    ground.run('update-ref', 'refs/remotes/origin/rel/2', 'main')
    await expect(ground.git.line(of('rel/2'))).rejects.toMatchObject({
      reason: 'failed',
      message: expect.stringMatching(/beside rel: .*Rename/),
    })
    expect(ground.run('for-each-ref', '--format=%(refname)', 'refs/signalbox/line').split('\n')).toEqual([
      'refs/signalbox/line/rel',
      'refs/signalbox/line/reliable',
    ])
    ground.isSound()
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
    // Nobody can have fetched it.
    expect(await ground.git.line(of)).toMatchObject({ state: 'ready', head: here })
    ground.run('remote', 'add', 'origin', 'https://example.com/web')
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
      ground.git
        .add({ ...place, path: ground.git.placeFor({ repo_handle: 'web', name }), branch: `signalbox/${name}` })
        .then(({ base }) => base)
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

  test('[GL3] takes no tree for a commit', async ({ ground }) => {
    const onto = await ground.head()
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

  test('[G16] is what the id says, not what replaces it', async ({ ground }) => {
    const good = await ground.work('t1', { 'x.txt': 'good\n' })
    const evil = ground.run(
      'commit-tree',
      ground.tip(`${await ground.work('t2', { 'x.txt': 'evil\n' })}^{tree}`),
      '-p',
      `${good}^`,
      '-m',
      'x',
    )
    const place = { repo: ground.top, path: ground.git.placeFor({ repo_handle: 'web', name: 't1' }), branch: 'signalbox/t1' }
    const shown = async () => (await ground.git.diff(place, { from: ground.tip('main'), bytes: 10_000 })).text
    const before = await shown()
    const [blob, other] = [ground.tip(`${good}:x.txt`), ground.tip(`${evil}:x.txt`)]
    ground.run('replace', good, evil)
    ground.run('replace', blob, other)
    const landed = await ground.land('t1', good)
    const { path } = await ground.git.scratch(ground.top, 'line', landed)
    expect([readFileSync(join(path, 'x.txt'), 'utf8'), await shown()]).toEqual(['good\n', before])
    expect(ground.run('--no-replace-objects', 'show', `${LINE}:x.txt`)).toBe('good')
  })

  test('[G16] has the parents that it was made with, not those of a graft', async ({ ground }) => {
    const work = await ground.work('t2', { 'x.txt': 'x\n' })
    const landed = await ground.ahead()
    mkdirSync(join(ground.top, '.git/info'), { recursive: true })
    // As if it were made on top of what landed, and took that back.
    writeFileSync(join(ground.top, '.git/info/grafts'), `${work} ${landed}\n`)
    const next = await ground.land('t2', work)
    rmSync(join(ground.top, '.git/info/grafts'))
    ground.hasLanded(next)
    expect(ground.run('show', `${next}:x.txt`)).toBe('x')
  })

  test('[G16] has the base that it was made with, not the one that a forged commit graph tells', async ({ ground }) => {
    const work = await ground.work('t2', { 'x.txt': 'x\n' })
    await ground.ahead()
    ground.run('commit-graph', 'write', '--reachable')
    const file = join(ground.top, '.git/objects/info/commit-graph')
    const graph = readFileSync(file)
    const at = graph.indexOf(Buffer.from(ground.tip('main^{tree}'), 'hex'))
    expect(at).toBeGreaterThan(0)
    // As if the base had all of the work already: there would be nothing to land.
    Buffer.from(ground.tip(`${work}^{tree}`), 'hex').copy(graph, at)
    rmSync(file)
    writeFileSync(file, graph)
    const built = await ground.build('t2', work)
    rmSync(file)
    expect(built).toMatchObject({ result: 'built' })
    expect(ground.run('show', `${built.result === 'built' && built.commit}:x.txt`)).toBe('x')
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

  test('[GL4] hides no conflict by a move into .signalbox/, and takes nothing of the line along', async ({ ground }) => {
    const [one, two] = ['1111\n'.repeat(20), '2222\n'.repeat(20)]
    ground.commit(ground.top, { 'src/one.js': one, 'src/two.js': two })
    const moves: Files = { 'src/one.js': null, 'src/two.js': null, '.signalbox/one.js': one, '.signalbox/two.js': two }
    const [moved, both, both2] = [
      await ground.work('t1', moves),
      await ground.work('t2', { ...moves, 'b.txt': 'b' }),
      await ground.work('t3', { 'src/one.js': null, '.signalbox/one.js': one }),
    ]
    ground.commit(ground.top, { 'src/new.js': 'of somebody else\n' })
    await ground.land('t1', moved)
    expect(ground.run('ls-tree', '-r', '--name-only', LINE).split('\n')).toEqual(['.gitignore', 'a.txt', 'd.txt', 'e.txt', 'src/new.js'])
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    ground.commit(ground.top, { 'src/one.js': `${one}important\n` })
    for (const [name, commit] of [
      ['t2', both],
      ['t3', both2],
    ] as const)
      expect(await ground.build(name, commit)).toEqual({ result: 'conflict', files: ['src/one.js'] })
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
    const last = await ground.work('t9', { 'f9.txt': 'x\n' })
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
    expect(await ground.build('t9', last)).toMatchObject({ result: 'built' })
    expect(existsSync(join(ground.top, 'sprung'))).toBe(false)
    ground.isSound()
  })
})

/** With the trailers and the committer of ours, as whoever can commit can make it. */
function forge(ground: LineGround, cwd: string, files: Files, name: string): string {
  ground.write(files, cwd)
  ground.in(cwd, 'add', '-A')
  const as = ['-c', 'user.name=Signalbox', '-c', 'user.email=signalbox@localhost']
  ground.in(cwd, ...as, 'commit', '-q', '--allow-empty', '-m', `x: done\n\nSignalbox-Merge: ${name}`)
  return ground.in(cwd, 'rev-parse', 'HEAD')
}

describe('of works that keep their commits', () => {
  const landed = async (ground: LineGround, name: string, commit: string) => {
    const onto = await ground.head()
    const built = await ground.git.build(ground.building(name, commit, onto, { method: 'merge' }))
    if (built.result !== 'built') throw new Error(built.result)
    expect(await ground.git.land(ground.main, onto, built.commit, name)).toBe(true)
    return built.commit
  }

  for (const method of ['merge', 'squash'] as const)
    test(`[GL6] none is taken for another that one of its commits says to be (${method})`, async ({ ground }) => {
      const victim = await ground.work('t1', { 'victim.txt': 'v\n' })
      const path = await ground.place('t2')
      const forged: Files[] = [{ 'att.txt': 'x\n' }, {}, { 'victim.txt': 'v\n' }]
      for (const files of forged) forge(ground, path, files, 't1')
      ground.commit(path, { 'victim.txt': null })
      await landed(ground, 't2', ground.in(path, 'rev-parse', 'HEAD'))
      const built = await ground.build('t1', victim, { method })
      expect(built).toMatchObject({ result: 'built' })
      expect(ground.run('show', `${built.result === 'built' && built.commit}:victim.txt`)).toBe('v')
    })

  test('[GL6] one is found again by what it is made of, beside a forged one and under a merge by hand', async ({ ground }) => {
    const work = await ground.work('t1', { 'a.txt': 'ONE\ntwo\nthree\nfour\nfive\n', '.signalbox/x': 'x' })
    const first = await landed(ground, 't1', work)
    const theirs = ground.commit(ground.top, { 'a.txt': 'EINS\ntwo\nthree\nfour\nfive\n' })
    expect(await ground.git.line(ground.main)).toMatchObject({ state: 'apart', target: theirs })
    ground.run('merge', '-q', '-X', 'theirs', '-m', 'merged by hand', LINE)
    await landed(ground, 't2', forge(ground, await ground.place('t2'), { 'att.txt': 'x\n' }, 't1'))
    for (const method of ['merge', 'squash'] as const)
      expect(await ground.build('t1', work, { method })).toEqual({ result: 'landed', commit: first })
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

describe('the branch follows', () => {
  test('[GL8] by compare-and-swap when it is checked out nowhere', async ({ ground }) => {
    ground.run('checkout', '-q', '-b', 'elsewhere')
    const landed = await ground.ahead()
    ground.write({ 'a.txt': 'at work\n', 'new/n.txt': 'mine' })
    const before = ground.seen()
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect([ground.tip('main'), ground.seen()]).toEqual([landed, before])
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    rmSync(join(ground.top, 'new'), { recursive: true })
    ground.run('stash', '-q')
    ground.run('checkout', '-q', 'main')
    await ground.revertsNothing()
  })

  test('[GL8] and leaves a detached HEAD where it is', async ({ ground }) => {
    ground.run('checkout', '-q', '--detach')
    const [landed, before] = [await ground.ahead(), ground.seen()]
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect([ground.tip('main'), ground.seen()]).toEqual([landed, before])
    ground.run('checkout', '-q', 'main')
    await ground.revertsNothing()
  })

  test('[GL8] in a bare repository', async ({ ground }) => {
    const bare = join(ground.folder, 'bare.git')
    ground.run('clone', '-q', '--bare', ground.top, bare)
    const of = { ...ground.main, repo: bare }
    const onto = await ground.head(of)
    const next = ground.in(bare, 'commit-tree', 'main^{tree}', '-p', 'main', '-m', 'x')
    expect(await ground.git.land(of, onto, next, 't1')).toBe(true)
    expect(await ground.git.follow(of)).toEqual({ state: 'even' })
    expect(ground.in(bare, 'rev-parse', 'main')).toBe(next)
  })

  test('[GL8] not when somebody committed on it: it is told, and nothing is lost', async ({ ground }) => {
    await ground.ahead()
    const theirs = ground.commit(ground.top, { 'b.txt': 'x' })
    ground.run('checkout', '-q', '-b', 'elsewhere')
    expect(await ground.git.follow(ground.main)).toMatchObject({ state: 'behind', by: 1, why: 'moved', at: null })
    expect(ground.tip('main')).toBe(theirs)
  })

  test('[GL9] in the clean checkout of the person, which has untracked files beside it', async ({ ground }) => {
    const landed = await ground.ahead()
    ground.write({ 'mine.txt': 'untracked', 'out/cache': 'ignored' })
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect([ground.tip('HEAD'), ground.run('symbolic-ref', 'HEAD')]).toEqual([landed, 'refs/heads/main'])
    expect(ground.run('status', '--porcelain')).toBe('?? mine.txt')
    expect([readFileSync(join(ground.top, 'out/cache'), 'utf8'), existsSync(join(ground.top, 'd.txt'))]).toEqual(['ignored', false])
    await ground.revertsNothing()
  })

  test('[GL9] where it is checked out elsewhere', async ({ ground }) => {
    const beside = join(ground.folder, 'be side\nhere')
    ground.run('checkout', '-q', '-b', 'elsewhere')
    ground.run('worktree', 'add', '-q', beside, 'main')
    ground.write({ 'a.txt': 'at work in the other' })
    const [landed, before] = [await ground.ahead(), ground.seen()]
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect([ground.in(beside, 'rev-parse', 'HEAD'), ground.in(beside, 'status', '--porcelain'), ground.seen()]).toEqual([
      landed,
      '',
      before,
    ])
    await ground.revertsNothing(beside)
  })

  test('[GL9] with line ends that are converted: a clean checkout is clean, and only what landed is written', async ({ ground }) => {
    ground.commit(ground.top, {
      '.gitattributes': '*.lf eol=lf\n*.crlf text eol=crlf\n',
      'x.lf': '1\n2\n',
      'x.crlf': '1\n2\n',
      'x.txt': '1\n2\n',
    })
    ground.run('config', 'core.autocrlf', 'true')
    for (const name of ['x.lf', 'x.crlf', 'x.txt', 'a.txt']) rmSync(join(ground.top, name))
    ground.run('checkout', '-q', '--', '.')
    const work = { 'a.txt': 'ONE\r\ntwo\r\nthree\r\nfour\r\nfive\r\n', 'new/n.txt': 'new\r\n', 'd.txt': null, 'x.crlf': '1\r\n2\r\n3\r\n' }
    await ground.land('t1', await ground.work('t1', work))
    // As an editor that writes the same again: git has to read them to see that they are clean.
    for (const name of ['x.lf', 'x.txt', 'a.txt', 'x.crlf']) old(join(ground.top, name))
    const untouched = ['x.lf', 'x.txt', 'e.txt'].map((name) => join(ground.top, name))
    const before = untouched.map((path) => [readFileSync(path, 'utf8'), statSync(path).mtimeMs])
    expect(before[1]?.[0]).toBe('1\r\n2\r\n')
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect(untouched.map((path) => [readFileSync(path, 'utf8'), statSync(path).mtimeMs])).toEqual(before)
    expect(readFileSync(join(ground.top, 'a.txt'), 'utf8')).toBe('ONE\r\ntwo\r\nthree\r\nfour\r\nfive\r\n')
    expect(readFileSync(join(ground.top, 'x.crlf'), 'utf8')).toBe('1\r\n2\r\n3\r\n')
    expect(ground.run('show', `${LINE}:x.crlf`)).toBe('1\n2\n3')
    expect(ground.run('status', '--porcelain')).toBe('')
    await ground.revertsNothing()
  })

  test('[GL9] without hooks, and whatever the person likes merges to be', async ({ ground }) => {
    const hooks = join(ground.top, '.git/hooks')
    mkdirSync(hooks, { recursive: true })
    const names = [
      'reference-transaction',
      'post-merge',
      'pre-merge-commit',
      'post-checkout',
      'post-index-change',
      'pre-commit',
      'post-commit',
    ]
    const sprung = join(ground.folder, 'sprung')
    for (const name of names) writeFileSync(join(hooks, name), `#!/bin/sh\necho ${name} >> '${sprung}'\nexit 1\n`, { mode: 0o755 })
    const asleep = ['-c', 'core.hooksPath=/dev/null']
    const settings = {
      'merge.ff': 'false',
      'merge.autoStash': 'true',
      'merge.verifySignatures': 'true',
      'branch.main.mergeOptions': '--squash --no-commit',
      'commit.gpgSign': 'true',
      'gpg.program': join(hooks, 'post-merge'),
      'core.fsmonitor': join(hooks, 'post-merge'),
    }
    const path = await ground.place('t1')
    ground.write({ 'a.txt': 'ONE\n', 'new/n.txt': 'new\n', 'd.txt': null }, path)
    ground.in(path, ...asleep, 'add', '-A')
    ground.in(path, ...asleep, 'commit', '-q', '-m', 'work')
    for (const [key, value] of Object.entries(settings)) ground.run('config', key, value)
    rmSync(sprung, { force: true })
    const landed = await ground.land('t1', ground.tip('signalbox/t1'))
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    const { path: scratch } = await ground.git.scratch(ground.top, 'line', landed)
    await ground.git.scratch(ground.top, 'line', ground.tip('main~1'))
    await ground.git.dropScratch(ground.top, 'line')
    expect([existsSync(sprung), existsSync(scratch)]).toEqual([false, false])
    rmSync(hooks, { recursive: true })
    for (const key of Object.keys(settings)) ground.run('config', '--unset', key)
    expect([ground.tip('main'), ground.run('status', '--porcelain')]).toEqual([landed, ''])
    await ground.revertsNothing()
  })
})

describe('the branch stays behind, and the checkout as it is', () => {
  type Case = [name: string, why: string, says: RegExp, arrange: (ground: LineGround) => void, end?: (ground: LineGround) => void]
  const rebase = (ground: LineGround, ...more: string[]) => {
    try {
      ground.run(...more)
    } catch {
      // It stops at the conflict, as it should.
    }
  }
  /** A branch that does not go together with main. */
  const contrary = (ground: LineGround) => {
    ground.run('checkout', '-q', '-b', 'contrary')
    ground.commit(ground.top, { 'e.txt': 'contrary\n' })
    ground.run('checkout', '-q', 'main')
    return ground.commit(ground.top, { 'e.txt': 'E\n' })
  }
  const cases: Case[] = [
    ['a change that is not staged', 'dirty', /e\.txt/, (ground) => ground.write({ 'e.txt': 'at work\n' })],
    ['a change to what landed', 'dirty', /a\.txt/, (ground) => ground.write({ 'a.txt': 'one\ntwo\nthree\nfour\nat work\n' })],
    [
      'a staged file',
      'dirty',
      /s\.txt/,
      (ground) => {
        ground.write({ 's.txt': 'staged' })
        ground.run('add', 's.txt')
      },
    ],
    ['a deleted file', 'dirty', /e\.txt/, (ground) => ground.write({ 'e.txt': null })],
    ['a changed mode', 'dirty', /e\.txt/, (ground) => chmodSync(join(ground.top, 'e.txt'), 0o755)],
    [
      'a new link in place of a file',
      'dirty',
      /e\.txt/,
      (ground) => {
        rmSync(join(ground.top, 'e.txt'))
        symlinkSync('x', join(ground.top, 'e.txt'))
      },
    ],
    [
      'a change that git was told not to look for',
      'dirty',
      /a\.txt/,
      (ground) => {
        ground.run('update-index', '--assume-unchanged', 'a.txt')
        ground.write({ 'a.txt': 'one\ntwo\nthree\nfour\nhidden\n' })
      },
      (ground) => ground.run('update-index', '--no-assume-unchanged', 'a.txt'),
    ],
    [
      'the index.lock of a git that died',
      'busy',
      /index\.lock/,
      (ground) => {
        writeFileSync(join(ground.top, '.git/index.lock'), '')
        old(join(ground.top, '.git/index.lock'))
      },
      (ground) => rmSync(join(ground.top, '.git/index.lock')),
    ],
    ['a merge', 'busy', /a merge/, (ground) => rebase(ground, 'merge', 'contrary'), (ground) => ground.run('merge', '--abort')],
    ['a merge without a conflict', 'busy', /a merge/, (ground) => ground.run('merge', '--no-commit', '-s', 'ours', 'contrary')],
    [
      'a cherry-pick',
      'busy',
      /a cherry-pick/,
      (ground) => rebase(ground, 'cherry-pick', 'contrary'),
      (ground) => ground.run('cherry-pick', '--abort'),
    ],
    [
      'a revert',
      'busy',
      /a revert/,
      (ground) => rebase(ground, 'revert', '--no-edit', 'contrary'),
      (ground) => ground.run('revert', '--abort'),
    ],
    ['a rebase', 'busy', /a rebase/, (ground) => rebase(ground, 'rebase', 'contrary'), (ground) => ground.run('rebase', '--abort')],
    [
      'a rebase by patches',
      'busy',
      /a rebase/,
      (ground) => rebase(ground, 'rebase', '--apply', 'contrary'),
      (ground) => ground.run('rebase', '--abort'),
    ],
    [
      'a bisect',
      'busy',
      /a bisect/,
      (ground) => {
        ground.run('bisect', 'start')
        ground.run('bisect', 'bad', 'main')
        ground.run('bisect', 'good', 'main~1')
        ground.run('checkout', '-q', '--detach', 'main~1')
      },
      (ground) => ground.run('bisect', 'reset'),
    ],
  ]
  for (const [name, why, says, arrange, end] of cases)
    test(`[GL10] ${name}`, async ({ ground }) => {
      contrary(ground)
      await ground.ahead()
      arrange(ground)
      const [before, main] = [ground.seen(), ground.tip('main')]
      const said = await ground.git.follow(ground.main)
      expect(said).toEqual({ state: 'behind', by: 1, why, at: ground.top, message: expect.stringMatching(says) })
      expect([ground.seen(), ground.tip('main')]).toEqual([before, main])
      end?.(ground)
      await ground.revertsNothing()
      expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    })

  test('[GL10] the index.lock of a git that lives', async ({ ground }) => {
    await ground.ahead()
    ground.write({ 'e.txt': 'being committed\n' })
    const waiting = join(ground.folder, 'editor')
    writeFileSync(waiting, '#!/bin/sh\necho >&2\nread x <&0\necho done > "$1"\n', { mode: 0o755 })
    const git = spawn('git', ['commit', '-q', '-a'], {
      cwd: ground.top,
      env: { ...ground.env, GIT_EDITOR: JSON.stringify(waiting), TERM: 'dumb' },
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    await new Promise((resolve) => git.stderr.once('data', resolve))
    const lock = join(ground.top, '.git/index.lock')
    expect(existsSync(lock)).toBe(true)
    old(lock)
    expect(await ground.git.follow(ground.main)).toMatchObject({ state: 'behind', why: 'busy', message: expect.stringContaining(lock) })
    const ended = new Promise((resolve) => git.once('exit', resolve))
    git.stdin.end('\n')
    expect(await ended).toBe(0)
    await ground.revertsNothing()
    expect(ground.run('show', `${LINE}:e.txt`)).toBe('being committed')
  })

  test('[GL10] changes where it is checked out elsewhere', async ({ ground }) => {
    const beside = join(ground.folder, 'beside')
    ground.run('checkout', '-q', '-b', 'elsewhere')
    ground.run('worktree', 'add', '-q', beside, 'main')
    await ground.ahead()
    ground.write({ 'e.txt': 'at work' }, beside)
    const before = [ground.seen(), ground.seen(beside)]
    expect(await ground.git.follow(ground.main)).toMatchObject({ state: 'behind', by: 1, why: 'dirty', at: beside })
    expect([ground.seen(), ground.seen(beside)]).toEqual(before)
    await ground.revertsNothing(beside)
  })

  test('[GL10] a rebase elsewhere that will move it, also beside a checkout of it', async ({ ground }) => {
    contrary(ground)
    const beside = join(ground.folder, 'beside')
    ground.run('checkout', '-q', '-b', 'elsewhere')
    ground.run('worktree', 'add', '-q', beside, 'main')
    await ground.ahead()
    rebase(ground, '-C', beside, 'rebase', 'contrary')
    const main = ground.tip('main')
    expect(await ground.git.follow(ground.main)).toMatchObject({ state: 'behind', why: 'busy', at: beside })
    expect(ground.tip('main')).toBe(main)
    ground.in(beside, 'rebase', '--skip')
    expect(ground.in(beside, 'symbolic-ref', 'HEAD')).toBe('refs/heads/main')
  })

  test('[GL10] two checkouts of it, or one whose folder is not there now', async ({ ground }) => {
    const beside = join(ground.folder, 'beside')
    ground.run('worktree', 'add', '-q', '--force', beside, 'main')
    await ground.ahead()
    const before = [ground.seen(), ground.seen(beside)]
    const two = await ground.git.follow(ground.main)
    expect(two).toMatchObject({ state: 'behind', why: 'busy', message: expect.stringContaining(beside) })
    expect([ground.seen(), ground.seen(beside)]).toEqual(before)
    ground.run('checkout', '-q', '--detach')
    renameSync(beside, `${beside}-unmounted`)
    const main = ground.tip('main')
    const gone = await ground.git.follow(ground.main)
    expect(gone).toMatchObject({ state: 'behind', why: 'busy', at: beside, message: expect.stringContaining('git worktree prune') })
    expect(ground.tip('main')).toBe(main)
    renameSync(`${beside}-unmounted`, beside)
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    await ground.revertsNothing(beside)
  })

  const inTheWay: [name: string, mine: string, ignore?: string][] = [
    ['an untracked file', 'new/n.txt'],
    ['an ignored file', 'new/n.txt', 'new/'],
    ['an ignored file where a folder is to be', 'new', 'new'],
    ['a folder with untracked files where a file is to be', 'new/n.txt/mine'],
    ['a folder with ignored files where a file is to be', 'new/n.txt/mine', 'mine'],
  ]
  for (const [name, mine, ignore] of inTheWay)
    test(`[GL11] ${name} in the way is named`, async ({ ground }) => {
      await ground.ahead()
      if (ignore) writeFileSync(join(ground.top, '.git/info-exclude'), `${ignore}\n`)
      if (ignore) ground.run('config', 'core.excludesFile', join(ground.top, '.git/info-exclude'))
      ground.write({ [mine]: 'only I have this' })
      const before = ground.seen()
      const said = await ground.git.follow(ground.main)
      expect(said).toEqual({ state: 'behind', by: 1, why: 'in_the_way', at: ground.top, message: expect.stringContaining('new') })
      expect(ground.seen()).toEqual(before)
      await ground.revertsNothing()
      renameSync(join(ground.top, 'new'), join(ground.folder, 'saved'))
      expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    })

  test('[GL11] a submodule that is filled is left to the person; one that is not follows', async ({ ground }) => {
    const library = join(ground.folder, 'library')
    mkdirSync(library)
    ground.in(library, 'init', '-q')
    const one = ground.commit(library, { 'l.txt': '1' })
    const two = ground.commit(library, { 'l.txt': '2' })
    ground.in(library, 'checkout', '-q', '-B', 'main', one)
    ground.run('submodule', '--quiet', 'add', library, 'sub')
    ground.commit(ground.top, {})
    const path = await ground.place('t1')
    ground.in(path, 'update-index', '--cacheinfo', `160000,${two},sub`)
    ground.write({ 'a.txt': 'ONE\n', 'new/n.txt': 'new\n', 'd.txt': null }, path)
    ground.in(path, 'add', 'a.txt', 'new', 'd.txt')
    ground.in(path, 'commit', '-q', '-m', 'work')
    const landed = await ground.land('t1', ground.in(path, 'rev-parse', 'HEAD'))
    expect(ground.run('rev-parse', `${LINE}:sub`)).toBe(two)
    const before = ground.seen()
    const said = await ground.git.follow(ground.main)
    expect(said).toMatchObject({ state: 'behind', by: 1, why: 'in_the_way', message: expect.stringMatching(/sub\..*git submodule update/) })
    expect(ground.seen()).toEqual(before)
    await ground.revertsNothing()
    expect(ground.run('rev-parse', `${LINE}:sub`)).toBe(two)
    ground.run('submodule', '--quiet', 'deinit', 'sub')
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    await ground.revertsNothing()
    expect([ground.run('rev-parse', 'main:sub'), ground.run('merge-base', landed, 'main')]).toEqual([two, landed])
  })

  test('[GL5] submodules that both sides changed are a conflict', async ({ ground }) => {
    const [one, two, three] = ['1', '2', '3'].map((n) => n.repeat(40))
    const link = (cwd: string, to?: string) => {
      ground.in(cwd, 'update-index', '--add', '--cacheinfo', `160000,${to},sub`)
      ground.in(cwd, 'commit', '-q', '-m', 'sub')
      return ground.in(cwd, 'rev-parse', 'HEAD')
    }
    link(ground.top, one)
    const [mine, theirs] = [link(await ground.place('t1'), two), link(await ground.place('t2'), three)]
    await ground.land('t1', mine)
    expect(await ground.build('t2', theirs)).toEqual({ result: 'conflict', files: ['sub'] })
  })

  test('[GL11] what a filter of the repository’s own configuration writes is left to the person', async ({ ground }) => {
    ground.commit(ground.top, { '.gitattributes': '*.secret filter=rot\n', 'x.secret': 'abc\n' })
    const commit = await ground.work('t1', { 'a.txt': 'ONE\n', 'new/n.txt': 'n', 'd.txt': null, 'x.secret': 'nop\n' })
    await ground.land('t1', commit)
    ground.run('config', 'filter.rot.smudge', 'tr a-z n-za-m')
    ground.run('config', 'filter.rot.clean', 'tr a-z n-za-m')
    rmSync(join(ground.top, 'x.secret'))
    ground.run('checkout', '-q', '--', '.')
    const before = ground.seen()
    expect(await ground.git.follow(ground.main)).toMatchObject({
      state: 'behind',
      why: 'in_the_way',
      message: expect.stringContaining('x.secret'),
    })
    expect(ground.seen()).toEqual(before)
    // The person's own filter is run.
    ground.run('config', '--global', 'filter.rot.smudge', 'tr a-z n-za-m')
    ground.run('config', '--global', 'filter.rot.clean', 'tr a-z n-za-m')
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect(readFileSync(join(ground.top, 'x.secret'), 'utf8')).toBe('abc\n')
    await ground.revertsNothing()
  })
})

describe('a fast-forward that fails in the middle', () => {
  /** As `ahead`, with one more file that somehow cannot be written, and what has come or gone by then. */
  const landing = async (ground: LineGround, name: string, text = 'x\n') => {
    ground.commit(ground.top, { 'dir/f': 'f\n', file: 'f\n', 'z.txt': 'z\n' })
    const path = await ground.place('t1')
    ground.write({ 'a.txt': 'ONE\n', 'new/n.txt': 'new\n', 'd.txt': null, 'dir/f': null, file: null, 'z.txt': 'Z\n' }, path)
    rmSync(join(path, 'dir'), { recursive: true })
    ground.write({ dir: 'now a file\n', 'file/f': 'now a folder\n' }, path)
    ground.in(path, 'add', '-A')
    const run = { cwd: path, env: ground.env, input: text }
    const blob = execFileSync('git', ['hash-object', '-w', '--stdin'], run).toString().trim()
    ground.in(path, 'update-index', '--add', '--cacheinfo', `100644,${blob},${name}`)
    ground.in(path, 'commit', '-q', '-m', 'work')
    return ground.land('t1', ground.in(path, 'rev-parse', 'HEAD'))
  }
  const status = (ground: LineGround) => ground.run('status', '--porcelain', '--untracked-files=all')

  test('[GL15] leaves the checkout as it was, and says what git said', async ({ ground }) => {
    await landing(ground, `new/${'m'.repeat(300)}`)
    const main = ground.tip('main')
    for (const again of [1, 2]) {
      const said = await ground.git.follow(ground.main)
      expect([again, said]).toEqual([
        again,
        { state: 'behind', by: 1, why: 'in_the_way', at: ground.top, message: expect.stringContaining('name too long') },
      ])
      expect([ground.tip('main'), status(ground), existsSync(join(ground.top, 'new'))]).toEqual([main, '', false])
    }
    await ground.revertsNothing()
  })

  test('[GL15] leaves what somebody wrote meanwhile, and whatever is beside it', async ({ ground }) => {
    const typing = `echo mine > a.txt; echo mine > new/mine.txt; echo >&2 no; exit 1`
    ground.commit(ground.top, { '.gitattributes': '*.last filter=typing\n' })
    await landing(ground, 'q.last')
    ground.run('config', '--global', 'filter.typing.smudge', typing)
    ground.run('config', '--global', 'filter.typing.clean', 'cat')
    ground.run('config', '--global', 'filter.typing.required', 'true')
    const said = await ground.git.follow(ground.main)
    expect(said).toMatchObject({ state: 'behind', why: 'in_the_way', message: expect.stringContaining('q.last') })
    expect(status(ground)).toBe('M a.txt\n?? new/mine.txt')
    expect(readFileSync(join(ground.top, 'a.txt'), 'utf8')).toBe('mine\n')
    ground.run('config', '--global', 'filter.typing.smudge', 'cat')
    ground.run('checkout', '-q', 'a.txt')
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    await ground.revertsNothing()
  })

  test('[GL15] at the ref, when all files were there, is taken back too', async ({ ground }) => {
    await landing(ground, 'more.txt')
    const [main, lock] = [ground.tip('main'), join(ground.top, '.git/refs/heads/main.lock')]
    writeFileSync(lock, '')
    expect(await ground.git.follow(ground.main)).toMatchObject({ why: 'busy', message: expect.stringContaining(lock) })
    expect([ground.tip('main'), status(ground)]).toEqual([main, ''])
    rmSync(lock)
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    await ground.revertsNothing()
  })

  test('[GL15] of which git cannot even read the index is told', async ({ ground }) => {
    await ground.ahead()
    const index = join(ground.top, '.git/index')
    const whole = readFileSync(index)
    writeFileSync(index, 'broken')
    expect(await ground.git.follow(ground.main)).toMatchObject({ state: 'behind', why: 'busy', message: expect.stringContaining('index') })
    writeFileSync(index, whole)
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
  })
})

describe('a fast-forward that is killed', () => {
  const lock = (name: string) => `touch -d '1 minute ago' "$GIT_DIR/${name}.lock"`
  const written = '$git read-tree -m -u HEAD $to'
  /** As git leaves it: it writes the files under the lock of the index, then the index, then the ref. */
  const STEPS = {
    'before it began': '',
    'when it had the lock': lock('index'),
    'in the middle of the files': `${lock('index')}; rm d.txt; $git cat-file blob $to:a.txt > a.txt`,
    'before a file was written again': `${lock('index')}; rm d.txt a.txt`,
    'while a file was written again': `${lock('index')}; rm d.txt; printf ON > a.txt`,
    'while a new file was written': `${lock('index')}; rm d.txt; mkdir new; : > new/n.txt`,
    'before it wrote the index': `cp "$GIT_DIR/index" ../index; ${written}; cp ../index "$GIT_DIR/index"; ${lock('index')}`,
    'before it locked the ref': written,
    'before it moved the ref': `${written}; ${lock('HEAD')}; ${lock('refs/heads/main')}`,
    'when it had moved the ref': `$git merge -q --ff-only $to; ${lock('HEAD')}`,
  }
  const status = (ground: LineGround) => ground.run('status', '--porcelain', '--untracked-files=all')

  test.for(Object.entries(STEPS))('[GL15] %s is finished by the next one', async ([name, steps], { ground }) => {
    await ground.ahead()
    ground.write({ 'mine.txt': 'mine\n' })
    await ground
      .killedAt(name.replaceAll(' ', '-'), steps)
      .follow(ground.main)
      .catch(() => {})
    const landed = await ground.land('t2', await ground.work('t2', { 't2.txt': 'x\n' }, LINE))
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect([ground.tip('main'), status(ground)]).toEqual([landed, '?? mine.txt'])
    expect(readdirSync(join(ground.top, '.git')).filter((file) => file.endsWith('.lock'))).toEqual([])
    await ground.revertsNothing()
  })

  test.for(Object.entries(STEPS))('[GL15] %s leaves what the person did since', async ([name, steps], { ground }) => {
    const landed = await ground.ahead()
    const from = ground.tip('main')
    await ground
      .killedAt(name.replaceAll(' ', '-'), steps)
      .follow(ground.main)
      .catch(() => {})
    ground.write({ 'e.txt': 'mine\n', 'a.txt': 'mine too\n', 'new/mine.txt': 'mine\n' })
    const followed = await ground.git.follow(ground.main)
    const main = ground.tip('main')
    expect([followed, main]).toEqual(
      main === landed
        ? [{ state: 'even' }, landed]
        : [{ state: 'behind', by: 1, why: 'dirty', at: ground.top, message: expect.stringContaining('a.txt, e.txt.') }, from],
    )
    expect(status(ground).split('\n')).toEqual(['M a.txt', ' M e.txt', '?? new/mine.txt'])
    expect(['e.txt', 'a.txt', 'new/mine.txt'].map((file) => readFileSync(join(ground.top, file), 'utf8'))).toEqual([
      'mine\n',
      'mine too\n',
      'mine\n',
    ])
  })

  test('[GL15] with a daemon that its git outlives is waited for', async ({ ground }) => {
    const landed = await ground.ahead()
    const gate = join(ground.folder, 'gate')
    execFileSync('mkfifo', [gate])
    const steps = `(read x < '${gate}'; ${written}; $git update-ref refs/heads/main $to) > /dev/null 2>&1 &`
    await ground
      .killedAt('gate', steps)
      .follow(ground.main)
      .catch(() => {})
    await expect(ground.another(ground.env, 0).follow(ground.main)).rejects.toMatchObject({ reason: 'busy' })
    writeFileSync(gate, 'go\n')
    expect(await ground.git.follow(ground.main)).toEqual({ state: 'even' })
    expect([ground.tip('main'), status(ground)]).toEqual([landed, ''])
  })
})

describe('a scratch checkout', () => {
  test('[GL13] is that commit and nothing else, again and again', async ({ ground }) => {
    const [first, second] = [ground.tip('main'), await ground.ahead()]
    const { path } = await ground.git.scratch(ground.top, 'line', first)
    expect(ground.in(path, 'rev-parse', 'HEAD')).toBe(first)
    ground.write({ 'out/cache': 'x', 'new/n.txt': 'in the way', 'e.txt': 'changed', 'nested/x': 'y', 'x.log': 'l' }, path)
    ground.in(join(path, 'nested'), 'init', '-q')
    ground.in(path, 'checkout', '-q', '-b', 'by-the-check')
    const branch = ground.tip('by-the-check')
    const lock = join(ground.in(path, 'rev-parse', '--absolute-git-dir'), 'index.lock')
    writeFileSync(lock, '')
    old(lock)
    expect(await ground.git.scratch(ground.top, 'line', second)).toEqual({ path })
    expect([
      ground.in(path, 'rev-parse', 'HEAD'),
      ground.in(path, 'status', '--porcelain', '--ignored'),
      ground.tip('by-the-check'),
    ]).toEqual([second, '', branch])
    expect(() => ground.in(path, 'symbolic-ref', 'HEAD')).toThrow()
    ground.hasLanded(second)
    expect(readdirSync(path).sort()).toEqual(['.git', '.gitignore', 'a.txt', 'e.txt', 'new'])
    await expect(ground.git.scratch(ground.top, '../x', second)).rejects.toMatchObject({ reason: 'invalid' })
    await expect(ground.git.scratch(ground.top, 'line', 'main')).rejects.toMatchObject({ reason: 'invalid' })
  })

  test('[GL13] is made again of whatever is left of it', async ({ ground }) => {
    const head = ground.tip('main')
    const { path } = await ground.git.scratch(ground.top, 'line', head)
    const left: ((admin: string) => void)[] = [
      () => rmSync(path, { recursive: true }),
      (admin) => rmSync(join(admin, 'index')),
      (admin) => writeFileSync(join(admin, 'index'), 'broken'),
      (admin) => writeFileSync(join(admin, 'HEAD'), 'ref: refs/heads/none\n'),
      () => {
        rmSync(path, { recursive: true })
        mkdirSync(path)
      },
      () => ground.run('worktree', 'remove', '--force', '--force', path),
      () => {
        for (const [flag, name] of [
          ['--skip-worktree', 'a.txt'],
          ['--assume-unchanged', 'e.txt'],
        ] as const) {
          ground.in(path, 'update-index', flag, name)
          writeFileSync(join(path, name), 'left by a check')
        }
      },
      // An index that says of another file's time and size that it is the committed one: git then looks no further.
      (admin) => {
        const committed = ground.in(path, 'rev-parse', 'HEAD:a.txt')
        writeFileSync(join(path, 'a.txt'), 'left by a check')
        old(join(path, 'a.txt'))
        ground.in(path, 'add', 'a.txt')
        const index = readFileSync(join(admin, 'index'))
        const at = index.indexOf(Buffer.from(ground.in(path, 'hash-object', 'a.txt'), 'hex'))
        index.set(Buffer.from(committed, 'hex'), at)
        index.set(createHash('sha1').update(index.subarray(0, -20)).digest(), index.length - 20)
        writeFileSync(join(admin, 'index'), index)
        expect(ground.in(path, 'status', '--porcelain')).toBe('')
      },
      () => rmSync(join(path, '.git')),
      () => {
        rmSync(join(path, '.git'))
        ground.in(path, 'init', '-q')
      },
      () => {
        rmSync(path, { recursive: true })
        writeFileSync(path, 'a file')
      },
      () => {
        rmSync(path, { recursive: true })
        symlinkSync(ground.top, path)
      },
      () => {
        rmSync(join(path, '.git'))
        chmodSync(path, 0)
      },
    ]
    for (const harm of left) {
      harm(ground.in(path, 'rev-parse', '--absolute-git-dir'))
      await ground.another().scratch(ground.top, 'line', head)
      expect([ground.in(path, 'rev-parse', 'HEAD'), ground.in(path, 'status', '--porcelain')]).toEqual([head, ''])
      for (const name of ['a.txt', 'e.txt'])
        expect(readFileSync(join(path, name), 'utf8')).toBe(readFileSync(join(ground.top, name), 'utf8'))
    }
    await ground.git.dropScratch(ground.top, 'line')
    await ground.git.dropScratch(ground.top, 'line')
    expect([existsSync(path), ground.run('worktree', 'list', '--porcelain').includes('.scratch')]).toEqual([false, false])
    ground.write({ 'left.txt': 'x' }, path)
    await ground.git.dropScratch(ground.top, 'line')
    expect([existsSync(path), ground.tip('main'), ground.run('status', '--porcelain')]).toEqual([false, head, ''])
  })
})

test('[GL14] cut off at any git command, it is repeated to the same end, once', async ({ ground }) => {
  const step = async (git: Git, name: string, commit: string) => {
    const line = await git.line(ground.main)
    const built = await git.build(ground.building(name, commit, line.head))
    if (built.result === 'built') {
      await git.scratch(ground.top, 'line', built.commit)
      expect(await git.land(ground.main, line.head, built.commit, name)).toBe(true)
    }
    const { state } = await git.follow(ground.main)
    await git.dropScratch(ground.top, 'line')
    return state
  }
  const place = await ground.place('work')
  let cut = 0
  for (let whole = false; !whole; ) {
    cut++
    // Every second one finds a line that the branch is behind of, and a commit of the person's to take in.
    if (cut % 2) ground.commit(ground.top, { 'mine.txt': String(cut) })
    ground.in(place, 'checkout', '-q', '--detach', 'main')
    const commit = ground.commit(place, { [`f${cut}.txt`]: 'x\n', '.signalbox/x': String(cut) })
    whole = await step(ground.dying(cut), `t${cut}`, commit).then(
      (state) => state === 'even',
      () => false,
    )
    expect(await step(ground.another(), `t${cut}`, commit)).toBe('even')
    expect([ground.run('log', '--format=%s', `--grep=^t${cut}: done`, 'main'), ground.run('status', '--porcelain')]).toEqual([
      `t${cut}: done`,
      '',
    ])
  }
  expect(cut).toBeGreaterThan(12)
  expect(ground.run('for-each-ref', 'refs/signalbox/build')).toBe('')
  ground.isSound()
})
