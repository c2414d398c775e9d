import { constants } from 'node:fs'
import { lstat, mkdir, open as openFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { GitRefusal } from '../../ports/git.ts'
import { type At, LONG_MS, LOOK_MS, type Open, type Options } from './run.ts'

/** So many files are looked at at once: of tens of thousands everybody else would wait. */
const PORTION = 200
/** To read gigabytes for a look would take minutes. */
const LARGE_BYTES = 64 * 1024 * 1024

/** What is in a place now, as a tree: untracked files too, ignored ones not. */
export interface Snapshot {
  tree: string
  /** What is staged, when that is neither what was committed last nor what the files say; of an unmerged index: nothing. */
  staged: string | undefined
  head: string | undefined
  headTree: string
  /** Paths of repositories inside it, whose files are theirs. */
  nested: string[]
  /** Of what is only looked at: too large to be read for that, and as it was in the tree. */
  large: { path: string; isNew: boolean }[]
}

/** Through an index of its own: neither the real one nor HEAD is touched, so it also works in the middle of a merge or a rebase. */
export async function snapshot<T>(
  open: Open,
  place: At,
  admin: string,
  objects: 'kept' | 'forgotten',
  use: (found: Snapshot, run: Options) => Promise<T>,
): Promise<T> {
  return place.temporary(async (folder) => {
    const index = join(folder, 'index')
    const run = {
      env: { GIT_INDEX_FILE: index, ...(objects === 'kept' ? {} : await objectsIn(place, folder)) },
      timeoutMs: objects === 'kept' ? LONG_MS : LOOK_MS,
    }
    const head = await headOf(place)
    const headTree = head
      ? await place.line(['rev-parse', '--verify', `${head}^{tree}`])
      : await place.line(['hash-object', '-t', 'tree', '--stdin'])
    if (!(await copyIndex(join(admin, 'index'), index)) && head) await place.git(['read-tree', head], run)
    const staged = await place.ask(['write-tree'], run)
    const { repositories: unknown, large } = await addAll(open, place, run, objects === 'kept' ? Number.POSITIVE_INFINITY : LARGE_BYTES)
    const tree = await place.line(['write-tree'], run)
    const nested = [...new Set([...(await gitlinks(place, run)), ...unknown])]
    const differs = staged !== undefined && staged !== headTree && staged !== tree
    return use({ tree, staged: differs ? staged : undefined, head, headTree, nested, large }, run)
  })
}

/** A look leaves nothing in the repository: what it has to write goes to a folder that reads through to the real objects. */
async function objectsIn(place: At, folder: string): Promise<Record<string, string>> {
  const own = join(folder, 'objects')
  await mkdir(own)
  return { GIT_OBJECT_DIRECTORY: own, GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(place.objects) }
}

/** Git takes a file that is as old as the index for changed until it has read it; a copy must not look younger than the original. */
async function copyIndex(from: string, to: string): Promise<boolean> {
  const handle = await openFile(from, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined)
  if (!handle) return false
  try {
    const original = await handle.stat()
    if (!original.isFile()) throw new GitRefusal('failed', `${from} is not a plain file. Remove it.`)
    await writeFile(to, await handle.readFile())
    const seconds = Math.floor(original.mtimeMs / 1_000) - 1
    await utimes(to, seconds, seconds)
    return true
  } finally {
    await handle.close()
  }
}

/**
 * Like `git add --all`, which asks git inside every submodule (and runs what that one's configuration names), and which a
 * repository inside that has no commit yet keeps from adding anything. Returns the repositories inside that git does not know,
 * and what was left out because it is so large.
 */
async function addAll(
  open: Open,
  place: At,
  run: Options,
  mostBytes: number,
): Promise<{ repositories: string[]; large: Snapshot['large'] }> {
  const listed = await place.git(['ls-files', '-z', '-t', '--modified', '--deleted', '--others', '--exclude-standard'], run)
  const { paths, added } = changedIn(listed)
  const repositories = paths.filter((path) => path.endsWith('/'))
  const unborn = new Set<string>()
  for (const path of repositories) if (!(await open.inside({ top: join(place.cwd, utf8(path)) }, headOf))) unborn.add(path)
  const tooLarge = new Set(Number.isFinite(mostBytes) ? await largerThan(mostBytes, place, paths) : [])
  const read = paths.filter((path) => !unborn.has(path) && !tooLarge.has(path)).map((path) => path.replace(/\/$/, ''))
  const input = Buffer.from(read.map((path) => `${path}\0`).join(''), 'latin1')
  await place.git(['update-index', '-z', '--add', '--remove', '--replace', '--stdin'], { ...run, input })
  const large = [...tooLarge].map((path) => ({ path: utf8(path), isNew: added.has(path) }))
  return { repositories: repositories.map((path) => utf8(path).replace(/\/$/, '')), large }
}

/** File names are bytes. What is new comes last: a folder may stand where a file was, which has to go first. */
export function changedIn(listed: Buffer): { paths: string[]; added: Set<string> } {
  const tagged = [...new Set(listed.toString('latin1').split('\0'))].filter(Boolean)
  const isNew = (line: string) => line.startsWith('? ')
  const [known, added] = [tagged.filter((line) => !isNew(line)), tagged.filter(isNew)].map((lines) => lines.map((line) => line.slice(2)))
  return { paths: [...(known as string[]), ...(added as string[])], added: new Set(added) }
}

async function largerThan(bytes: number, place: At, paths: string[]): Promise<string[]> {
  const found: string[] = []
  for (let i = 0; i < paths.length; i += PORTION) {
    const some = paths.slice(i, i + PORTION)
    const sizes = await Promise.all(some.map((path) => sizeOf(place, path)))
    found.push(...some.filter((_, n) => (sizes[n] as number) > bytes))
  }
  return found
}

async function sizeOf(place: At, path: string): Promise<number> {
  const found = await lstat(Buffer.concat([Buffer.from(`${place.cwd}/`), Buffer.from(path, 'latin1')])).catch(() => undefined)
  return found?.isFile() ? found.size : 0
}

/** Work in a repository inside the place that nothing else has: its files, or commits that no remote of it knows. */
export async function unsavedInside(open: Open, place: string, nested: string[]): Promise<string | undefined> {
  for (const path of nested) {
    const inner = join(place, path)
    if (!(await lstat(join(inner, '.git')).catch(() => undefined))) continue
    const links = await open.inside({ top: inner }, async (at) => ((await hasWorkOfItsOwn(at)) ? undefined : gitlinks(at, {})))
    // Neither when it cannot be looked at: it may hold anything.
    if (!links) return path
    const deeper = await unsavedInside(open, inner, links)
    if (deeper) return join(path, deeper)
  }
  return undefined
}

async function hasWorkOfItsOwn(at: At): Promise<boolean> {
  if (await at.line(['status', '--porcelain', '-z', '--untracked-files=all', '--ignore-submodules=all'])) return true
  const onlyHere = ['rev-list', '--max-count=1', 'HEAD', '--branches', '--glob=refs/stash', '--not', '--remotes']
  return (await headOf(at)) !== undefined && (await at.line(onlyHere)) !== ''
}

function headOf(at: At): Promise<string | undefined> {
  return at.ask(['rev-parse', '--verify', '--quiet', 'HEAD'])
}

async function gitlinks(at: At, run: Options): Promise<string[]> {
  const listed = (await at.git(['ls-files', '-s', '-z'], run)).toString().split('\0')
  return listed.filter((line) => line.startsWith('160000 ')).map((line) => line.slice(line.indexOf('\t') + 1))
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString()
}
