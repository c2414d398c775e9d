/** Whole texts by their paths. */
export type Files = Record<string, string>
/** null: the file is deleted. */
export type Changes = Record<string, string | null>

interface Commit {
  parents: string[]
  files: Files
  trailers: Record<string, string>
}

interface Checkout {
  /** A ref in full, or a commit: then it is detached. */
  head: string
  files: Files
  /** Another program is at work in it. */
  locked?: boolean
  /** There is a repository inside with work that only it has. */
  nested?: boolean
}

/** Commits, refs and checkouts in memory. A file is changed as a whole: nothing is merged inside of one. */
export class FakeRepository {
  readonly refs = new Map<string, string>()
  readonly checkouts = new Map<string, Checkout>()
  /** What others put where a checkout would be. */
  readonly occupied = new Map<string, Files>()
  readonly #commits = new Map<string, Commit>()
  #made = 0

  constructor(
    readonly top: string,
    files: Files,
  ) {
    this.refs.set('refs/heads/main', this.make(files, []))
    this.checkOut(top, 'refs/heads/main')
  }

  make(files: Files, parents: string[], trailers: Record<string, string> = {}): string {
    const id = (++this.#made).toString(16).padStart(40, '0')
    this.#commits.set(id, { files, parents, trailers })
    return id
  }

  /** By a ref in full, or by its own id. */
  find(name: string): string | undefined {
    return this.refs.get(name) ?? (this.#commits.has(name) ? name : undefined)
  }

  /** Forgets every commit that neither a ref nor a checkout leads to. */
  collect(): void {
    const heads = [...this.refs.values(), ...[...this.checkouts.values()].map((checkout) => this.headAt(checkout))]
    const kept = new Set(heads.flatMap((head) => [...this.#history(head)]))
    for (const id of this.#commits.keys()) if (!kept.has(id)) this.#commits.delete(id)
  }

  filesOf(commit: string): Files {
    return this.#of(commit).files
  }

  parentsOf(commit: string): string[] {
    return this.#of(commit).parents
  }

  /** What `newer` has and `older` has not, newest first. */
  since(older: string | undefined, newer: string): string[] {
    const known = older ? this.#history(older) : new Set()
    return [...this.#history(newer)].filter((commit) => !known.has(commit))
  }

  isAncestor(older: string, newer: string): boolean {
    return this.#history(newer).has(older)
  }

  common(one: string, other: string): string | undefined {
    const known = this.#history(one)
    return [...this.#history(other)].find((commit) => known.has(commit))
  }

  /** Which of these have all of the trailers. */
  withTrailers(commits: string[], wanted: Record<string, string>): string[] {
    return commits.filter((commit) => Object.entries(wanted).every(([name, value]) => this.#of(commit).trailers[name] === value))
  }

  checkOut(path: string, head: string): void {
    this.checkouts.set(path, { head, files: { ...this.filesOf(this.find(head) as string) } })
  }

  /** As somebody does who works there. */
  write(path: string, changes: Changes): Checkout {
    const checkout = this.checkouts.get(path)
    if (!checkout) throw new Error(`there is no checkout at ${path}`)
    checkout.files = changedBy(checkout.files, changes)
    return checkout
  }

  /** With everything else that is changed there. */
  commit(path: string, changes: Changes): string {
    const checkout = this.write(path, changes)
    const made = this.make({ ...checkout.files }, [this.headAt(checkout)])
    if (this.refs.has(checkout.head)) this.refs.set(checkout.head, made)
    else checkout.head = made
    return made
  }

  headAt(checkout: Checkout): string {
    return this.find(checkout.head) as string
  }

  /** Paths that differ from what was committed last: of files that git knows, or of all. */
  changed(checkout: Checkout, which: 'tracked' | 'all' = 'all'): string[] {
    const committed = this.filesOf(this.headAt(checkout))
    const tracked = (path: string) => committed[path] !== undefined
    return differing(committed, checkout.files).filter((path) => which === 'all' || tracked(path))
  }

  /** Files that git does not know, where a commit has one of its own. */
  inTheWay(checkout: Checkout, commit: string): string[] {
    const [known, wanted] = [this.filesOf(this.headAt(checkout)), this.filesOf(commit)]
    return Object.keys(checkout.files).filter((path) => known[path] === undefined && wanted[path] !== undefined)
  }

  /** A branch, and the checkout that is on it: what git does not know there stays. */
  move(ref: string, commit: string, checkout?: Checkout): void {
    if (checkout) {
      const known = this.filesOf(this.headAt(checkout))
      const unknown = Object.entries(checkout.files).filter(([path]) => known[path] === undefined)
      checkout.files = { ...this.filesOf(commit), ...Object.fromEntries(unknown) }
    }
    this.refs.set(ref, commit)
  }

  #of(commit: string): Commit {
    const found = this.#commits.get(commit)
    if (!found) throw new Error(`there is no commit ${commit}`)
    return found
  }

  #history(commit: string): Set<string> {
    const seen = new Set([commit])
    for (const one of seen) for (const parent of this.#of(one).parents) seen.add(parent)
    return seen
  }
}

export function changedBy(files: Files, changes: Changes): Files {
  const all = Object.entries({ ...files, ...changes })
  return Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== null))
}

export function differing(before: Files, after: Files): string[] {
  const paths = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...paths].filter((path) => before[path] !== after[path]).sort()
}

/** Files that were changed on both sides, not to the same, are a conflict. */
export function merged(base: Files, ours: Files, theirs: Files): { files: Files } | { conflict: string[] } {
  const wanted = differing(base, theirs).filter((path) => ours[path] !== theirs[path])
  const conflict = wanted.filter((path) => ours[path] !== base[path])
  if (conflict.length) return { conflict }
  return { files: changedBy(ours, Object.fromEntries(wanted.map((path) => [path, theirs[path] ?? null]))) }
}
