import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Build, type Delivery, type Git, GitRefusal, type LineOf, type NewPlace, type Place } from './git.ts'

/** null: the file is deleted. */
export type Changes = Record<string, string | null>

/** One repository, and what people and agents do in its checkouts without asking us: its top, places, scratches. */
export interface GitUnderTest {
  git: Git
  /** Of a second daemon on the same repository. */
  another: Git
  /** Of one that waits for nobody who holds a lock. */
  impatient: Git
  /** `main` is checked out there; its one commit has `a.txt` and `d.txt`. */
  top: string
  write(checkout: string, files: Changes): void
  /** With everything else that is changed there. */
  commit(checkout: string, files: Changes): string
  /** On a branch that is checked out nowhere. */
  commitOn(branch: string, files: Changes): string
  read(checkout: string, file: string): string | undefined
  /** Its HEAD is on no branch any more. */
  detach(checkout: string): void
  deleteBranch(branch: string): void
  /** The ref of a line, by whoever can write to the repository. null: it is deleted. */
  moveLine(target: string, commit: string | null): void
  /** What no ref names is gone. */
  collect(): void
  /** As the last fetch saw a branch of the remote. */
  fetched(branch: string, commit: string): void
  /** The folder is gone, and git was not asked. */
  lose(checkout: string): void
  /** A folder of somebody else's, with a file `theirs`. */
  occupy(path: string): void
  /** A repository of its own inside a checkout, with work that nobody else has. */
  nest(checkout: string): void
  /** Another program is at work in a checkout, until it is let go. */
  lock(checkout: string): () => void
  close(): void
}

const FULL = /^[0-9a-f]{40}$/
const NO_COMMIT = 'f'.repeat(40)
const NO_PATHS = ['..', '.', '', '-x', 'a/b', 'a b', 'a..b', 'x.lock', '../x', '/etc']
const NO_BRANCHES = ['--all', '-x', 'a..b', 'a b', '']
const NOT_IN_FULL = ['main', 'HEAD', '--all', 'a'.repeat(39)]

/** Why it was refused; what it answered when it was not. */
async function reason(attempt: () => unknown): Promise<unknown> {
  try {
    return { answered: await attempt() }
  } catch (error) {
    return error instanceof GitRefusal ? error.reason : error
  }
}

async function refuses(why: GitRefusal['reason'], attempts: Record<string, () => unknown>): Promise<void> {
  for (const [what, attempt] of Object.entries(attempts)) expect([what, await reason(attempt)]).toEqual([what, why])
}

let number = 0
/** Of a place, a branch or a line that no other test has. */
const fresh = () => `task-${++number}`

