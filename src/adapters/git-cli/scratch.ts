import { chmod, lstat, mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { addWorktree, foreign, freePlace, outOfTheWay } from './place.ts'
import { canonical, find } from './repo.ts'
import { LONG_MS, type Repo } from './run.ts'

export interface Scratch {
  repo: Repo
  path: string
  root: string
  /** The repository's list of worktrees is changed by one at a time. */
  registering<T>(work: () => Promise<T>): Promise<T>
  lockWaitMs: number
}

/** Whatever a check or a kill made of it: nobody keeps anything there, so what cannot be made clean is made again. */
export async function scratch(it: Scratch, commit: string): Promise<void> {
  const found = await find(it.repo.common, it).catch(() => undefined)
  if (found?.state === 'present' && (await checkedOut(it, found.admin, commit).catch(() => false))) return
  await dropScratch(it)
  await it.registering(async () => {
    await mkdir(dirname(it.path), { recursive: true, mode: 0o700 })
    await addWorktree(it.repo, it.path, ['--detach', '--no-checkout'], commit)
  })
  const { admin } = await find(it.repo.common, it)
  if (!admin) throw foreign({ path: it.path, repo: it.repo.cwd })
  const at = await it.repo.checkout(it.path, admin)
  await at.git(['checkout', '--quiet', '--force', '--detach', commit], { checkout: true, timeoutMs: LONG_MS })
}

/** At the top, by a name that means the same in every encoding: others are deleted in their place. */
const PLAIN_FOLDER = /^[\w.@-]+\/$/

async function checkedOut({ repo, path, root, lockWaitMs }: Scratch, admin: string | undefined, commit: string): Promise<boolean> {
  if (!admin) return false
  await freePlace(repo, { path }, admin, lockWaitMs)
  // A check can write one that says of its own files that they are the committed ones, and have the checks of all later works pass.
  await rm(join(admin, 'index'), { recursive: true, force: true })
  const at = await repo.checkout(path, admin)
  // Not by a reset: a check may have checked out a branch, which would be moved.
  await at.git(['checkout', '--quiet', '--force', '--detach', commit], { checkout: true, timeoutMs: LONG_MS })
  // To delete the packages of the check before takes as long as to copy those of this one: they are moved, and deleted meanwhile.
  const others = (await at.git(['ls-files', '--others', '--directory', '-z'])).toString('latin1').split('\0')
  for (const folder of others.filter((name) => PLAIN_FOLDER.test(name))) await outOfTheWay(root, join(path, folder.slice(0, -1)))
  await at.git(['clean', '--quiet', '-ffdx'], { timeoutMs: LONG_MS })
  // What git was told to skip, by the configuration of the checkout, stays as the check left it.
  const listed = (await at.git(['ls-files', '-t', '-z'])).toString('latin1').split('\0')
  return !listed.some((line) => line.startsWith('S '))
}

export async function dropScratch({ repo, path, root, registering }: Scratch): Promise<void> {
  const there = await lstat(path).catch(() => undefined)
  // A folder that may not be read and written can be neither looked at nor moved.
  if (there?.isDirectory()) await chmod(path, 0o700)
  const { admin } = await find(repo.common, { path })
  if (there) await outOfTheWay(root, path)
  if (admin) await registering(async () => repo.git(['worktree', 'remove', '--force', '--force', '--', await canonical(path)]))
}
