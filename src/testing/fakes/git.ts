import {
  checkBranch,
  checkCommit,
  checkDelivered,
  checkLine,
  checkNewBranch,
  checkPlace,
  checkRescue,
  checkRevision,
  checkWord,
  isRefOrCommit,
  placeUnder,
  rescuesUnder,
  scratchUnder,
} from '../../adapters/git-cli/names.ts'
import {
  type Build,
  type Built,
  type Delivery,
  type Diff,
  type DiffRequest,
  type FileText,
  type Followed,
  type Git,
  GitRefusal,
  type LineHead,
  type LineOf,
  type NewBranch,
  type NewPlace,
  type Place,
  type PlaceName,
  type Rebased,
  type RepoFacts,
  type Rescue,
  type WorkState,
} from '../../ports/git.ts'
import { differing, FakeRepository, type Files, merged } from './repository.ts'

const ROOT = '/worktrees'
const head = (branch: string) => `refs/heads/${branch}`
const keptRef = (name: string) => `refs/signalbox/build/${name}`
const handedInRef = (name: string) => `refs/signalbox/handed-in/${name}`
const lineRef = (target: string) => `refs/signalbox/line/${target}`

const topName = (path: string) => path.split('/')[0] as string

/** One repository in memory, that keeps what the port promises. */
export class FakeGit implements Git {
  readonly repo = new FakeRepository('/repo', { 'AGENTS.md': 'x', 'a.txt': 'one\n', 'd.txt': 'gone soon\n' })
  /** What every look at a place says, whatever is there. */
  work: Partial<WorkState> = {}
  /** Paths of the places that were made, in that order. */
  readonly added: string[] = []
  readonly #rescues: Rescue[] = []
  readonly #ids = new WeakMap<object, string>()
  #made = 0

  get branches(): string[] {
    return [...this.repo.refs.keys()].flatMap((ref) => (ref.startsWith(head('')) ? [ref.slice(head('').length)] : []))
  }

  async inspect(path: string): Promise<RepoFacts | undefined> {
    if (path !== this.repo.top) return undefined
    const at = this.#tips('main')
    return { top: path, branch: 'main', branches: this.branches, remote: null, head: at.local ?? null }
  }

  async has(repo: string, commit: string): Promise<boolean> {
    this.#open(repo)
    return this.repo.find(checkCommit(commit)) !== undefined
  }

  async moved(repo: string): Promise<void> {
    this.#open(repo)
  }

  placeFor(name: PlaceName): string {
    return placeUnder(ROOT, name)
  }

