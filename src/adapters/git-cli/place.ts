import { createHash, randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, lstat, mkdir, readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { GitRefusal, type NewPlace, type Place, type Rescue, type WorkState } from '../../ports/git.ts'
import { removeTree } from '../files-shared/remove.ts'
import { exists } from './files.ts'
import { checkedOutBeside, headsOf } from './heads.ts'
import { linkIn } from './layout.ts'
import { freeLocks } from './lock-files.ts'
import { baseCommit, canonical, commitAt, type Found, find, isHalfMade, refs } from './repo.ts'
import { rescue, save, saveHead } from './rescue.ts'
import { type At, LONG_MS, type Open, type Repo } from './run.ts'
import { smallFileOrNone } from './small-file.ts'
import { snapshot, unsavedInside } from './tree.ts'

/** There while files are being checked out for the first time: what it finds then is nobody's work. */
const CHECKING_OUT = 'signalbox-checkout'
const REMOVED = '.removed'
/** Through a link that a worker laid, it would be a file of the person's that is emptied; in a pipe's place we would wait for its reader. */
const NO_LINK = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** The part of `add` that all worktrees of a repository share. Returns the commit that the work began at. */
export async function register(open: Open, repo: Repo, place: NewPlace, lockWaitMs: number): Promise<string> {
  const found = await find(repo.common, place)
  if (found.state === 'foreign') throw foreign(place)
  await freeLocks(sharedLocks(repo.common, place.branch), await homes(repo, place), lockWaitMs)
  const base = await ensureBranch(repo, place)
  if (found.state === 'present') return base
  if (found.admin) await unregister(open, repo, place, found, basename(place.path))
  else await dropHalfMade(place.path)
  await mkdir(dirname(place.path), { recursive: true, mode: 0o700 })
  // A branch that it makes itself from a remote one is written to the configuration: of many at once most fail at that lock.
  await requireNowhereElse(repo, place)
  await addWorktree(repo, place.path, ['--no-checkout'], place.branch)
  return base
}

/** A `git worktree prune` of somebody else's deletes the folder that git has just made for it, until git has locked it. */
const PRUNED_MEANWHILE = /\bworktrees\/.*: No such file or directory/
const ATTEMPTS = 20

export async function addWorktree(repo: Repo, path: string, how: string[], commitish: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await mkdir(join(repo.common, 'worktrees'), { recursive: true })
    const { failed } = await repo.tried(['worktree', 'add', '--quiet', '--lock', ...how, '--', path, commitish])
    if (failed === undefined) return linkToRepository(repo, path)
    if (attempt === ATTEMPTS || !PRUNED_MEANWHILE.test(failed)) throw new GitRefusal('failed', `git worktree add in ${repo.cwd}: ${failed}`)
  }
}

/**
 * An agent sees no worktree but its own: to its git the others are missing, and its `worktree prune` would forget them. New ones are made
 * locked; this is for those of an older version.
 */
export async function lockAll(repo: Repo, root: string): Promise<void> {
  for (const { path, admin } of await headsOf(repo))
    if (path.startsWith(root + sep)) await writeFile(join(admin, 'locked'), '', { flag: 'wx' }).catch(unlessIn(['EEXIST', 'ENOENT']))
}

const unlessIn = (codes: string[]) => (error: NodeJS.ErrnoException) => {
  if (!codes.includes(error.code ?? '')) throw error
}

/** Git writes down the directory that it was given, which is ours: whoever works there is to find the repository's. */
async function linkToRepository(repo: Repo, path: string): Promise<void> {
  const file = join(path, '.git')
  const link = linkIn(await smallFileOrNone(file))
  if (link?.startsWith(repo.own)) await writeFile(file, `gitdir: ${join(repo.common, 'worktrees', basename(link))}\n`, { flag: NO_LINK })
}

/** Worktrees that still name the folder in which the repository was. Only a link that leads nowhere: any other is somebody's. */
export async function linkAgain(repo: Repo): Promise<void> {
  for (const { path, admin } of await headsOf(repo)) {
    const file = join(path, '.git')
    const link = linkIn(await smallFileOrNone(file))
    const isLost = link?.endsWith(join('/worktrees', basename(admin))) && !(await exists(resolve(path, link)))
    if (isLost) await writeFile(file, `gitdir: ${admin}\n`, { flag: NO_LINK })
  }
}

/** Git itself looks for the main checkout in our own directory. */
async function requireNowhereElse(repo: Repo, { path, branch }: Place): Promise<void> {
  const beside = await checkedOutBeside(repo, `refs/heads/${branch}`, path)
  if (beside) throw new GitRefusal('failed', `${branch} is already checked out at ${beside}. Check out another branch there.`)
}

