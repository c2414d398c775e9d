import { constants } from 'node:fs'
import { lstat, mkdir, open as openFile, readlink, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type Delivery, GitRefusal, type Place } from '../../ports/git.ts'
import { checkedOutBeside } from './heads.ts'
import { freeLocks } from './lock-files.ts'
import { commitOf, lockOf, madeBefore } from './merge.ts'
import { checkDelivered } from './names.ts'
import { freePlace } from './place.ts'
import { commitAt, type Found } from './repo.ts'
import type { At, Repo } from './run.ts'

/** Its worker commits meanwhile, over and over. */
const TRIES = 10

/**
 * One commit with one file on the branch of a place. File and index come before the branch moves: cut off in between, there is a
 * staged file that the next attempt commits. The other way round the worker's next commit would take the file back.
 */
export async function deliver(repo: Repo, place: Place, found: Found, delivery: Delivery, lockWaitMs: number): Promise<{ commit: string }> {
  checkDelivered(delivery.path)
  const ref = `refs/heads/${place.branch}`
  for (let tries = 0; tries < TRIES; tries++) {
    const head = await commitAt(repo, ref)
    if (!head) throw new GitRefusal('missing', `${repo.cwd} has no branch "${place.branch}".`)
    const [before] = (await madeBefore(repo, delivery.trailers, head)).made
    if (before) return { commit: before.commit }
    const blob = await repo.line(['hash-object', '-w', '--stdin'], { input: delivery.text })
    const here = await checkoutOf(repo, place, found, ref)
    if (here) await lay(repo, place, { ...here, blob }, delivery, lockWaitMs)
    const commit = await commitOf(repo, delivery, undefined, await treeWith(repo, head, delivery.path, blob), [head])
    await freeLocks([lockOf(repo, ref)], [repo.cwd, repo.common], lockWaitMs)
    if ((await repo.ask(['update-ref', '-m', 'signalbox: deliver', ref, commit, head])) !== undefined) return { commit }
    if ((await commitAt(repo, ref)) === head) throw new GitRefusal('failed', `${place.branch} cannot be moved in ${repo.cwd}.`)
  }
  throw new GitRefusal('busy', `${place.branch} is moved by somebody else all the time.`)
}

/** Undefined when it is checked out nowhere: then only the branch has to be moved. */
export async function checkoutOf(repo: Repo, place: Place, { state, admin }: Found, ref: string) {
  if (state === 'foreign') throw new GitRefusal('foreign', `${place.path} is there, but is no worktree of ${place.repo}.`)
  const own = state === 'present' ? await realpath(place.path) : undefined
  const beside = await checkedOutBeside(repo, ref, own)
  // Moved under another checkout, its next commit would take the file back.
  if (beside) throw new GitRefusal('busy', `${place.branch} is checked out in ${beside}, too. Check out another branch there.`)
  if (!own || !admin) return undefined
  const at = await repo.checkout(place.path, admin)
  // In the middle of a rebase the branch is moved when that ends: what came in between would be lost, or keep it from ending.
  if ((await at.ask(['symbolic-ref', '--quiet', 'HEAD'])) !== ref)
    throw new GitRefusal('busy', `${place.path} is not on ${place.branch} now: a rebase is in progress, or something else is checked out.`)
  return { at, admin, top: own }
}

/** Only that one path: whatever else is changed or staged stays as it is. */
async function lay(
  repo: Repo,
  place: Place,
  { at, admin, top, blob }: { at: At; admin: string; top: string; blob: string },
  { path, text }: Delivery,
  lockWaitMs: number,
): Promise<void> {
  await write(top, path, text)
  await freePlace(repo, place, admin, lockWaitMs)
  await at.git(['update-index', '--add', '--replace', '--cacheinfo', `100644,${blob},${path}`])
}

/** Never through a link, nor into a file that has another name too: an agent could have laid one that is the person's. */
async function write(top: string, path: string, text: string): Promise<void> {
  const inTheWay = (at: string) => new GitRefusal('failed', `${at} is in the way of ${path}: it is no plain folder or file.`)
  let folder = top
  for (const part of dirname(path).split('/')) {
    folder = join(folder, part)
    const found = await lstat(folder).catch(() => undefined)
    if (!found) await mkdir(folder)
    else if (!found.isDirectory()) throw inTheWay(folder)
  }
  const file = join(top, path)
  const found = await lstat(file).catch(() => undefined)
  if (found && !found.isFile()) throw inTheWay(file)
  const holder = await openFile(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    // Between the two steps a folder on the way can have become a link; what is opened now stays what it is.
    const opened = await readlink(`/proc/self/fd/${holder.fd}`).catch(() => undefined)
    if (opened !== undefined && opened !== folder) throw inTheWay(folder)
    await replaceIn(opened === undefined ? folder : `/proc/self/fd/${holder.fd}`, basename(path), text)
  } finally {
    await holder.close()
  }
}

async function replaceIn(folder: string, name: string, text: string): Promise<void> {
  const fresh = join(folder, `.${name}.new`)
  await rm(fresh, { recursive: true, force: true })
  await writeFile(fresh, text, { flag: constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, mode: 0o644 })
  await rename(fresh, join(folder, name))
}

async function treeWith(repo: Repo, head: string, path: string, blob: string): Promise<string> {
  return repo.temporary(async (folder) => {
    const env = { GIT_INDEX_FILE: join(folder, 'index') }
    await repo.git(['read-tree', head], { env })
    await repo.git(['update-index', '--add', '--replace', '--cacheinfo', `100644,${blob},${path}`], { env })
    return repo.line(['write-tree'], { env })
  })
}
