import { lstat, readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { GitRefusal, type NewPlace, type Place, type RepoFacts } from '../../ports/git.ts'
import { checkBranch, isRefOrCommit } from './names.ts'
import type { At, Open } from './run.ts'

/** What is at a place. `admin` is git's own folder about it, also when the place itself is gone. */
export interface Found {
  state: 'present' | 'missing' | 'foreign'
  admin: string | undefined
  common: string
}

export async function inspect(open: Open, path: string): Promise<RepoFacts | undefined> {
  const folder = await folderAt(path)
  if (!folder) return undefined
  const here = await open(folder, { anywhereAbove: true })
  const found = await here.ask(['rev-parse', '--show-toplevel', '--is-inside-work-tree', '--absolute-git-dir'])
  const [toplevel, inside, gitDir] = found?.split('\n') ?? []
  if (!toplevel || inside !== 'true') return undefined
  // core.worktree can claim any folder above, even /: it counts only when git finds the same repository from there.
  const top = await folderAt(toplevel)
  if (!top || (await (await open(top, { anywhereAbove: true })).ask(['rev-parse', '--absolute-git-dir'])) !== gitDir) return undefined
  const branch = await here.ask(['symbolic-ref', '--quiet', '--short', 'HEAD'])
  const branches = await here.ask(['for-each-ref', '--format=%(refname:short)', 'refs/heads'])
  return {
    top,
    branch: branch || null,
    branches: branches ? branches.split('\n') : [],
    remote: (await here.ask(['config', '--get', 'remote.origin.url'])) || null,
    head: (await here.ask(['rev-parse', '--verify', '--quiet', 'HEAD'])) || null,
  }
}

export async function openRepo(open: Open, repo: string): Promise<At & { common: string }> {
  const at = (await folderAt(repo)) ? await open(repo) : undefined
  const common = at?.common ?? (await at?.ask(['rev-parse', '--path-format=absolute', '--git-common-dir']))
  if (!at || !common) throw noRepository(repo)
  return { ...at, common: await realpath(common) }
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
  const link = kind?.isDirectory() ? await readFile(join(path, '.git'), 'utf8').catch(() => '') : ''
  const target = link.startsWith('gitdir: ') ? await realpath(resolve(path, link.slice(8).trim())).catch(() => undefined) : undefined
  // Each names the other: none of perhaps hundreds of others is this one.
  if (target && dirname(target) === join(common, 'worktrees') && (await worktreeOf(target)) === path)
    return { state: 'present', admin: target, common }
  const admin = await adminOf(common, path)
  if (!kind) return { state: 'missing', admin, common }
  if (!kind.isDirectory()) return { state: 'foreign', admin, common }
  if (admin && target === admin) return { state: 'present', admin, common }
  // Taken away just now it has no files either.
  return { state: (await readdir(path).catch(() => [])).length === 0 ? 'missing' : 'foreign', admin, common }
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
  const link = (await readFile(join(admin, 'gitdir'), 'utf8').catch(() => '')).trim()
  return link ? dirname(isAbsolute(link) ? link : resolve(admin, link)) : undefined
}

/** With links above it resolved, as git writes it down; it need not exist. A link in its own place is not followed. */
export async function canonical(path: string): Promise<string> {
  const above = await realpath(dirname(path)).catch(() => dirname(path))
  return join(above, basename(path))
}

/** The commit that work begins at. */
export async function baseCommit(repo: At, { base, strategy }: Pick<NewPlace, 'base' | 'strategy'>): Promise<string> {
  const commit = isRefOrCommit(base) ? await commitAt(repo, base) : await branchCommit(repo, checkBranch(base), strategy)
  if (commit) return commit
  const unborn = (await commitAt(repo, 'HEAD')) === undefined
  throw new GitRefusal('missing', unborn ? `${repo.cwd} has no commit yet. Make a first one.` : `${repo.cwd} has no branch "${base}".`)
}

/** Where a branch has a line that has all of it, work begins there: it has what landed and the branch did not follow yet. */
async function branchCommit(repo: At, base: string, strategy: NewPlace['strategy']): Promise<string | undefined> {
  const { local, remote, line } = await tips(repo, base)
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

export async function tips(repo: At, branch: string): Promise<Tips> {
  const [here, there, line] = [`refs/heads/${branch}`, `refs/remotes/origin/${branch}`, lineRef(branch)]
  const found = await refs(repo, [here, there, line])
  const local = found.get(here)
  const followed =
    local?.upstream.startsWith('refs/remotes/') && local.upstream !== there ? await commitAt(repo, local.upstream) : undefined
  return { local: local?.commit, remote: followed ?? found.get(there)?.commit, line: found.get(line)?.commit }
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
