import { GitRefusal, type Place, type Rescue } from '../../ports/git.ts'
import { rescuesUnder } from './names.ts'
import { commitAt, openRepo } from './repo.ts'
import type { At, Open, Repo } from './run.ts'
import { type Snapshot, snapshot } from './tree.ts'

const FIELDS = '%(refname)%00%(objectname)%00%(tree)%00%(parent)%00%(contents:subject)'
const SUBJECT = 'rescue of '
/** What was staged is the same commit at every attempt, or the second one would save it all again. */
const SAME_DATE = { GIT_AUTHOR_DATE: '@1 +0000', GIT_COMMITTER_DATE: '@1 +0000' }

interface Saved extends Rescue {
  tree: string
  parents: string[]
}

/** Saves what only this place has. */
export async function rescue(open: Open, repo: Repo, place: Place, admin: string, as: string): Promise<Rescue | undefined> {
  const at = await repo.checkout(place.path, admin)
  return snapshot(open, at, admin, 'kept', (found) => save(at, found, place.branch, as))
}

export async function save(at: At, found: Snapshot, branch: string, as: string): Promise<Rescue | undefined> {
  const { tree, staged, head, headTree } = found
  if (tree === headTree && !staged && (!head || (await isReachable(at, head)))) return undefined
  const stagedCommit = staged && (await commitTree(at, staged, head ? [head] : [], `what was staged, of ${branch}`, SAME_DATE))
  const merging = await commitAt(at, 'MERGE_HEAD')
  return store(
    at,
    tree,
    [head, stagedCommit, merging].filter((parent) => parent !== undefined),
    branch,
    as,
  )
}

/** Of a place whose folder is gone, git may still know where its HEAD was. */
export async function saveHead(repo: At, head: string | undefined, branch: string, as: string): Promise<Rescue | undefined> {
  if (!head || (await isReachable(repo, head))) return undefined
  return saveCommit(repo, head, branch, as)
}

/** Of a branch that is about to be moved elsewhere. */
export async function saveCommit(repo: At, commit: string, branch: string, as: string): Promise<Rescue> {
  return store(repo, await repo.line(['rev-parse', '--verify', `${commit}^{tree}`]), [commit], branch, as)
}

export async function rescues(open: Open, repo: string, under: string): Promise<Rescue[]> {
  const all = await saved(await openRepo(open, repo), rescuesUnder(under))
  return all.map(({ tree: _, parents: __, ...rescue }) => rescue)
}

/** The files become what they were; HEAD and its branch stay where they are, so that it all shows as not committed. */
export async function restore(
  open: Open,
  repo: Repo,
  place: Place,
  { admin, ref, as }: { admin: string; ref: string; as: string },
): Promise<{ rescue: Rescue | undefined }> {
  const at = await repo.checkout(place.path, admin)
  const wanted = await at.ask(['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{tree}`])
  if (!wanted) throw new GitRefusal('missing', `There is no saved tree ${ref}.`)
  return snapshot(open, at, admin, 'kept', async (found, run) => {
    if (found.tree === wanted) return { rescue: undefined }
    const before = await save(at, found, place.branch, as)
    await at.git(['read-tree', found.head ?? '--empty'])
    // By the index of the snapshot, which knows the untracked files: by the real one they would stay among what is brought back.
    await at.git(['read-tree', '--reset', '-u', wanted], { ...run, checkout: true })
    await at.ask(['update-index', '-q', '--refresh'])
    return { rescue: before }
  })
}

async function isReachable(at: At, commit: string): Promise<boolean> {
  const elsewhere = ['--branches', '--tags', '--remotes', '--glob=refs/signalbox']
  return (await at.line(['rev-list', '--max-count=1', commit, '--not', ...elsewhere])) === ''
}

async function store(at: At, tree: string, parents: string[], branch: string, as: string): Promise<Rescue> {
  const under = rescuesUnder(as)
  const [newest] = await saved(at, under)
  const same = newest?.tree === tree && newest.parents.join() === parents.join()
  // A repeated attempt saves nothing new.
  if (same) return { ref: newest.ref, commit: newest.commit, at: newest.at, branch: newest.branch }
  const commit = await commitTree(at, tree, parents, `${SUBJECT}${branch}`)
  const none = '0'.repeat(commit.length)
  for (let now = Date.now(); ; now++) {
    const ref = `${under}/${new Date(now).toISOString().replace(/[-:.]/g, '')}`
    if ((await at.ask(['update-ref', ref, commit, none])) !== undefined) return { ref, commit, at: now, branch }
    if (!(await commitAt(at, ref))) throw new GitRefusal('failed', `${ref} cannot be written.`)
  }
}

function commitTree(at: At, tree: string, parents: string[], message: string, env?: Record<string, string>): Promise<string> {
  return at.line(['commit-tree', tree, ...parents.flatMap((parent) => ['-p', parent])], { input: `${message}\n`, env })
}

async function saved(at: At, under: string): Promise<Saved[]> {
  const listed = await at.line(['for-each-ref', `--format=${FIELDS}`, '--sort=-refname', `${under}/`])
  return listed
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [ref = '', commit = '', tree = '', parents = '', subject = ''] = line.split('\0')
      return {
        ref,
        commit,
        tree,
        parents: parents.split(' ').filter(Boolean),
        at: timeIn(ref),
        branch: subject.slice(SUBJECT.length),
      }
    })
}

/** `…/20260304T050607089Z` */
function timeIn(ref: string): number {
  const parts = /(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(\d{3})Z$/.exec(ref)
  if (!parts) return 0
  const [year, month, day, hour, minute, second, ms] = parts.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  return Date.UTC(year, month - 1, day, hour, minute, second, ms)
}