  async add(place: NewPlace) {
    const { checkout } = this.#at(place)
    const base = this.#begin(place)
    if (checkout) requireFree(place, checkout)
    else {
      this.repo.checkOut(place.path, head(place.branch))
      this.added.push(place.path)
    }
    return { base, head: this.repo.headAt(this.#present(place)) }
  }

  async state(place: Place, from: string): Promise<WorkState> {
    checkRevision(from)
    const { state, checkout } = this.#look(place)
    const at = checkout ? this.repo.headAt(checkout) : this.repo.find(head(place.branch))
    const changed = checkout ? this.repo.changed(checkout) : []
    return {
      state,
      head: at ?? null,
      ahead: at ? this.repo.since(this.#commit(from), at).length : 0,
      dirty: changed.length,
      fingerprint: JSON.stringify([at, changed.map((path) => [path, checkout?.files[path]])]),
      ...this.work,
    }
  }

  async remove(place: Place, rescueAs: string) {
    rescuesUnder(rescueAs)
    const { checkout } = this.#at(place)
    if (!checkout) return { rescue: undefined }
    requireFree(place, checkout)
    if (checkout.nested) throw new GitRefusal('unsaved', `A repository in ${place.path} has work that only it has.`)
    const rescue = this.#save(place, rescueAs)
    this.repo.checkouts.delete(place.path)
    return { rescue }
  }

  async diff(place: Place, request: DiffRequest): Promise<Diff> {
    checkRevision(request.from)
    const { checkout } = this.#at(place)
    const there = request.at === undefined ? checkout : undefined
    const at = there ? this.repo.headAt(there) : this.#commit(request.at ?? head(place.branch))
    const followed = request.follows && this.repo.find(request.follows)
    const base = this.repo.filesOf((followed && this.repo.common(followed, at)) || this.#commit(request.from))
    const shown = there ? { commit: null, tip: null } : { commit: at, tip: this.repo.find(head(place.branch)) ?? null }
    return { ...diffOf(base, there?.files ?? this.repo.filesOf(at), request), ...shown }
  }

  async file(place: Place, path: string, bytes: number, at?: string): Promise<FileText | undefined> {
    const { checkout } = this.#look(place)
    const commit = at === undefined ? undefined : this.repo.find(at)
    const files = at === undefined ? checkout?.files : commit ? this.repo.filesOf(commit) : undefined
    const text = files?.[path]
    if (text === undefined) return undefined
    const all = Buffer.from(text)
    return { bytes: all.subarray(0, bytes), size: all.length, cut: all.length > bytes, commit: commit ?? null }
  }

  async rescue(place: Place, as: string) {
    rescuesUnder(as)
    this.#present(place)
    return this.#save(place, as)
  }

  async rescues(repo: string, under: string) {
    this.#open(repo)
    return this.#saved(under)
  }

  async restore(place: Place, ref: string, rescueAs: string) {
    rescuesUnder(rescueAs)
    const checkout = this.#present(place)
    requireFree(place, checkout)
    const files = this.repo.filesOf(this.#commit(checkRescue(ref)))
    if (differing(files, checkout.files).length === 0) return { rescue: undefined }
    const rescue = this.#save(place, rescueAs)
    checkout.files = { ...files }
    return { rescue }
  }

  async branch(wanted: NewBranch) {
    checkNewBranch(wanted)
    this.#open(wanted.repo)
    const ref = head(wanted.branch)
    const made = this.repo.find(ref) ?? this.#base(wanted)
    this.repo.refs.set(ref, made)
    return { head: made }
  }

  async line(of: LineOf): Promise<LineHead> {
    this.#line(of)
    const first = this.#tips(of.target)
    if (first.line && of.known && !this.#isOurs(of.known, first.line, this.#people(of))) return { state: 'foreign', head: first.line }
    const told = of.known?.[0] && this.repo.find(of.known[0])
    const begun = first.line ?? (told || first.local) ?? (of.base ? this.#base({ base: of.base, strategy: of.strategy }) : first.remote)
    if (!begun || (!first.local && !first.remote && !of.base)) throw missing(`the branch ${of.target}`)
    this.repo.refs.set(lineRef(of.target), begun)
    if (!first.local && of.base) this.repo.refs.set(head(of.target), begun)
    let at = begun
    for (const theirs of this.#people(of)) {
      if (this.repo.isAncestor(theirs, at)) continue
      const joined = this.#merged(at, theirs)
      if ('conflict' in joined) return { state: 'apart', head: begun, target: theirs, files: joined.conflict }
      at = this.repo.isAncestor(at, theirs) ? theirs : this.repo.make(joined.files, [at, theirs])
    }
    this.repo.refs.set(lineRef(of.target), at)
    return { state: 'ready', head: at, moved: !(of.known ?? [begun]).includes(at) }
  }

  async keep(repo: string, name: string, commit: string | null) {
    checkWord(name)
    if (commit !== null) checkCommit(commit)
    this.#open(repo)
    if (commit === null) this.repo.refs.delete(handedInRef(name))
    else this.repo.refs.set(handedInRef(name), this.#commit(commit))
  }

  async build({ line, commit, onto, from, trailers, keep, method }: Build): Promise<Built> {
    this.#line(line)
    for (const id of [commit, onto]) this.#commit(checkCommit(id))
    if (from !== undefined) checkCommit(from)
    checkWord(keep)
    const [before] = this.repo.withTrailers(this.repo.since(commit, onto), trailers)
    if (before) return { result: 'landed', commit: before }
    if (from !== undefined && !this.repo.isAncestor(from, onto)) throw new GitRefusal('failed', `What ${from} brings was shown to nobody.`)
    const done = this.#merged(onto, commit, ours)
    if ('conflict' in done) return { result: 'conflict', files: done.conflict }
    if (differing(done.files, this.repo.filesOf(onto)).length === 0) return { result: 'nothing' }
    const built = this.repo.make(done.files, method === 'merge' ? [onto, commit] : [onto], trailers)
    this.repo.refs.set(keptRef(keep), built)
    return { result: 'built', commit: built }
  }

  async land(of: LineOf, from: string, to: string, keep: string) {
    this.#line(of)
    for (const id of [from, to]) checkCommit(id)
    checkWord(keep)
    const { line, local, remote } = this.#tips(of.target)
    if (line !== from) return line !== undefined && this.repo.isAncestor(to, line)
    if (local ? !this.repo.isAncestor(local, from) : !of.base && !remote) return false
    this.repo.refs.set(lineRef(of.target), to)
    for (const ref of [keptRef(keep), handedInRef(keep)]) this.repo.refs.delete(ref)
    return true
  }

  async follow(of: LineOf): Promise<Followed> {
    this.#line(of)
    const { line, local } = this.#tips(of.target)
    const [told] = of.known ?? []
    if (of.known && !(line && of.known.includes(line))) {
      const by = told && this.repo.find(told) ? this.repo.since(local, told).length : 1
      return { state: 'behind', by, why: 'foreign', at: null, message: `The line of ${of.target} does not stand where it was put.` }
    }
    if (!line || line === local) return { state: 'even' }
    if (!local && !of.base) throw missing(`the branch ${of.target}`)
    const [at, checkout] = [...this.repo.checkouts].find(([, one]) => one.head === head(of.target)) ?? [null, undefined]
    const by = this.repo.since(local, line).length
    const behind = (why: Extract<Followed, { state: 'behind' }>['why'], files: string[] = []): Followed => ({
      state: 'behind',
      by,
      why,
      at,
      message: `${of.target} is behind: ${[why, ...files].join(' ')}`,
    })
    if (local && !this.repo.isAncestor(local, line)) {
      const joined = this.#merged(line, local)
      return 'conflict' in joined ? behind('apart', joined.conflict) : behind('moved')
    }
    if (checkout?.locked) return behind('busy')
    const dirty = checkout ? this.repo.changed(checkout, 'tracked') : []
    if (dirty.length) return behind('dirty', dirty)
    const inTheWay = checkout ? this.repo.inTheWay(checkout, line) : []
    if (inTheWay.length) return behind('in_the_way', inTheWay)
    this.repo.move(head(of.target), line, checkout)
    return { state: 'even' }
  }

  async scratch(repo: string, name: string, commit: string) {
    const path = scratchUnder(ROOT, repo, name)
    this.#open(repo)
    this.repo.checkOut(path, this.#commit(checkCommit(commit)))
    return { path }
  }

  async idOf(path: string) {
    const checkout = this.repo.checkouts.get(path)
    if (!checkout) throw missing(`a checkout at ${path}`)
    const known = this.#ids.get(checkout) ?? String(++this.#made)
    this.#ids.set(checkout, known)
    return known
  }

  async bring(): Promise<string[]> {
    return []
  }

  async filesOf(repo: string, commit: string) {
    this.#open(repo)
    return Object.entries(this.repo.filesOf(this.#commit(checkCommit(commit)))).map(([path, text]) => ({ path, id: String(text) }))
  }

  /** Nothing is ignored here. */
  async extras(repo: string, path: string) {
    this.#open(repo)
    const checkout = this.repo.checkouts.get(path)
    if (!checkout) throw new GitRefusal('foreign', `There is no checkout at ${path}.`)
    const committed = this.repo.filesOf(this.repo.headAt(checkout))
    const untracked = Object.keys(checkout.files).filter((file) => committed[file] === undefined)
    const changed = Object.keys(committed).filter((file) => checkout.files[file] !== committed[file])
    return { ignored: [], untracked: [...new Set(untracked.map((file) => topName(file)))], changed }
  }

  async textOf(repo: string, commit: string, path: string, mostBytes: number) {
    this.#open(repo)
    const text = this.repo.filesOf(this.#commit(checkCommit(commit)))[path]
    return text === undefined || Buffer.byteLength(text) > mostBytes ? undefined : text
  }

  async ignoredIn(repo: string) {
    this.#open(repo)
    return []
  }

  async ignoredTexts(repo: string) {
    this.#open(repo)
    return []
  }

  async topOf(repo: string, commit: string) {
    this.#open(repo)
    return [...new Set(Object.keys(this.repo.filesOf(this.#commit(checkCommit(commit)))).map(topName))].sort()
  }

  async dropScratch(repo: string, name: string) {
    this.repo.checkouts.delete(scratchUnder(ROOT, repo, name))
  }

  async deliver(place: Place, { path, text, trailers }: Delivery) {
    checkDelivered(path)
    const ref = head(place.branch)
    const { checkout } = this.#at(place)
    const at = this.#commit(ref)
    const [before] = this.repo.withTrailers(this.repo.since(undefined, at), trailers)
    if (before) return { commit: before }
    requireOn(place, checkout)
    if (checkout) {
      requireFree(place, checkout)
      checkout.files[path] = text
    }
    const commit = this.repo.make({ ...this.repo.filesOf(at), [path]: text }, [at], trailers)
    this.repo.refs.set(ref, commit)
    return { commit }
  }

  async rebase(place: Place, onto: string, rescueAs: string): Promise<Rebased> {
    checkCommit(onto)
    rescuesUnder(rescueAs)
    const { checkout } = this.#at(place)
    const at = this.#commit(head(place.branch))
    requireOn(place, checkout)
    if (checkout && this.repo.changed(checkout, 'tracked').length)
      throw new GitRefusal('failed', `Something is not committed in ${place.path}.`)
    if (this.repo.isAncestor(onto, at)) return { result: 'even', head: at }
    let made = onto
    for (const commit of this.repo.since(onto, at).reverse()) {
      const parent = this.repo.filesOf(this.repo.parentsOf(commit)[0] as string)
      const done = merged(parent, this.repo.filesOf(made), this.repo.filesOf(commit))
      if ('conflict' in done) return { result: 'conflict', files: done.conflict }
      made = this.repo.make(done.files, [made])
    }
    if (checkout && this.repo.inTheWay(checkout, made).length) throw new GitRefusal('failed', `In ${place.path}, something is in the way.`)
    this.#keep(this.repo.filesOf(at), [at], place.branch, rescueAs)
    this.repo.move(head(place.branch), made, checkout)
    return { result: 'rebased', head: made }
  }

  async size({ path }: Place) {
    return Object.values(this.repo.checkouts.get(path)?.files ?? {}).join('').length
  }

  #open(repo: string): void {
    if (repo !== this.repo.top) throw missing(`a git repository at ${repo}`)
  }

  #line(of: LineOf): void {
    checkLine(of)
    this.#open(of.repo)
  }

  #commit(name: string): string {
    const found = this.repo.find(name)
    if (!found) throw missing(name)
    return found
  }

  #look(place: Place) {
    checkPlace(ROOT, place)
    this.#open(place.repo)
    const checkout = this.repo.checkouts.get(place.path)
    const state = this.repo.occupied.has(place.path) ? ('foreign' as const) : checkout ? ('present' as const) : ('missing' as const)
    return { state, checkout }
  }

  #at(place: Place) {
    const found = this.#look(place)
    if (found.state === 'foreign') throw new GitRefusal('foreign', `${place.path} is there, but is no worktree of ${place.repo}.`)
    return found
  }

  #present(place: Place) {
    const { checkout } = this.#at(place)
    if (!checkout) throw missing(`a worktree at ${place.path}`)
    return checkout
  }

  #tips(branch: string) {
    const [local, remote, line] = [head(branch), `refs/remotes/origin/${branch}`, lineRef(branch)].map((ref) => this.repo.find(ref))
    return { local, remote, line }
  }

  /** What people have put where the line of a branch takes it in from. */
  #people({ target, strategy }: LineOf): string[] {
    const { local, remote } = this.#tips(target)
    return (strategy === 'local' && local ? [local] : [local, remote]).filter((tip) => tip !== undefined)
  }

  /** Whether a line got there from where it is known to be, by what people committed and nothing else. */
  #isOurs(known: string[], at: string, people: string[]): boolean {
    const isTheirs = (commit: string) => people.some((tip) => this.repo.isAncestor(commit, tip))
    if (known.includes(at)) return true
    const there = known.filter((commit) => this.repo.find(commit))
    if (isTheirs(at)) return there.length === 0 || there.some((commit) => this.repo.isAncestor(commit, at))
    const [first, second] = this.repo.parentsOf(at)
    if (!first || !second || !isTheirs(second)) return false
    const again = this.#merged(first, second)
    if ('conflict' in again || differing(again.files, this.repo.filesOf(at)).length) return false
    return this.#isOurs(known, first, people)
  }

  #base({ base, strategy, line: told }: Pick<NewPlace, 'base' | 'strategy' | 'line'>): string {
    if (isRefOrCommit(base)) return this.#commit(base)
    const { local, remote, line: found } = this.#tips(checkBranch(base))
    const line = told === undefined ? found : (told ?? undefined)
    const localFirst = strategy === 'local' || (strategy === 'local_if_ahead' && local && remote && this.repo.isAncestor(remote, local))
    const chosen = localFirst ? (local ?? remote) : (remote ?? local)
    if (!chosen) throw missing(`the branch ${base}`)
    return line && this.repo.isAncestor(chosen, line) ? line : chosen
  }

  /** Where the branch of a place began; made there when it is not. */
  #begin(place: NewPlace): string {
    const [ref, beginning] = [head(place.branch), `refs/signalbox/base/${place.branch}`]
    const branch = this.repo.find(ref)
    const known = branch && this.repo.find(beginning)
    if (known) return known
    const base = this.#base(place)
    if (branch) return this.repo.common(base, branch) ?? base
    this.repo.refs.set(ref, base).set(beginning, base)
    return base
  }

  /** `theirs` on top of `onto`, as `seen` has them both. */
  #merged(onto: string, theirs: string, seen = (files: Files, _onto: Files) => files) {
    const common = this.repo.common(onto, theirs)
    const files = this.repo.filesOf(onto)
    return merged(common ? seen(this.repo.filesOf(common), files) : {}, files, seen(this.repo.filesOf(theirs), files))
  }

  #save(place: Place, as: string): Rescue | undefined {
    const checkout = this.#present(place)
    if (this.repo.changed(checkout).length === 0) return undefined
    return this.#keep({ ...checkout.files }, [this.repo.headAt(checkout)], place.branch, as)
  }

  #saved(as: string): Rescue[] {
    const under = `${rescuesUnder(as)}/`
    return this.#rescues.filter(({ ref }) => ref.startsWith(under)).reverse()
  }

  #keep(files: Files, parents: string[], branch: string, as: string): Rescue {
    const [newest] = this.#saved(as)
    const isSame = newest && differing(this.repo.filesOf(newest.commit), files).length === 0
    if (isSame && this.repo.parentsOf(newest.commit).join() === parents.join()) return newest
    const at = Math.max(Date.now(), (newest?.at ?? 0) + 1)
    const rescue = { ref: `${rescuesUnder(as)}/${at}`, commit: this.repo.make(files, parents), at, branch }
    this.repo.refs.set(rescue.ref, rescue.commit)
    this.#rescues.push(rescue)
    return rescue
  }
}

/** `.signalbox/` as `onto` has it. */
function ours(files: Files, onto: Files): Files {
  const isOurs = ([path]: [string, string]) => path.startsWith('.signalbox/')
  const others = Object.entries(files).filter((entry) => !isOurs(entry))
  return Object.fromEntries([...others, ...Object.entries(onto).filter(isOurs)])
}

function diffOf(before: Files, after: Files, { path, bytes }: DiffRequest): Pick<Diff, 'files' | 'text' | 'cut'> {
  const asked = differing(before, after).filter((one) => path === undefined || one === path || one.startsWith(`${path}/`))
  const lines = (text = '') => text.split('\n').slice(0, -1)
  const changes = asked.map((one) => {
    const [old, now] = [lines(before[one]), lines(after[one])]
    const status = before[one] === undefined ? 'A' : after[one] === undefined ? 'D' : 'M'
    const text = [`diff --git a/${one} b/${one}`, ...old.map((line) => `-${line}`), ...now.map((line) => `+${line}`), ''].join('\n')
    return { file: { path: one, from: null, status, added: now.length, removed: old.length }, text }
  })
  const all = changes.map(({ text }) => text).join('')
  const text = all.length > bytes ? all.slice(0, all.lastIndexOf('\n', bytes - 1) + 1) : all
  return { files: changes.map(({ file }) => file), text, cut: text !== all }
}

function requireFree({ path }: Place, checkout: { locked?: boolean }): void {
  if (checkout.locked) throw new GitRefusal('busy', `Another program is at work in ${path}.`)
}

function requireOn({ path, branch }: Place, checkout: { head: string } | undefined): void {
  if (checkout && checkout.head !== head(branch)) throw new GitRefusal('busy', `${path} is not on ${branch} now.`)
}

function missing(what: string): GitRefusal {
  return new GitRefusal('missing', `There is no such thing: ${what}.`)
}