/** The branch and where it began appear together, so that half of an attempt is never taken for somebody's branch. */
async function ensureBranch(repo: Repo, place: NewPlace): Promise<string> {
  const [branch, beginning] = [`refs/heads/${place.branch}`, `refs/signalbox/base/${place.branch}`]
  const found = await refs(repo, [branch, beginning])
  const known = found.get(beginning)?.commit
  if (found.has(branch) && known) return known
  const base = await baseCommit(repo, place)
  if (found.has(branch)) return (await repo.ask(['merge-base', base, branch])) ?? base
  const input = `start\ncreate ${branch} ${base}\nupdate ${beginning} ${base}\nprepare\ncommit\n`
  await repo.git(['update-ref', '--stdin'], { input })
  return base
}

/** The index is written when all files are there: without one the checkout never ended. */
export async function checkOut(open: Open, repo: Repo, place: NewPlace, lockWaitMs: number): Promise<string> {
  const { admin } = await find(repo.common, place)
  if (!admin) throw foreign(place)
  await linkToRepository(repo, place.path)
  const at = await repo.checkout(place.path, admin)
  await freePlace(repo, place, admin, lockWaitMs)
  if (!(await exists(join(admin, 'index')))) {
    const marker = join(admin, CHECKING_OUT)
    const nobodys = (await exists(marker)) || (await readdir(place.path)).every((name) => name === '.git')
    // Somebody has worked here, and removed the index.
    if (!nobodys) await rescue(open, repo, place, admin, basename(place.path))
    await rm(marker, { recursive: true, force: true })
    await writeFile(marker, '', { flag: NO_LINK })
    await at.git(['reset', '--quiet', '--hard', '--no-recurse-submodules'], { checkout: true, timeoutMs: LONG_MS })
    await rm(marker, { force: true })
  }
  return at.line(['rev-parse', '--verify', 'HEAD'])
}

/** Saves, takes the folder out of the way in one step, and forgets it; its files are deleted later. */
export async function takeAway(
  open: Open,
  repo: Repo,
  place: Place,
  root: string,
  as: string,
  lockWaitMs: number,
): Promise<Rescue | undefined> {
  const found = await find(repo.common, place)
  if (found.state === 'foreign') throw foreign(place)
  if (!found.admin) return undefined
  if (found.state === 'missing') return unregister(open, repo, place, found, as)
  const { admin } = found
  await freePlace(repo, place, admin, lockWaitMs)
  const at = await repo.checkout(place.path, admin)
  const saved = await snapshot(open, at, admin, 'kept', async (now) => {
    const inside = await unsavedInside(open, place.path, now.nested)
    if (inside !== undefined)
      throw new GitRefusal(
        'unsaved',
        `${join(place.path, inside)} is a repository of its own with work that only it has. Push it, or move it away.`,
      )
    return save(at, now, place.branch, as)
  })
  await outOfTheWay(root, place.path)
  await unregister(open, repo, place, { ...found, state: 'missing' }, as)
  return saved
}

export async function outOfTheWay(root: string, path: string): Promise<void> {
  const folder = join(root, REMOVED)
  // A folder that may not be written cannot be moved either.
  if ((await lstat(path)).isDirectory()) await chmod(path, 0o700)
  await removeLink(folder)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await rename(path, join(folder, `${basename(path)}-${randomUUID()}`))
}

/** In the place of a folder of ours: through a link that a worker laid, it would be our own database that is deleted. */
export async function removeLink(folder: string): Promise<void> {
  if ((await lstat(folder).catch(() => undefined))?.isSymbolicLink()) await rm(folder, { force: true })
}

/** Also what an earlier attempt was cut off at. */
export async function sweep(root: string): Promise<void> {
  const folder = join(root, REMOVED)
  await removeLink(folder)
  // One that cannot be deleted keeps no other place from being taken away.
  for (const name of await readdir(folder).catch(() => [])) await removeTree(join(folder, name)).catch(() => {})
}

/** In its place git would make no worktree. */
async function dropHalfMade(path: string): Promise<void> {
  if (await isHalfMade(path)) await rm(join(path, '.git'), { force: true })
}

/** Only the one: `worktree prune` would also forget those of the person's that are on a disk which is not mounted now. */
async function unregister(open: Open, repo: Repo, place: Place, found: Found, as: string): Promise<Rescue | undefined> {
  const head = found.admin && (await smallFileOrNone(join(found.admin, 'HEAD'))).trim()
  const detached = head && /^[0-9a-f]{40,64}$/.test(head) ? await commitAt(repo, head) : undefined
  const saved = await saveHead(repo, detached, place.branch, as)
  if (found.admin) await keepSubmodules(open, repo, found.admin)
  await dropHalfMade(place.path)
  await rmdir(place.path).catch(() => {})
  await repo.git(['worktree', 'remove', '--force', '--force', '--', await canonical(place.path)])
  return saved
}

