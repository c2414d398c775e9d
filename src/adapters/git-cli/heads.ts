import { lstat, readdir, readlink, realpath } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { lastOf } from './config.ts'
import { layoutOf } from './layout.ts'
import { isBare } from './repo.ts'
import type { Repo } from './run.ts'
import { smallFileOrNone } from './small-file.ts'

export const DETACHED = 'detached'
/** What other stores of refs than files leave in their place. */
const ELSEWHERE = 'ref: refs/heads/.invalid'

/** A checkout of a repository, as git has it on record. */
export interface Head {
  path: string
  /** Git's own folder about it. */
  admin: string
  /** The ref in full that is checked out. */
  head: string
}

/** Each names the other: a record alone could send us to any folder. Not one that is gone, or on a disk that is not mounted now. */
export async function isThere({ path, admin }: Head): Promise<boolean> {
  return (await layoutOf(path))?.gitDir === admin
}

/** Read from git's files: of a hundred worktrees git takes long to say it, and it would take us for the main checkout. */
export async function headsOf(repo: Repo): Promise<Head[]> {
  const folder = join(repo.common, 'worktrees')
  const ids = await readdir(folder).catch(() => [])
  const linked = ids.map(async (id): Promise<Head> => {
    const admin = join(folder, id)
    const path = dirname(resolve(admin, (await smallFileOrNone(join(admin, 'gitdir'))).trim()))
    return { path, admin, head: await headIn(repo, admin) }
  })
  const [main, ...others] = await Promise.all([mainOf(repo), ...linked])
  return main ? [main, ...others] : others
}

async function mainOf(repo: Repo): Promise<Head | undefined> {
  const { common } = repo
  if (await isBare(repo)) return undefined
  const said = lastOf(repo.says, 'core.worktree')
  const path = said !== undefined ? resolve(common, said) : repo.gitDir === common ? repo.cwd : dirname(common)
  return { path: await realpath(path).catch(() => path), admin: common, head: await headIn(repo, common) }
}

async function headIn(repo: Repo, admin: string): Promise<string> {
  const file = join(admin, 'HEAD')
  // An old kind of symbolic ref.
  const link = (await lstat(file).catch(() => undefined))?.isSymbolicLink() ? await readlink(file).catch(() => '') : ''
  const text = link.startsWith('refs/') ? `ref: ${link}` : (await smallFileOrNone(file)).trim()
  if (text === ELSEWHERE) return (await (await repo.checkout(dirname(admin), admin)).ask(['symbolic-ref', '--quiet', 'HEAD'])) || DETACHED
  return text.startsWith('ref: ') ? text.slice('ref: '.length).trim() : DETACHED
}

/** Where else than at `path` a branch is checked out. */
export async function checkedOutBeside(repo: Repo, ref: string, path: string | undefined): Promise<string | undefined> {
  for (const one of await headsOf(repo)) {
    const real = one.head === ref ? await realpath(one.path).catch(() => undefined) : undefined
    // Git goes on naming one whose folder is gone.
    if (real && real !== path) return one.path
  }
  return undefined
}
