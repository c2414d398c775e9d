import { createHash } from 'node:crypto'
import { GitRefusal, type Place, type Rebased } from '../../ports/git.ts'
import { checkoutOf } from './deliver.ts'
import { keptRef, moveRefs } from './line.ts'
import type { Repo } from './place.ts'
import { commitAt, type Found, isAncestor } from './repo.ts'
import { saveCommit } from './rescue.ts'
import { type At, LONG_MS, type Open } from './run.ts'
import type { Scratches } from './scratch.ts'

export interface Rebasing {
  open: Open
  repo: Repo
  found: Found
  onto: string
  rescueAs: string
  lockWaitMs: number
  scratches: Scratches
}

/**
 * Files and index are moved before the branch: cut off in between, the next attempt finds the index of the commit that is kept, and
 * moves the branch. The other way round the worker's next commit would take all of it back.
 */
export async function rebase(place: Place, it: Rebasing): Promise<Rebased> {
  const { open, repo, found, onto } = it
  const ref = `refs/heads/${place.branch}`
  const name = `rebase-${createHash('sha256').update(place.branch).digest('hex').slice(0, 16)}`
  const head = await commitAt(repo, ref)
  if (!head) throw new GitRefusal('missing', `${repo.cwd} has no branch "${place.branch}".`)
  const here = await checkoutOf(open, repo, place, found, ref)
  const kept = await commitAt(repo, keptRef(name))
  if (here && kept && (await isLaid(here.at, kept))) return moved(it, { ref, name, head, to: kept })
  if (here) await requireClean(here.at)
  if (await isAncestor(repo, onto, head)) return { result: 'even', head }
  const made = await awayFromAll(it, name, head, (at) => replayed(at, onto))
  if ('files' in made) return { result: 'conflict', ...made }
  const refused = await moveRefs(repo, [[keptRef(name), `update ${keptRef(name)} ${made.commit}`]], it.lockWaitMs)
  if (refused !== undefined) throw new GitRefusal('failed', `${keptRef(name)} cannot be written in ${repo.cwd}: ${refused}`)
  await saveCommit(repo, head, place.branch, it.rescueAs)
  if (here) await here.at.git(['read-tree', '-m', '-u', head, made.commit], { checkout: true, timeoutMs: LONG_MS })
  return moved(it, { ref, name, head, to: made.commit })
}

async function awayFromAll<T>({ open, repo, scratches }: Rebasing, name: string, commit: string, work: (at: At) => Promise<T>): Promise<T> {
  // One that was cut off in the middle has left a rebase in progress.
  await scratches.drop(repo.cwd, name)
  try {
    return await work(await open(await scratches.make(repo.cwd, name, commit)))
  } finally {
    await scratches.drop(repo.cwd, name)
  }
}

/** Each commit with its author, its date and its message; without what the line has already. */
async function replayed(at: At, onto: string): Promise<{ commit: string } | { files: string[] }> {
  const how = ['--no-autostash', '--no-fork-point', '--empty=drop', '--no-gpg-sign', '--no-update-refs', '--no-stat']
  const { failed } = await at.tried(['rebase', '--quiet', ...how, onto], { checkout: true, timeoutMs: LONG_MS })
  if (failed === undefined) return { commit: await at.line(['rev-parse', '--verify', 'HEAD']) }
  const files = (await at.git(['diff', '--name-only', '--diff-filter=U', '-z'])).toString().split('\0').filter(Boolean)
  if (!files.length) throw new GitRefusal('failed', `git rebase in ${at.cwd}: ${failed}`)
  return { files }
}

async function moved(it: Rebasing, { ref, name, head, to }: { ref: string; name: string; head: string; to: string }): Promise<Rebased> {
  const moves: [string, string][] = [
    [ref, `update ${ref} ${to} ${head}`],
    [keptRef(name), `delete ${keptRef(name)}`],
  ]
  const refused = await moveRefs(it.repo, moves, it.lockWaitMs)
  if (refused !== undefined) throw new GitRefusal('busy', `${ref} is moved by somebody else: ${refused}`)
  return { result: 'rebased', head: to }
}

async function isLaid(at: At, commit: string): Promise<boolean> {
  const [staged, tree] = [await at.ask(['write-tree']), await at.ask(['rev-parse', '--verify', `${commit}^{tree}`])]
  return staged !== undefined && staged === tree && (await commitAt(at, 'HEAD')) !== commit
}

async function requireClean(at: At): Promise<void> {
  const changed = (await at.git(['status', '--porcelain', '-z', '--untracked-files=no'])).toString().split('\0').filter(Boolean)
  if (!changed.length) return
  const files = changed.map((line) => line.slice(3)).slice(0, 5)
  throw new GitRefusal('failed', `Something is not committed in ${at.cwd}: ${files.join(', ')}. Commit or discard it first.`)
}