/** Git keeps the commits of a worktree's submodules in its own folder about the worktree, and deletes them with it. */
async function keepSubmodules(open: Open, repo: Repo, admin: string): Promise<void> {
  const modules = join(admin, 'modules')
  const repositories = (await readdir(modules, { recursive: true }).catch(() => [])).filter((path) => basename(path) === 'HEAD')
  for (const head of repositories) {
    const folder = dirname(join(modules, head))
    if (!(await exists(join(folder, 'objects')))) continue
    const onlyHere = ['rev-list', '--max-count=1', '--all', '--not', '--remotes', '--tags']
    if ((await open.inside({ gitDir: folder }, (at) => at.ask(onlyHere))) === '') continue
    const kept = join(repo.common, 'signalbox', 'modules')
    await mkdir(kept, { recursive: true })
    return rename(modules, join(kept, `${basename(admin)}-${randomUUID()}`))
  }
}

export async function state(repo: Repo, place: Place, from: string): Promise<WorkState> {
  const found = await find(repo.common, place)
  if (found.state !== 'present' || !found.admin) {
    const branchHead = await commitAt(repo, `refs/heads/${place.branch}`)
    const ahead = branchHead ? await aheadOf(repo, from, branchHead) : 0
    return { state: found.state, head: branchHead ?? null, ahead, dirty: 0, fingerprint: digest([branchHead ?? '']) }
  }
  const at = await repo.checkout(place.path, found.admin)
  const head = await commitAt(at, 'HEAD')
  const status = await at.git(['status', '--porcelain', '-z', '--no-renames', '--untracked-files=all', '--ignore-submodules=dirty'])
  const entries = status.toString().split('\0').filter(Boolean)
  return {
    state: 'present',
    head: head ?? null,
    ahead: head ? await aheadOf(at, from, head) : 0,
    dirty: entries.length,
    fingerprint: await fingerprintOf(head ?? '', entries, (entry) => stampOf(join(place.path, entry.slice(3)))),
  }
}

async function aheadOf(at: At, from: string, head: string): Promise<number> {
  const { stdout, failed } = await at.tried(['rev-list', '--count', '--end-of-options', `${from}^{commit}..${head}`])
  if (failed === undefined) return Number(stdout.toString())
  if (!(await commitAt(at, from))) throw new GitRefusal('missing', `${at.cwd} has no ${from}.`)
  throw new GitRefusal('failed', `git rev-list in ${at.cwd}: ${failed}`)
}

/** Tens of thousands of files at once would keep everybody else waiting, and health. */
const PORTION = 200

export async function fingerprintOf(head: string, entries: string[], stamp: (entry: string) => Promise<string>): Promise<string> {
  const hash = createHash('sha256').update([head, ...entries].join('\0'))
  for (let i = 0; i < entries.length; i += PORTION)
    for (const stamped of await Promise.all(entries.slice(i, i + PORTION).map(stamp))) hash.update(`\0${stamped}`)
  return hash.digest('hex').slice(0, 32)
}

async function stampOf(path: string): Promise<string> {
  const { mtimeNs, size, mode } = (await lstat(path, { bigint: true }).catch(() => undefined)) ?? {}
  return `${mtimeNs}.${size}.${mode}`
}

function digest(parts: string[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 32)
}

/** Nobody else's git is at work there, nor has died there. */
export async function freePlace(repo: Repo, place: Pick<Place, 'path'>, admin: string, lockWaitMs: number): Promise<void> {
  const locks = [join(admin, 'index.lock'), join(admin, 'HEAD.lock')]
  const held = await Promise.all(locks.map(exists))
  if (held.includes(true)) await freeLocks(locks, await homes(repo, place), lockWaitMs)
}

function sharedLocks(common: string, branch: string): string[] {
  return ['config.lock', 'packed-refs.lock', `refs/heads/${branch}.lock`].map((name) => join(common, name))
}

/** Where a git that holds one of those locks can be at work. */
async function homes(repo: Repo, place: Pick<Place, 'path'>): Promise<string[]> {
  const folder = join(repo.common, 'worktrees')
  const links = await Promise.all((await readdir(folder).catch(() => [])).map((id) => smallFileOrNone(join(folder, id, 'gitdir'))))
  const worktrees = links.map((link) => link.trim()).filter((link) => link.startsWith('/'))
  return [...new Set([repo.cwd, repo.common, await canonical(place.path), ...worktrees.map((link) => dirname(link))])]
}

export function foreign({ path, repo }: Pick<Place, 'path' | 'repo'>): GitRefusal {
  return new GitRefusal(
    'foreign',
    `${path} is there, but is no worktree of ${repo}: nobody may work in it. Move it away, or mend it with \`git worktree repair\`.`,
  )
}
