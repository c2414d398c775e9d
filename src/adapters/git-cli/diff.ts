import type { Diff, DiffRequest, Place } from '../../ports/git.ts'
import { GitRefusal } from '../../ports/git.ts'
import { comparedBy, proven } from './proven.ts'
import { commitAt, isAncestor } from './repo.ts'
import type { At, Open, Options, Repo } from './run.ts'
import { type Snapshot, snapshot } from './tree.ts'

const MOST_FILES = 5_000
const COMMON = ['diff-tree', '-r', '--find-renames', '--no-ext-diff', '--no-textconv', '--no-color', '--submodule=short']

/** Of the files in a place, committed or not. */
export async function diffOfPlace(open: Open, at: At, admin: string, request: DiffRequest): Promise<Diff> {
  const from = await beganAt(at, await forkOf(at, 'HEAD', request))
  return snapshot(open, at, admin, 'forgotten', async ({ tree, large }, run) => {
    const diff = await between(at, { ...request, from }, tree, run)
    return withLarge({ ...diff, commit: null, tip: null }, large, request.path)
  })
}

/** Those are told like binary files: that they differ, and not how. */
export function withLarge(diff: Diff, large: Snapshot['large'], path: string | undefined): Diff {
  const unread = new Set(large.map((one) => one.path))
  const asked = large.filter((one) => path === undefined || one.path === path || one.path.startsWith(`${path}/`))
  const files = [
    ...diff.files.filter((file) => !unread.has(file.path)),
    ...asked.map((one) => ({ path: one.path, from: null, status: one.isNew ? 'A' : 'M', added: null, removed: null })),
  ]
  return { ...diff, files: files.slice(0, MOST_FILES), cut: diff.cut || files.length > MOST_FILES }
}

/** Of a commit that was asked for, wherever the branch is by then; else of a place that is gone: what was committed in it. */
export async function diffOfCommit(repo: Repo, place: Place, request: DiffRequest): Promise<Diff> {
  const branch = `refs/heads/${place.branch}`
  const tip = await commitAt(repo, branch)
  const commit = request.at === undefined || request.at === branch ? tip : await commitAt(repo, request.at)
  if (!commit && request.at) throw new GitRefusal('missing', `${repo.cwd} has no commit ${request.at}.`)
  if (!commit) throw new GitRefusal('missing', `Neither ${place.path} nor the branch ${place.branch} is there.`)
  const from = await beganAt(repo, await forkOf(repo, commit, request))
  const what = `What ${place.branch} changes`
  const objects = await comparedBy(repo, what, from, commit, pathspec(request.path))
  const diff = await proven(repo, what, objects, 'alone', (run) => between(repo, { ...request, from }, commit, run))
  return { ...diff, commit, tip: tip ?? null }
}

/** Where the work left what it follows, for the last time; unless it began later, at what nothing that it follows has taken in yet. */
async function forkOf(at: At, head: string, { from, follows }: DiffRequest): Promise<string> {
  const fork = follows && (await at.ask(['merge-base', '--end-of-options', follows, head]))
  if (!fork || fork === from) return from
  const beganLater = (await isAncestor(at, fork, from)) && (await isAncestor(at, from, head))
  return beganLater ? from : fork
}

async function between(
  at: At,
  { from, path, bytes }: DiffRequest,
  to: string,
  run: Options,
): Promise<Pick<Diff, 'files' | 'text' | 'cut'>> {
  const between = [from, to, ...pathspec(path)]
  const [raw, counts, patch] = await Promise.all([
    at.git([...COMMON, '--raw', '-z', ...between], run),
    at.git([...COMMON, '--numstat', '-z', ...between], run),
    at.git([...COMMON, '--patch', '--src-prefix=a/', '--dst-prefix=b/', ...between], { ...run, cutAfter: bytes + 1 }),
  ])
  const lines = countsByPath(fields(counts))
  const files = changes(fields(raw)).map((change) => ({ ...change, ...(lines.get(change.path) ?? { added: null, removed: null }) }))
  const tooLong = patch.length > bytes
  return {
    files: files.slice(0, MOST_FILES),
    text: wholeLines(patch, tooLong ? bytes : patch.length),
    cut: tooLong || files.length > MOST_FILES,
  }
}

async function beganAt(at: At, from: string): Promise<string> {
  const base = await commitAt(at, from)
  if (!base) throw new GitRefusal('missing', `The commit ${from} that the work began at is not there any more.`)
  return base
}

function pathspec(path: string | undefined): string[] {
  if (path?.includes('\0')) throw new GitRefusal('invalid', 'A path cannot have a NUL in it.')
  return path ? ['--', path] : []
}

/** Never half a line, nor half a character. */
function wholeLines(patch: Buffer, bytes: number): string {
  if (bytes >= patch.length) return patch.toString()
  return patch.subarray(0, patch.lastIndexOf('\n', bytes - 1) + 1).toString()
}

function fields(output: Buffer): string[] {
  return output.toString().split('\0').slice(0, -1)
}

/** `:mode mode hash hash S`, path; of a rename `R90`, path, path. */
function changes(parts: string[]): Pick<Diff['files'][number], 'path' | 'from' | 'status'>[] {
  const found = []
  for (let i = 0; i < parts.length; ) {
    const status = (parts[i++] ?? '').split(' ')[4]?.[0] ?? 'M'
    const first = parts[i++] ?? ''
    const moved = status === 'R' || status === 'C'
    found.push({ path: moved ? (parts[i++] ?? '') : first, from: moved ? first : null, status })
  }
  return found
}

/** `added TAB removed TAB path`; of a rename the path is empty and two follow. Of a binary file both are `-`. */
function countsByPath(parts: string[]): Map<string, { added: number | null; removed: number | null }> {
  const found = new Map<string, { added: number | null; removed: number | null }>()
  for (let i = 0; i < parts.length; i++) {
    const [added = '-', removed = '-', ...name] = (parts[i] ?? '').split('\t')
    const moved = name.join('\t') === ''
    if (moved) i += 2
    found.set(moved ? (parts[i] ?? '') : name.join('\t'), { added: count(added), removed: count(removed) })
  }
  return found
}

function count(text: string): number | null {
  return text === '-' ? null : Number(text)
}