/** What a capability may rely on, whoever keeps the repositories. */
export function gitContract(begin: () => GitUnderTest): void {
  let shared: GitUnderTest
  beforeAll(() => {
    shared = begin()
  })
  afterAll(() => shared.close())

  /** For a test that changes what others find at the top. */
  const alone = () => {
    const own = begin()
    onTestFinished(() => own.close())
    return own
  }
  const placeIn = ({ git, top }: GitUnderTest, more: Partial<NewPlace> = {}): NewPlace & { name: string } => {
    const name = fresh()
    const path = git.placeFor({ repo_handle: 'web', name })
    return { name, repo: top, path, branch: `signalbox/${name}`, base: 'main', strategy: 'local', ...more }
  }
  const made = async (more: Partial<NewPlace> = {}, ground = shared) => {
    const place = placeIn(ground, more)
    return { ...place, from: (await ground.git.add(place)).base }
  }
  /** A branch of its own at `main`, which is checked out nowhere, and its line. */
  const target = async (): Promise<LineOf> => {
    const name = fresh()
    await shared.git.branch({ repo: shared.top, branch: name, base: 'main', strategy: 'local' })
    return { repo: shared.top, target: name, strategy: 'local' }
  }
  const tip = async (branch: string, { git, top } = shared) =>
    (await git.branch({ repo: top, branch, base: 'main', strategy: 'local' })).head
  /** One task's work for a line, on a branch of its own. */
  const work = async ({ repo, target: base }: LineOf, files: Changes, { git, commitOn } = shared) => {
    const name = fresh()
    await git.branch({ repo, branch: name, base, strategy: 'local' })
    return { name, commit: commitOn(name, files) }
  }
  const building = (line: LineOf, commit: string, onto: string, name: string): Build => ({
    line,
    commit,
    onto,
    message: `${name}: done`,
    trailers: { 'Signalbox-Merge': name },
    keep: name,
    method: 'squash',
  })
  /** Work on one task that has landed; the target did not follow yet. */
  const landed = async (line: LineOf, files: Changes, ground = shared) => {
    const { git } = ground
    const { name, commit } = await work(line, files, ground)
    const { head } = await git.line(line)
    const built = await git.build(building(line, commit, head, name))
    if (built.result !== 'built') throw new Error(built.result)
    expect(await git.land(line, head, built.commit, name)).toBe(true)
    return { commit: built.commit, before: head, name }
  }

  describe('what it is asked by', () => {
    test('[G17] a repository is asked about by its path, and told in full', async () => {
      const { git, top } = shared
      expect(await git.inspect(top)).toMatchObject({ top, branch: 'main', remote: null, head: expect.stringMatching(FULL) })
      expect((await git.inspect(top))?.branches).toContain('main')
      expect(await git.inspect(`${top}-none`)).toBeUndefined()
      expect([await git.has(top, await tip('main')), await git.has(top, NO_COMMIT)]).toEqual([true, false])
    })

    test('[G17] a place is named by the handle of its repository and a word; a path is neither', async () => {
      const { git, top } = shared
      const place = placeIn(shared)
      expect(git.placeFor({ repo_handle: 'web', name: place.name })).toBe(place.path)
      expect(place.path.endsWith(`/web/${place.name}`)).toBe(true)
      for (const word of [top, ...NO_PATHS])
        await refuses('invalid', {
          [`handle ${word}`]: () => git.placeFor({ repo_handle: word, name: 'x' }),
          [`name ${word}`]: () => git.placeFor({ repo_handle: 'web', name: word }),
        })
      expect(await git.state(place, 'refs/heads/main')).toMatchObject({ state: 'missing', head: null, ahead: 0, dirty: 0 })
    })

    test('[G17] a base is a branch by its name, a ref in full or a commit in full', async () => {
      const { git, top } = shared
      const head = await tip('main')
      for (const base of ['main', 'refs/heads/main', head])
        expect(await git.branch({ repo: top, branch: fresh(), base, strategy: 'local' })).toEqual({ head })
      expect(await git.add(placeIn(shared, { base: head }))).toEqual({ base: head, head })
    })

    test('[G17] what is not named so is invalid, and nothing is done', async () => {
      const { git, top } = shared
      const place = await made()
      const head = place.from
      const line: LineOf = { repo: top, target: 'main', strategy: 'local' }
      for (const bad of NOT_IN_FULL)
        await refuses('invalid', {
          [`has ${bad}`]: () => git.has(top, bad),
          [`state ${bad}`]: () => git.state(place, bad),
          [`diff ${bad}`]: () => git.diff(place, { from: bad, bytes: 100 }),
          [`build ${bad}`]: () => git.build(building(line, bad, head, 'x')),
          [`build onto ${bad}`]: () => git.build(building(line, head, bad, 'x')),
          [`land ${bad}`]: () => git.land(line, head, bad, 'x'),
          [`keep ${bad}`]: () => git.keep(top, 'x', bad),
          [`build from ${bad}`]: () => git.build({ ...building(line, head, head, 'x'), from: bad }),
          [`scratch ${bad}`]: () => git.scratch(top, 'x', bad),
          [`rebase ${bad}`]: () => git.rebase(place, bad, 'x'),
          [`restore ${bad}`]: () => git.restore(place, bad, 'x'),
        })
      for (const bad of NO_BRANCHES)
        await refuses('invalid', {
          [`add ${bad}`]: () => git.add({ ...placeIn(shared), branch: bad }),
          [`add from ${bad}`]: () => git.add({ ...placeIn(shared), base: bad }),
          [`branch ${bad}`]: () => git.branch({ repo: top, branch: bad, base: 'main', strategy: 'local' }),
          [`line ${bad}`]: () => git.line({ ...line, target: bad }),
          [`follow ${bad}`]: () => git.follow({ ...line, target: bad }),
        })
      for (const bad of NO_PATHS)
        await refuses('invalid', {
          [`rescue as ${bad}`]: () => git.rescue(place, bad),
          [`remove as ${bad}`]: () => git.remove(place, bad),
          [`rescues of ${bad}`]: () => git.rescues(top, bad),
          [`keep ${bad}`]: () => git.build(building(line, head, head, bad)),
          [`keep as ${bad}`]: () => git.keep(top, bad, head),
          [`scratch ${bad}`]: () => git.scratch(top, bad, head),
        })
      for (const path of [top, `web/${place.name}`, `${place.path}/../x`])
        await refuses('invalid', {
          [`add at ${path}`]: () => git.add({ ...place, path }),
          [`state of ${path}`]: () => git.state({ ...place, path }, head),
          [`remove ${path}`]: () => git.remove({ ...place, path }, 'x'),
        })
      await refuses('invalid', { 'a repository by its handle': () => git.line({ ...line, repo: 'web' }) })
      expect(await git.state(place, head)).toMatchObject({ state: 'present', head, ahead: 0, dirty: 0 })
    })

    test('[G17] what is named well and is not there is missing', async () => {
      const { git, top } = shared
      const [place, line] = [await made(), { repo: top, target: fresh(), strategy: 'local' as const }]
      const gone = { ...place, repo: `${top}-none` }
      const branchless = { ...place, branch: fresh() }
      const lineAway = { ...line, repo: gone.repo, target: 'main' }
      const delivery: Delivery = { path: 'x/y', text: '', message: 'x', trailers: { 'Signalbox-Feedback': 'x' } }
      await refuses('missing', {
        'add in no repository': () => git.add({ ...placeIn(shared), repo: gone.repo }),
        'state in no repository': () => git.state(gone, place.from),
        'rescues of no repository': () => git.rescues(gone.repo, 'x'),
        'has in no repository': () => git.has(gone.repo, place.from),
        'moved to no repository': () => git.moved(gone.repo),
        'line of no repository': () => git.line(lineAway),
        'follow in no repository': () => git.follow(lineAway),
        'branch in no repository': () => git.branch({ ...gone, branch: fresh() }),
        'scratch of no repository': () => git.scratch(gone.repo, 'x', place.from),
        'keep in no repository': () => git.keep(gone.repo, 'x', place.from),
        'keep of no commit': () => git.keep(top, 'x', NO_COMMIT),
        'add from no branch': () => git.add(placeIn(shared, { base: fresh() })),
        'branch from no branch': () => git.branch({ repo: top, branch: fresh(), base: fresh(), strategy: 'local' }),
        'state from no commit': () => git.state(place, NO_COMMIT),
        'state from no ref': () => git.state(place, `refs/heads/${fresh()}`),
        'diff from no commit': () => git.diff(place, { from: NO_COMMIT, bytes: 100 }),
        'restore of nothing': () => git.restore(place, 'refs/signalbox/rescue/x/none', 'x'),
        'line of no target': () => git.line(line),
        'build of no commit': () => git.build(building({ ...line, target: 'main' }, NO_COMMIT, place.from, 'x')),
        'build onto no commit': () => git.build(building({ ...line, target: 'main' }, place.from, NO_COMMIT, 'x')),
        'deliver to no branch': () => git.deliver(branchless, delivery),
        'rebase of no branch': () => git.rebase(branchless, place.from, 'x'),
      })
    })
  })

  describe('a place', () => {
    test('[G2] [G4] is made once, with what was done in it, and again when its folder is gone', async () => {
      const { git, another, commit, write, read, lose } = shared
      const place = placeIn(shared)
      const first = await git.add(place)
      expect(first).toEqual({ base: await tip('main'), head: first.base })
      const head = commit(place.path, { 'w.txt': 'work\n' })
      write(place.path, { 'u.txt': 'untracked\n' })
      expect(await Promise.all([git.add(place), another.add(place)])).toEqual([1, 2].map(() => ({ base: first.base, head })))
      expect(read(place.path, 'u.txt')).toBe('untracked\n')
      lose(place.path)
      expect(await git.state(place, first.base)).toMatchObject({ state: 'missing', head, ahead: 1, dirty: 0 })
      expect(await git.add(place)).toEqual({ base: first.base, head })
      expect([read(place.path, 'w.txt'), read(place.path, 'u.txt')]).toEqual(['work\n', undefined])
      const taken = placeIn(shared, { branch: (await target()).target })
      const own = shared.commitOn(taken.branch, { 'w.txt': 'by a person\n' })
      expect(await git.add(taken)).toEqual({ base: first.base, head: own })
    })

    test('[G15] tells where it stands, and whether anything happened since', async () => {
      const { git, commit, write } = shared
      const place = await made()
      const seen = [await git.state(place, place.from)]
      const look = async () => {
        const now = await git.state(place, place.from)
        seen.push(now)
        return now
      }
      expect(seen[0]).toMatchObject({ state: 'present', head: place.from, ahead: 0, dirty: 0 })
      expect(await git.state(place, place.from)).toEqual(seen[0])
      write(place.path, { 'n.txt': 'one\n' })
      expect(await look()).toMatchObject({ head: place.from, ahead: 0, dirty: 1 })
      write(place.path, { 'n.txt': 'two\n' })
      expect(await look()).toMatchObject({ ahead: 0, dirty: 1 })
      write(place.path, { 'a.txt': 'changed\n', 'd.txt': null })
      expect(await look()).toMatchObject({ ahead: 0, dirty: 3 })
      const head = commit(place.path, {})
      expect(await look()).toMatchObject({ state: 'present', head, ahead: 1, dirty: 0 })
      expect(await git.state(place, 'refs/heads/main')).toEqual(seen.at(-1))
      expect(await git.state(place, head)).toMatchObject({ ahead: 0 })
      expect(new Set(seen.map(({ fingerprint }) => fingerprint)).size).toBe(seen.length)
    })

    test('[G17] [SU2] is known again as long as it is there, and another one when it was made again', async () => {
      const { git } = shared
      const place = await made()
      const first = await git.idOf(place.path)
      await git.add(place)
      expect(await git.idOf(place.path)).toBe(first)
      await git.remove(place, place.name)
      await git.add(place)
      expect(await git.idOf(place.path)).not.toBe(first)
    })

    test('[G17] [SU9] tells what is in no commit, and what a commit has', async () => {
      const { git, top, write, commit } = shared
      const place = await made()
      expect(await git.extras(top, place.path)).toEqual({ ignored: [], untracked: [], changed: [] })
      const head = commit(place.path, { 'b/one.txt': 'same\n', 'b/two.txt': 'same\n', 'c.txt': 'other\n' })
      write(place.path, { 'n.txt': 'new\n', 'a.txt': 'changed\n' })
      expect(await git.extras(top, place.path)).toEqual({ ignored: [], untracked: ['n.txt'], changed: ['a.txt'] })
      expect(await git.topOf(top, head)).toEqual(expect.arrayContaining(['a.txt', 'b', 'c.txt']))
      const files = await git.filesOf(top, head)
      const idOf = (wanted: string) => files.find(({ path }) => path === wanted)?.id
      expect([idOf('b/one.txt') === idOf('b/two.txt'), idOf('b/one.txt') === idOf('c.txt'), idOf('n.txt')]).toEqual([
        true,
        false,
        undefined,
      ])
      expect(await git.bring(top, place.path, ['*.none'])).toEqual([])
      await refuses('invalid', { 'top of no commit': () => git.topOf(top, 'main'), 'files of no commit': () => git.filesOf(top, '--all') })
    })

    test('[G15] tells what it takes on disk', async () => {
      const { git, write } = shared
      const place = await made()
      const before = await git.size(place)
      write(place.path, { big: 'x'.repeat(100_000) })
      expect((await git.size(place)) - before).toBeGreaterThanOrEqual(100_000)
      await git.remove(place, place.name)
      expect(await git.size(place)).toBe(0)
    })

    test('[G5] with something else at its path is foreign to every method, and that stays', async () => {
      const { git, lose, occupy, read } = shared
      const place = await made()
      const head = place.from
      lose(place.path)
      occupy(place.path)
      await refuses('foreign', {
        add: () => git.add(place),
        remove: () => git.remove(place, 'x'),
        rescue: () => git.rescue(place, 'x'),
        restore: () => git.restore(place, 'refs/signalbox/rescue/x/y', 'x'),
        diff: () => git.diff(place, { from: head, bytes: 100 }),
        deliver: () => git.deliver(place, { path: 'x/y', text: '', message: 'x', trailers: { 'Signalbox-Feedback': 'x' } }),
        rebase: () => git.rebase(place, head, 'x'),
      })
      expect(await git.state(place, head)).toMatchObject({ state: 'foreign', head, ahead: 0, dirty: 0 })
      expect(await git.file(place, 'theirs', 100)).toBeUndefined()
      expect(read(place.path, 'theirs')).toBe('mine')
    })

    test('[G4] that is not there has what its branch has, and nothing can be saved or brought back', async () => {
      const { git, commit } = shared
      const place = await made()
      commit(place.path, { 'w.txt': 'work\n' })
      expect(await git.remove(place, place.name)).toEqual({ rescue: undefined })
      expect(await git.remove(place, place.name)).toEqual({ rescue: undefined })
      await refuses('missing', {
        rescue: () => git.rescue(place, 'x'),
        restore: () => git.restore(place, 'refs/signalbox/rescue/x/y', 'x'),
      })
      expect((await git.diff(place, { from: place.from, bytes: 1_000 })).files).toMatchObject([{ path: 'w.txt', status: 'A' }])
      expect(await git.file(place, 'w.txt', 100)).toBeUndefined()
      expect((await git.file(place, 'w.txt', 100, `refs/heads/${place.branch}`))?.bytes.toString()).toBe('work\n')
    })

    test('[G6] [G7] is saved, taken away, made again and brought back, each once', async () => {
      const { git, top, write, read } = shared
      const place = await made()
      const { name } = place
      expect([await git.rescue(place, name), await git.rescues(top, name)]).toEqual([undefined, []])
      write(place.path, { 'a.txt': 'changed\n', 'n.txt': 'new\n', 'd.txt': null })
      const before = await git.state(place, place.from)
      const first = await git.rescue(place, name)
      if (!first) throw new Error('nothing was saved')
      expect(first).toEqual({
        ref: expect.stringMatching(`^refs/signalbox/rescue/${name}/[^/]+$`),
        commit: expect.stringMatching(FULL),
        at: expect.any(Number),
        branch: place.branch,
      })
      expect(await git.rescue(place, name)).toEqual(first)
      expect(await git.state(place, place.from)).toEqual(before)

      expect(await git.remove(place, name)).toEqual({ rescue: first })
      expect(await git.state(place, place.from)).toMatchObject({ state: 'missing', head: place.from })
      expect(await git.add(place)).toEqual({ base: place.from, head: place.from })
      expect(await git.state(place, place.from)).toMatchObject({ state: 'present', dirty: 0 })

      write(place.path, { 'later.txt': 'later\n' })
      const { rescue: later } = await git.restore(place, first.ref, name)
      expect(['a.txt', 'n.txt', 'd.txt', 'later.txt'].map((file) => read(place.path, file))).toEqual([
        'changed\n',
        'new\n',
        undefined,
        undefined,
      ])
      expect(await git.state(place, place.from)).toMatchObject({ head: place.from, ahead: 0, dirty: 3 })
      expect(await git.rescues(top, name)).toEqual([later, first])
      expect(await git.restore(place, first.ref, name)).toEqual({ rescue: undefined })
      await git.restore(place, later?.ref as string, name)
      expect([read(place.path, 'later.txt'), read(place.path, 'n.txt')]).toEqual(['later\n', undefined])
    })

    test('[G8] stays while a repository inside it has work that only it has', async () => {
      const { git, nest } = shared
      const place = await made()
      nest(place.path)
      await refuses('unsaved', { remove: () => git.remove(place, place.name) })
      expect(await git.state(place, place.from)).toMatchObject({ state: 'present' })
    })

    test('[G3] in which another program is at work is busy, and stays as it is', async () => {
      const { git, impatient, write, lock, read } = shared
      const place = await made()
      write(place.path, { 'n.txt': 'one\n' })
      const saved = await git.rescue(place, place.name)
      const letGo = lock(place.path)
      await refuses('busy', {
        add: () => impatient.add(place),
        remove: () => impatient.remove(place, place.name),
        restore: () => impatient.restore(place, saved?.ref as string, place.name),
      })
      expect(await git.state(place, place.from)).toMatchObject({ state: 'present', dirty: 1 })
      expect(read(place.path, 'n.txt')).toBe('one\n')
      letGo()
      expect(await impatient.remove(place, place.name)).toEqual({ rescue: saved })
    })

    test('[G12] differs from where it began by all that was done, committed or not', async () => {
      const { git, commit, write } = shared
      const place = await made()
      commit(place.path, { 'c.txt': 'committed\n' })
      write(place.path, { 'a.txt': 'changed\n', 'n.txt': 'one\ntwo\n', 'd.txt': null })
      const from = { from: place.from, bytes: 100_000 }
      const diff = await git.diff(place, from)
      expect(diff.files.map(({ path, status }) => `${status} ${path}`).sort()).toEqual(['A c.txt', 'A n.txt', 'D d.txt', 'M a.txt'])
      expect(diff.files.find(({ path }) => path === 'n.txt')).toEqual({ path: 'n.txt', from: null, status: 'A', added: 2, removed: 0 })
      expect(diff).toMatchObject({ cut: false, text: expect.stringContaining('+two\n') })
      expect((await git.diff(place, { ...from, at: `refs/heads/${place.branch}` })).files).toMatchObject([{ path: 'c.txt' }])
      expect((await git.diff(place, { ...from, path: 'n.txt' })).files).toMatchObject([{ path: 'n.txt' }])
      const short = await git.diff(place, { ...from, bytes: 150 })
      expect([short.cut, short.text.length <= 150, diff.text.startsWith(short.text), short.files]).toEqual([true, true, true, diff.files])
    })

    test('[G13] shows the files below it, and no others', async () => {
      const { git, write } = shared
      const place = await made()
      write(place.path, { 'a.txt': 'changed\n', 'n.txt': 'new\n' })
      expect(await git.file(place, 'n.txt', 2)).toEqual({ bytes: Buffer.from('ne'), size: 4, cut: true, commit: null })
      expect((await git.file(place, 'a.txt', 100))?.bytes.toString()).toBe('changed\n')
      expect((await git.file(place, 'a.txt', 100, `refs/heads/${place.branch}`))?.bytes.toString()).not.toBe('changed\n')
      for (const path of ['none', '', '.', '../x', `${place.path}/a.txt`, '.git']) {
        expect([path, await git.file(place, path, 100)]).toEqual([path, undefined])
        expect([path, await git.file(place, path, 100, `refs/heads/${place.branch}`)]).toEqual([path, undefined])
      }
      expect(await git.file(place, 'n.txt', 100, `refs/heads/${place.branch}`)).toBeUndefined()
    })
  })

  describe('where work begins', () => {
    test('[GM1] a branch is made from its base once, and never moved', async () => {
      const { git, another, top } = shared
      const [branch, line] = [fresh(), await target()]
      const head = await tip(line.target)
      const wanted = { repo: top, branch, base: line.target, strategy: 'local' as const }
      expect(await Promise.all([git.branch(wanted), another.branch(wanted)])).toEqual([{ head }, { head }])
      shared.commitOn(line.target, { 'n.txt': 'new\n' })
      expect(await git.branch(wanted)).toEqual({ head })
    })

    test('[G14] at the branch of the remote as it was last fetched, or at the local one, as the strategy says', async () => {
      const { git, top, fetched } = shared
      const begins = (base: string) =>
        Promise.all(
          (['remote', 'local_if_ahead', 'local'] as const).map(
            async (strategy) => (await git.branch({ repo: top, branch: fresh(), base, strategy })).head,
          ),
        )
      const line = await target()
      const base = line.target
      const here = await tip(base)
      expect(await begins(base)).toEqual([here, here, here])
      const { commit: there } = await work(line, { 'r.txt': 'by others\n' })
      fetched(base, there)
      expect(await begins(base)).toEqual([there, there, here])
      const ahead = fresh()
      fetched(ahead, here)
      await git.branch({ repo: top, branch: ahead, base: there, strategy: 'local' })
      expect(await begins(ahead)).toEqual([here, there, there])
      const own = shared.commitOn(base, { 'l.txt': 'diverged\n' })
      expect(await begins(base)).toEqual([there, there, own])
      expect(await begins(`refs/heads/${base}`)).toEqual([own, own, own])
      const only = fresh()
      fetched(only, there)
      expect(await begins(only)).toEqual([there, there, there])
    })

    test('[GL12] at what has landed for its base, unless that went its own way', async () => {
      const line = await target()
      const { commit } = await landed(line, { 'n.txt': 'new\n' })
      expect((await made({ base: line.target })).from).toBe(commit)
      const theirs = shared.commitOn(line.target, { 'p.txt': 'by a person\n' })
      expect((await made({ base: line.target })).from).toBe(theirs)
    })
  })

  describe('a line', () => {
    test('[GL1] begins at its target, once; of an epic it makes the branch, and makes it again', async () => {
      const { git, another, top, deleteBranch } = shared
      const line = await target()
      const head = await tip(line.target)
      const ready = { state: 'ready', head, moved: false }
      expect(await Promise.all([git.line(line), another.line(line)])).toEqual([ready, ready])
      const epic: LineOf = { repo: top, target: fresh(), base: line.target, strategy: 'local_if_ahead' }
      expect(await git.line(epic)).toEqual(ready)
      const { commit } = await landed(epic, { 'n.txt': 'new\n' })
      expect([await git.follow(epic), await tip(epic.target)]).toEqual([{ state: 'even' }, commit])
      deleteBranch(epic.target)
      expect(await git.line(epic)).toEqual({ ...ready, head: commit })
      expect([await tip(epic.target), await tip(line.target)]).toEqual([commit, head])
    })

    test('[GL1] of a target that was deleted is missing, until that is there again', async () => {
      const { git, top, deleteBranch } = shared
      const line = await target()
      const { commit, before } = await landed(line, { 'n.txt': 'new\n' })
      deleteBranch(line.target)
      await refuses('missing', { line: () => git.line(line), follow: () => git.follow(line) })
      expect(await git.land(line, commit, before, 'x')).toBe(false)
      await git.branch({ repo: top, branch: line.target, base: before, strategy: 'local' })
      expect(await git.line(line)).toEqual({ state: 'ready', head: commit, moved: false })
    })

    test('[GL3] [GL4] [GL7] [GL8] is built on, then moved, then followed, without .signalbox; each may be repeated', async () => {
      const { git, another, top, read } = shared
      const line = await target()
      const { name, commit } = await work(line, { 'n.txt': 'new\n', 'd.txt': null, '.signalbox/feedback/1.md': 'More.\n' })
      const at = await git.line(line)
      const wanted = building(line, commit, at.head, name)
      await git.build(wanted)
      const built = await git.build(wanted)
      if (built.result !== 'built') throw new Error(built.result)
      expect(built.commit).toMatch(FULL)
      expect([await git.line(line), await tip(line.target)]).toEqual([at, at.head])

      for (let times = 0; times < 2; times++) expect(await (times ? another : git).land(line, at.head, built.commit, name)).toBe(true)
      expect(await git.line(line)).toEqual({ state: 'ready', head: built.commit, moved: false })
      expect(await git.build({ ...wanted, onto: built.commit })).toEqual({ result: 'landed', commit: built.commit })
      expect(await tip(line.target)).toBe(at.head)

      for (let times = 0; times < 2; times++) expect(await git.follow(line)).toEqual({ state: 'even' })
      expect(await tip(line.target)).toBe(built.commit)
      expect(await tip(name)).toBe(commit)
      const { path } = await git.scratch(top, name, built.commit)
      expect(['n.txt', 'd.txt', '.signalbox/feedback/1.md'].map((file) => read(path, file))).toEqual(['new\n', undefined, undefined])
    })

    test('[GL5] [GL6] takes neither what it has nor what was changed on both sides', async () => {
      const { git } = shared
      const line = await target()
      const same = await work(line, { 'a.txt': 'ONE\n' })
      const other = await work(line, { 'a.txt': 'EINS\n', 'o.txt': 'o\n' })
      const { commit: head } = await landed(line, { 'a.txt': 'ONE\n' })
      expect(await git.build(building(line, same.commit, head, same.name))).toEqual({ result: 'nothing' })
      expect(await git.build(building(line, head, head, same.name))).toEqual({ result: 'nothing' })
      expect(await git.build(building(line, other.commit, head, other.name))).toEqual({ result: 'conflict', files: ['a.txt'] })
      expect(await git.line(line)).toEqual({ state: 'ready', head, moved: false })
    })

    test('[GL7] is moved from where it stands alone, and not past what somebody committed meanwhile', async () => {
      const { git } = shared
      const line = await target()
      const { name, commit } = await work(line, { 'x.txt': 'x\n' })
      const { head } = await git.line(line)
      const built = await git.build(building(line, commit, head, name))
      if (built.result !== 'built') throw new Error(built.result)
      const { commit: now } = await landed(line, { 'n.txt': 'new\n' })
      expect(await git.land(line, head, built.commit, name)).toBe(false)
      const again = await git.build(building(line, commit, now, name))
      if (again.result !== 'built') throw new Error(again.result)
      await git.follow(line)
      shared.commitOn(line.target, { 'p.txt': 'by a person\n' })
      expect(await git.land(line, now, again.commit, name)).toBe(false)
      expect(await git.line(line)).toMatchObject({ state: 'ready', moved: true })
    })

    test('[GL2] takes in what people committed on its target, or names the files that cannot be joined', async () => {
      const { git, top, read } = shared
      const line = await target()
      await git.line(line)
      const first = shared.commitOn(line.target, { 'p.txt': 'one\n' })
      expect(await git.line(line)).toEqual({ state: 'ready', head: first, moved: true })
      expect(await git.line(line)).toEqual({ state: 'ready', head: first, moved: false })

      const { name } = await landed(line, { 'n.txt': 'new\n' })
      shared.commitOn(line.target, { 'p.txt': 'two\n' })
      expect(await git.follow(line)).toMatchObject({ state: 'behind', by: 1, why: 'moved', at: null })
      const joined = await git.line(line)
      expect(joined).toMatchObject({ state: 'ready', moved: true })
      const { path } = await git.scratch(top, name, joined.head)
      expect([read(path, 'p.txt'), read(path, 'n.txt')]).toEqual(['two\n', 'new\n'])
      expect(await git.follow(line)).toEqual({ state: 'even' })
      expect(await tip(line.target)).toBe(joined.head)

      const { commit: head } = await landed(line, { 'a.txt': 'ONE\n' })
      const theirs = shared.commitOn(line.target, { 'a.txt': 'EINS\n' })
      const stuck = { state: 'apart', head, target: theirs, files: ['a.txt'] }
      expect([await git.line(line), await git.line(line)]).toEqual([stuck, stuck])
      expect(await git.follow(line)).toMatchObject({ state: 'behind', by: 1, why: 'apart', message: expect.stringContaining('a.txt') })
      expect(await tip(line.target)).toBe(theirs)
    })

    test('[GT4] [GL12] that somebody else moved is foreign, and is not followed; one that was deleted stands where it stood', async () => {
      const { git, moveLine } = shared
      const line = await target()
      const { commit, before } = await landed(line, { 'n.txt': 'new\n' })
      const { commit: theirs } = await work(line, { 'x.txt': 'not approved\n' })
      const known = { ...line, known: [commit] }
      const ready = { state: 'ready', head: commit, moved: false }
      expect(await git.line(known)).toEqual(ready)
      moveLine(line.target, theirs)
      expect(await git.line(known)).toEqual({ state: 'foreign', head: theirs })
      expect(await git.follow(known)).toMatchObject({ state: 'behind', by: 1, why: 'foreign', at: null })
      expect(await tip(line.target)).toBe(before)
      expect((await made({ base: line.target, line: commit })).from).toBe(commit)
      expect((await made({ base: line.target, line: null })).from).toBe(before)
      expect(await git.line({ ...line, known: [commit, theirs] })).toEqual({ ...ready, head: theirs })
      moveLine(line.target, null)
      expect(await git.follow(known)).toMatchObject({ state: 'behind', by: 1, why: 'foreign' })
      expect(await git.line(known)).toEqual(ready)
      expect(await git.follow(known)).toEqual({ state: 'even' })
    })

    test('[GT4] is ours with what people committed, told or not; an older commit of theirs is not', async () => {
      const { git, moveLine } = shared
      const line = await target()
      const { commit, before } = await landed(line, { 'n.txt': 'new\n' })
      const known = { ...line, known: [commit] }
      shared.commitOn(line.target, { 'p.txt': 'by a person\n' })
      const joined = await git.line(known)
      expect(joined).toMatchObject({ state: 'ready', moved: true })
      expect(await git.line(known)).toEqual(joined)
      expect(await git.line({ ...line, known: [joined.head] })).toEqual({ ...joined, moved: false })
      moveLine(line.target, before)
      expect(await git.line(known)).toEqual({ state: 'foreign', head: before })
    })

    test('[GT5] takes nothing that was shown from a commit which it does not have', async () => {
      const { git } = shared
      const line = await target()
      const hidden = await work(line, { 'h.txt': 'shown to nobody\n' })
      const shown = await work({ ...line, target: hidden.name }, { 'n.txt': 'new\n' })
      const { head } = await git.line(line)
      const wanted = building(line, shown.commit, head, shown.name)
      await refuses('failed', { build: () => git.build({ ...wanted, from: hidden.commit }) })
      expect(await git.build({ ...wanted, from: head })).toMatchObject({ result: 'built' })
    })

    test('[GT6] keeps what was handed in, wherever its branch goes, until it has landed', async () => {
      const ground = alone()
      const { git, top, deleteBranch, collect } = ground
      const line: LineOf = { repo: top, target: 'main', strategy: 'local' }
      const handIn = async (files: Changes) => {
        const done = await work(line, files, ground)
        for (let times = 0; times < 2; times++) await git.keep(top, done.name, done.commit)
        deleteBranch(done.name)
        collect()
        expect(await git.has(top, done.commit)).toBe(true)
        return done
      }
      const given = await handIn({ 'n.txt': 'new\n' })
      for (let times = 0; times < 2; times++) await git.keep(top, given.name, null)
      const lands = await handIn({ 'm.txt': 'new\n' })
      const { head } = await git.line(line)
      const built = await git.build(building(line, lands.commit, head, lands.name))
      collect()
      if (built.result !== 'built') throw new Error(built.result)
      expect(await git.land(line, head, built.commit, lands.name)).toBe(true)
      collect()
      const there = [given.commit, lands.commit, built.commit].map((commit) => git.has(top, commit))
      expect(await Promise.all(there)).toEqual([false, false, true])
    })

    test('[GL9] [GL10] [GL11] is followed in a clean checkout; what is changed or in the way there keeps it behind', async () => {
      const ground = alone()
      const { git, top, write, read } = ground
      const line: LineOf = { repo: top, target: 'main', strategy: 'local' }
      const { commit, before } = await landed(line, { 'a.txt': 'ONE\n', 'n.txt': 'new\n' }, ground)
      const behind = { state: 'behind', by: 1, at: top }
      const [a, d] = [read(top, 'a.txt') as string, read(top, 'd.txt') as string]
      write(top, { 'd.txt': 'changed\n' })
      expect(await git.follow(line)).toMatchObject({ ...behind, why: 'dirty', message: expect.stringContaining('d.txt') })
      write(top, { 'd.txt': d, 'n.txt': 'mine\n' })
      expect(await git.follow(line)).toMatchObject({ ...behind, why: 'in_the_way', message: expect.stringContaining('n.txt') })
      expect([read(top, 'a.txt'), read(top, 'n.txt'), (await git.inspect(top))?.head]).toEqual([a, 'mine\n', before])
      write(top, { 'n.txt': null, 'u.txt': 'untracked\n' })
      expect(await git.follow(line)).toEqual({ state: 'even' })
      expect(['a.txt', 'n.txt', 'u.txt'].map((file) => read(top, file))).toEqual(['ONE\n', 'new\n', 'untracked\n'])
      expect((await git.inspect(top))?.head).toBe(commit)
    })
  })

  describe('a scratch checkout', () => {
    test('[GL13] is that commit and nothing else, each time; it may be dropped twice', async () => {
      const { git, top, commit, write, read } = shared
      const place = await made()
      const second = commit(place.path, { 'n.txt': 'new\n', 'd.txt': null })
      const { path } = await git.scratch(top, place.name, place.from)
      const text = read(path, 'a.txt')
      expect([text === undefined, read(path, 'n.txt')]).toEqual([false, undefined])
      write(path, { 'a.txt': 'left\n', 'u.txt': 'left\n' })
      expect(await git.scratch(top, place.name, second)).toEqual({ path })
      expect(['a.txt', 'd.txt', 'n.txt', 'u.txt'].map((file) => read(path, file))).toEqual([text, undefined, 'new\n', undefined])
      expect(await tip('main')).toBe(place.from)
      for (let times = 0; times < 2; times++) await git.dropScratch(top, place.name)
      expect(read(path, 'a.txt')).toBeUndefined()
    })
  })

  describe('a delivery', () => {
    const delivery = (name: string): Delivery => ({
      path: '.signalbox/feedback/1.md',
      text: 'More.\n',
      message: 'Feedback',
      trailers: { 'Signalbox-Feedback': name },
    })

    test('[GD1] [GD2] is one commit with one file, once; what else is changed stays as it is', async () => {
      const { git, commit, write, read } = shared
      const place = await made()
      write(place.path, { 'a.txt': 'changed\n', 'u.txt': 'untracked\n' })
      const done = await git.deliver(place, delivery(place.name))
      expect(await git.state(place, place.from)).toMatchObject({ head: done.commit, ahead: 1, dirty: 2 })
      expect(read(place.path, '.signalbox/feedback/1.md')).toBe('More.\n')
      expect((await git.diff(place, { from: place.from, at: `refs/heads/${place.branch}`, bytes: 100 })).files).toMatchObject([
        { path: '.signalbox/feedback/1.md', status: 'A' },
      ])
      const head = commit(place.path, { '.signalbox/feedback/1.md': null })
      expect(await git.deliver(place, delivery(place.name))).toEqual(done)
      expect(await git.state(place, place.from)).toMatchObject({ head, ahead: 2, dirty: 0 })
    })

    test('[GD3] goes to the branch alone where the place is gone, and to none that is in use elsewhere', async () => {
      const { git, impatient, detach, lock, read } = shared
      const [gone, away, held] = [await made(), await made(), await made()]
      await git.remove(gone, gone.name)
      const { commit } = await git.deliver(gone, delivery(gone.name))
      expect(await git.state(gone, gone.from)).toMatchObject({ state: 'missing', head: commit, ahead: 1 })
      detach(away.path)
      const letGo = lock(held.path)
      await refuses('busy', {
        detached: () => git.deliver(away, delivery(away.name)),
        locked: () => impatient.deliver(held, delivery(held.name)),
      })
      letGo()
      expect([await tip(away.branch), await tip(held.branch)]).toEqual([away.from, held.from])
      for (const path of ['x', '../x', 'a/../../b', '/etc/x', '.git/config', 'a/b c', '-x/\0'])
        await refuses('invalid', { [path]: () => git.deliver(held, { ...delivery(held.name), path }) })
      expect(read(away.path, '.signalbox/feedback/1.md')).toBeUndefined()
    })
  })

  describe('a rebase', () => {
    /** Two commits of work, and something that landed after they were begun. */
    const behind = async (files: Changes = { 'e.txt': 'E\n' }) => {
      const line = await target()
      const place = await made({ base: line.target })
      shared.commit(place.path, { 'w.txt': 'w\n' })
      const head = shared.commit(place.path, files)
      const { commit: onto } = await landed(line, { 'a.txt': 'ONE\n', 'n.txt': 'new\n' })
      return { line, place, head, onto }
    }
    const saved = (place: Place & { name: string }) => shared.git.rescues(shared.top, place.name)

    test('[GR1] has its own commits on top of what landed, once, and where it was is saved', async () => {
      const { git, write, read } = shared
      const { line, place, onto } = await behind()
      write(place.path, { 'u.txt': 'untracked\n' })
      const done = await git.rebase(place, onto, place.name)
      if (done.result !== 'rebased') throw new Error(done.result)
      expect(await git.state(place, onto)).toMatchObject({ state: 'present', head: done.head, ahead: 2, dirty: 1 })
      expect(['w.txt', 'n.txt', 'u.txt'].map((file) => read(place.path, file))).toEqual(['w\n', 'new\n', 'untracked\n'])
      expect(await saved(place)).toMatchObject([{ branch: place.branch }])
      expect(await git.rebase(place, onto, place.name)).toEqual({ result: 'even', head: done.head })
      expect(await saved(place)).toHaveLength(1)
      const follows = `refs/signalbox/line/${line.target}`
      const { files } = await git.diff(place, { from: place.from, follows, at: `refs/heads/${place.branch}`, bytes: 100 })
      expect(files.map(({ path }) => path).sort()).toEqual(['e.txt', 'w.txt'])
    })

    test('[GR1] goes to the branch alone where the place is gone', async () => {
      const { git, read } = shared
      const { place, onto } = await behind()
      await git.remove(place, place.name)
      expect(await git.rebase(place, onto, place.name)).toMatchObject({ result: 'rebased' })
      expect(await git.state(place, onto)).toMatchObject({ state: 'missing', ahead: 2 })
      expect(read(place.path, 'w.txt')).toBeUndefined()
    })

    test('[GR2] names the files of a conflict; that, changes, a file in the way and no branch there move nothing', async () => {
      const { git, write, detach } = shared
      const { place, head, onto } = await behind({ 'a.txt': 'EINS\n' })
      const stays = async (dirty: number) => {
        expect(await git.state(place, place.from)).toMatchObject({ state: 'present', head, ahead: 2, dirty })
        expect(await tip(place.branch)).toBe(head)
      }
      expect(await git.rebase(place, onto, place.name)).toEqual({ result: 'conflict', files: ['a.txt'] })
      await stays(0)
      write(place.path, { 'w.txt': 'changed\n' })
      await refuses('failed', { changed: () => git.rebase(place, onto, place.name) })
      await stays(1)
      write(place.path, { 'w.txt': 'w\n' })
      detach(place.path)
      await refuses('busy', { detached: () => git.rebase(place, onto, place.name) })
      await stays(0)
      expect(await saved(place)).toEqual([])
      const other = await behind()
      write(other.place.path, { 'n.txt': 'in the way\n' })
      await refuses('failed', { 'in the way': () => git.rebase(other.place, other.onto, other.place.name) })
      expect(await git.state(other.place, other.place.from)).toMatchObject({ head: other.head, dirty: 1 })
    })
  })
}
