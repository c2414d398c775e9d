import { lstat, readdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { GitRefusal, type NewPlace, type Place, type RepoFacts } from '../../ports/git.ts'
import { isOn, lastOf } from './config.ts'
import { exists } from './files.ts'
import { linkIn, topAbove } from './layout.ts'
import { checkBranch, isRefOrCommit } from './names.ts'
import type { At, Open, Repo } from './run.ts'
import { smallFileOrNone } from './small-file.ts'

/** What is at a place. `admin` is git's own folder about it, also when the place itself is gone. */
export interface Found {
  state: 'present' | 'missing' | 'foreign'
  admin: string | undefined
  common: string
}

export async function inspect(open: Open, path: string): Promise<RepoFacts | undefined> {
  const folder = await folderAt(path)
  const found = folder && (await topAbove(folder))
  const repo = found && (await open.repo(found.top).catch(() => undefined))
  if (!repo || (repo.gitDir === repo.common && ((await isBare(repo)) || (await filesElsewhere(repo))))) return undefined
  const [branch, branches, head] = await Promise.all([
    repo.ask(['symbolic-ref', '--quiet', '--short', 'HEAD']),
    repo.ask(['for-each-ref', '--format=%(refname:short)', 'refs/heads']),
    repo.ask(['rev-parse', '--verify', '--quiet', 'HEAD']),
  ])
  return {
    top: repo.cwd,
    branch: branch || null,
    branches: branches ? branches.split('\n') : [],
    remote: lastOf(repo.says, 'remote.origin.url') || null,
    head: head || null,
  }
}

/** Whoever can write the configuration can say so of any repository: one that has an index has files. */
export async function isBare({ common, cwd, says }: Repo): Promise<boolean> {
  return common === cwd || (isOn(says, 'core.bare') && !(await exists(join(common, 'index'))))
}

/** Beside `.git` there would be other files than those that its index tells of. */
async function filesElsewhere(repo: Repo): Promise<boolean> {
  const said = lastOf(repo.says, 'core.worktree')
  return said !== undefined && (await realpath(resolve(repo.common, said)).catch(() => undefined)) !== repo.cwd
}

export async function openRepo(open: Open, path: string): Promise<Repo> {
  const repo = (await folderAt(path)) ? await open.repo(path) : undefined
  if (!repo) throw noRepository(path)
  return repo
}

function noRepository(path: string): GitRefusal {
  return new GitRefusal('missing', `There is no git repository at ${path}.`, {
    hint: 'If it was moved, give its new path with repo_update; if it is gone for good, unregister it with repo_remove.',
    next_tool: 'repo_list',
    next_arguments: {},
  })
}

/** Read from git's files themselves: `worktree list` repeats a line feed in somebody's path as it is. */
export async function find(common: string, place: Pick<Place, 'path'>): Promise<Found> {
  const path = await canonical(place.path)
  const kind = await lstat(path).catch(() => undefined)
  const link = kind?.isDirectory() ? linkIn(await smallFileOrNone(join(path, '.git'))) : undefined
  const target = link ? await realpath(resolve(path, link)).catch(() => undefined) : undefined
  // Each names the other: none of perhaps hundreds of others is this one.
  if (target && dirname(target) === join(common, 'worktrees') && (await worktreeOf(target)) === path)
    return { state: (await isHalfMade(path)) ? 'missing' : 'present', admin: target, common }
  const admin = await adminOf(common, path)
  if (!kind) return { state: 'missing', admin, common }
  if (!kind.isDirectory()) return { state: 'foreign', admin, common }
  if (admin && target === admin) return { state: 'present', admin, common }
  // Taken away just now it has no files either.
  const nobodys = (await readdir(path).catch(() => [])).length === 0 || (await isHalfMade(path))
  return { state: nobodys ? 'missing' : 'foreign', admin, common }
}

/**
 * Nothing but a link that was not written yet, or whose record was not: git, or we, were killed while the worktree was made, before anything
 * was checked out.
 */
export async function isHalfMade(path: string): Promise<boolean> {
  const names = await readdir(path).catch(() => [])
  const file = join(path, '.git')
  const link = names.length === 1 && names[0] === '.git' ? await lstat(file).catch(() => undefined) : undefined
  if (!link?.isFile()) return false
  const admin = linkIn(await smallFileOrNone(file))
  if (link.size === 0 || !admin) return link.size === 0
  const record = await Promise.all(['HEAD', 'commondir'].map((name) => smallFileOrNone(join(resolve(path, admin), name))))
  return record.some((text) => text === '')
}

async function adminOf(common: string, path: string): Promise<string | undefined> {
  const folder = join(common, 'worktrees')
  for (const id of await readdir(folder).catch(() => [])) {
    const admin = join(folder, id)
    const at = await worktreeOf(admin)
    if (at !== undefined && (at === path || (await canonical(at)) === path)) return admin
  }
  return undefined
}

async function worktreeOf(admin: string): Promise<string | undefined> {
  const link = (await smallFileOrNone(join(admin, 'gitdir'))).trim()
  return link ? dirname(isAbsolute(link) ? link : resolve(admin, link)) : undefined
}

/** With links above it resolved, as git writes it down; it need not exist. A link in its own place is not followed. */
export async function canonical(path: string): Promise<string> {
  const above = await realpath(dirname(path)).catch(() => dirname(path))
  return join(above, basename(path))
}

/** The commit that work begins at. */
export async function baseCommit(repo: Repo, { base, strategy, line }: Pick<NewPlace, 'base' | 'strategy' | 'line'>): Promise<string> {
  const commit = isRefOrCommit(base) ? await commitAt(repo, base) : await branchCommit(repo, checkBranch(base), strategy, line)
  if (commit) return commit
  const unborn = (await commitAt(repo, 'HEAD')) === undefined
  throw new GitRefusal('missing', unborn ? `${repo.cwd} has no commit yet. Make a first one.` : `${repo.cwd} has no branch "${base}".`)
}

/** Where a branch has a line that has all of it, work begins there: it has what landed and the branch did not follow yet. */
async function branchCommit(
  repo: Repo,
  base: string,
  strategy: NewPlace['strategy'],
  told: string | null | undefined,
): Promise<string | undefined> {
  const { local, remote, line: found } = await tips(repo, base)
  const line = told === undefined ? found : (told ?? undefined)
  const commit = await chosen(repo, local, remote, strategy)
  if (!commit || !line || line === commit) return commit
  return (await isAncestor(repo, commit, line)) ? line : commit
}

async function chosen(repo: At, local: string | undefined, remote: string | undefined, strategy: NewPlace['strategy']) {
  if (!local || !remote) return local ?? remote
  if (strategy === 'local') return local
  if (strategy === 'remote') return remote
  return (await isAncestor(repo, remote, local)) ? local : remote
}

export async function isAncestor(repo: At, older: string, newer: string): Promise<boolean> {
  return older === newer || (await repo.ask(['merge-base', '--is-ancestor', older, newer])) !== undefined
}

export function lineRef(target: string): string {
  return `refs/signalbox/line/${target}`
}

/** Where a branch is here, where the last fetch saw it, and where its line is. */
export type Tips = Partial<Record<'local' | 'remote' | 'line', string | undefined>>

export async function tips(repo: Repo, branch: string): Promise<Tips> {
  const [here, there, line] = [`refs/heads/${branch}`, `refs/remotes/origin/${branch}`, lineRef(branch)]
  const found = await refs(repo, [here, there, line])
  const local = found.get(here)
  const followed =
    local?.upstream.startsWith('refs/remotes/') && local.upstream !== there ? await commitAt(repo, local.upstream) : undefined
  // Without a remote nobody fetched it: whoever can write refs has made it.
  const fetched = lastOf(repo.says, 'remote.origin.url') === undefined ? undefined : found.get(there)?.commit
  return { local: local?.commit, remote: followed ?? fetched, line: found.get(line)?.commit }
}

/** Those of these that exist. */
export async function refs(repo: At, names: string[]): Promise<Map<string, { commit: string; upstream: string }>> {
  const listed = await repo.line(['for-each-ref', '--format=%(refname) %(objectname) %(upstream)', '--', ...names])
  const found = listed.split('\n').map((line) => line.split(' '))
  return new Map(found.map(([name = '', commit = '', upstream = '']) => [name, { commit, upstream }]))
}

export function commitAt(at: At, name: string): Promise<string | undefined> {
  return at.ask(['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`])
}

async function folderAt(path: string): Promise<string | undefined> {
  if (path.includes('\0')) return undefined
  const real = await realpath(path).catch(() => undefined)
  return real && (await stat(real)).isDirectory() ? real : undefined
}
