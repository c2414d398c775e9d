import { createHash } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { GitRefusal, type Place, type Rebased } from '../../ports/git.ts'
import { checkoutOf } from './deliver.ts'
import { kindOf, type Move, moveOf, NONE, takeBack } from './half-way.ts'
import { keptRef, moveRefs } from './line.ts'
import { damaged, type Packs } from './packs.ts'
import { commitAt, type Found, isAncestor, refs } from './repo.ts'
import { saveCommit } from './rescue.ts'
import { type At, LONG_MS, type Repo } from './run.ts'

export interface Rebasing {
  repo: Repo
  found: Found
  onto: string
  rescueAs: string
  packs: Packs
  lockWaitMs: number
}

/**
 * Files and index are moved before the branch: cut off in between, the next attempt finds the index of the commit that is kept, and
 * moves the branch. The other way round the worker's next commit would take all of it back.
 */
export async function rebase(place: Place, it: Rebasing): Promise<Rebased> {
  const { repo, found, onto } = it
  const ref = `refs/heads/${place.branch}`
  const head = await commitAt(repo, ref)
  if (!head) throw new GitRefusal('missing', `${repo.cwd} has no branch "${place.branch}".`)
  const here = await checkoutOf(repo, place, found, ref)
  const name = nameOf(place.branch)
  // What an earlier attempt made of another head is none of this one's.
  const kept = `${keptRef(name)}-${head.slice(0, 12)}`
  const laid = await leftBy(repo, name, kept)
  if (here && laid && (await isLaid(here.at, laid))) {
    const done = await moved(it, { ref, kept, head, to: laid })
    // More can have landed since.
    return (await isAncestor(repo, onto, laid)) ? done : rebase(place, it)
  }
  if (here) await requireClean(here.at)
  if (await isAncestor(repo, onto, head)) return { result: 'even', head }
  const made = await awayFromAll(it, name, head, (at) => replayed(at, onto))
  if ('files' in made) return { result: 'conflict', ...made }
  const files = here && { at: here.at, move: await moveOf(here.at, head, made.commit) }
  if (files) await requireRoom(files.at, files.move)
  const damage = await it.packs.keep(repo, made.commit, onto)
  if (damage !== undefined) throw damaged(made.commit, damage)
  const refused = await moveRefs(repo, [[kept, `update ${kept} ${made.commit}`]], it.lockWaitMs)
  if (refused !== undefined) throw new GitRefusal('failed', `${kept} cannot be written in ${repo.cwd}: ${refused}`)
  await saveCommit(repo, head, place.branch, it.rescueAs)
  if (files) await lay(files.at, files.move).catch((error) => forgotten(repo, kept, error))
  return moved(it, { ref, kept, head, to: made.commit })
}

function nameOf(branch: string): string {
  return `rebase-${createHash('sha256').update(branch).digest('hex').slice(0, 16)}`
}

/** What this very head was rebased to by an attempt that was cut off. Those of other heads are over. */
async function leftBy(repo: Repo, name: string, kept: string): Promise<string | undefined> {
  const left = await refs(repo, [`${keptRef(name)}*`])
  for (const [ref, { commit }] of left) if (ref && ref !== kept) await repo.ask(['update-ref', '-d', ref, commit])
  return left.get(kept)?.commit
}

async function lay(at: At, move: Move): Promise<void> {
  const { failed } = await at.tried(['read-tree', '-m', '-u', move.from, move.to], { checkout: true, timeoutMs: LONG_MS })
  if (failed === undefined) return
  if (!failed.includes('index.lock')) await takeBack(at, move)
  throw new GitRefusal('failed', `git read-tree in ${at.cwd}: ${failed}`)
}

/** Kept, it would be taken later for something that only has to be ended. */
async function forgotten(repo: Repo, kept: string, error: unknown): Promise<never> {
  await repo.ask(['update-ref', '-d', kept])
  throw error
}

/** Git itself would overwrite what it is told to ignore: a worker's own settings, or what it wrote down. */
async function requireRoom(at: At, { changes }: Move): Promise<void> {
  const those = (side: 0 | 1) => new Set(changes.filter(({ modes }) => modes[side] === NONE).map(({ path }) => path))
  const [added, gone] = [those(0), those(1)]
  const wanted = new Set([...added].flatMap((path) => path.split('/').map((_, n, parts) => parts.slice(0, n + 1).join('/'))))
  const inTheWay: string[] = []
  for (const path of wanted) {
    const there = await kindOf(at, path)
    const isFolder = there?.isDirectory()
    const name = Buffer.from(path, 'latin1').toString()
    const holdsMore = isFolder && added.has(path) && (await at.line(['ls-files', '--others', '-z', '--', name])) !== ''
    if (holdsMore || (there && !isFolder && !gone.has(path))) inTheWay.push(name)
  }
  if (!inTheWay.length) return
  const files = inTheWay.slice(0, 5).join(', ')
  throw new GitRefusal('failed', `In ${at.cwd}, these are in the way of what landed: ${files}. Commit them, or move them away.`)
}

/**
 * In a checkout of which only we know. Git writes down what it is about to do and reads that again: in a worktree of the repository
 * a worker could add a command to it.
 */
async function awayFromAll<T>({ repo }: Rebasing, name: string, commit: string, work: (at: At) => Promise<T>): Promise<T> {
  const folder = join(repo.notes, name)
  const [gitDir, files] = [join(folder, 'git'), join(folder, 'files')]
  // One that was cut off in the middle has left a rebase in progress.
  await rm(folder, { recursive: true, force: true })
  try {
    await mkdir(gitDir, { recursive: true })
    await mkdir(files)
    await writeFile(join(gitDir, 'HEAD'), `${commit}\n`)
    const at = await repo.checkout(files, gitDir)
    await at.git(['reset', '--quiet', '--hard', '--no-recurse-submodules'], { checkout: true, timeoutMs: LONG_MS })
    return await work(at)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Each commit with its author, its date and its message; without what the line has already. */
async function replayed(at: At, onto: string): Promise<{ commit: string } | { files: string[] }> {
  const how = ['--no-autostash', '--no-fork-point', '--empty=drop', '--no-gpg-sign', '--no-update-refs', '--no-stat']
  const { failed } = await at.tried(['rebase', '--quiet', ...how, onto], { checkout: true, timeoutMs: LONG_MS })
  if (failed === undefined) return { commit: await at.line(['rev-parse', '--verify', 'HEAD']) }
  // Not by a diff, which would ask git inside of every submodule.
  const unmerged = (await at.git(['ls-files', '--unmerged', '-z'])).toString().split('\0').filter(Boolean)
  const files = [...new Set(unmerged.map((entry) => entry.slice(entry.indexOf('\t') + 1)))]
  if (!files.length) throw new GitRefusal('failed', `git rebase in ${at.cwd}: ${failed}`)
  return { files }
}

async function moved(it: Rebasing, { ref, kept, head, to }: { ref: string; kept: string; head: string; to: string }): Promise<Rebased> {
  const moves: [string, string][] = [
    [ref, `update ${ref} ${to} ${head}`],
    [kept, `delete ${kept}`],
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
  const looked = ['--untracked-files=no', '--ignore-submodules=dirty']
  const changed = (await at.git(['status', '--porcelain', '-z', ...looked])).toString().split('\0').filter(Boolean)
  if (!changed.length) return
  const files = changed.map((line) => line.slice(3)).slice(0, 5)
  throw new GitRefusal('failed', `Something is not committed in ${at.cwd}: ${files.join(', ')}. Commit or discard it first.`)
}
