import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { damaged, idsIn, MOST_INDEX_BYTES } from './packs.ts'
import type { Options, Repo } from './run.ts'
import { plainFile } from './small-file.ts'

/** Trees too: whoever compares reads them. */
export const DIFFERING = ['diff-tree', '-r', '-t', '-z', '--raw', '--no-renames']

/**
 * Git does not look whether the content of an object is what its id says, and workers can write objects. These are copied to where git
 * finds nothing else, by a pack whose index has to be made from their content: whoever reads with the options reads what the ids say,
 * or fails. `what` is told when an object is missing or something else. With the others: what is not among these is found where it was.
 */
export function proven<T>(
  repo: Repo,
  what: string,
  ids: string[],
  found: 'alone' | 'with the others',
  read: (from: Options) => Promise<T>,
): Promise<T> {
  const wanted = [...new Set(ids)]
  return repo.temporary(async (folder) => {
    const file = join(folder, 'pack', `pack-${'0'.repeat(40)}`)
    await mkdir(join(folder, 'pack'), { mode: 0o700 })
    const made = await repo.piped(['pack-objects', '--stdout', '--quiet', '--window=0'], `${wanted.join('\n')}\n`, [
      'index-pack',
      '--stdin',
      '--index-version=2',
      `${file}.pack`,
    ])
    if (made.failed !== undefined) throw damaged(what, made.failed)
    const index = await plainFile(`${file}.idx`, MOST_INDEX_BYTES)
    const packed = new Set(index ? idsIn(index, (wanted[0]?.length ?? 40) / 2) : [])
    const wrong = wanted.find((id) => !packed.has(id))
    if (wrong) throw damaged(what, `${wrong} is not what its id says`)
    if (found === 'with the others') {
      await mkdir(join(folder, 'info'))
      await writeFile(join(folder, 'info', 'alternates'), `${repo.objects}\n`)
    }
    return read({ env: { GIT_OBJECT_DIRECTORY: folder } })
  })
}

/** All that a comparison of two commits reads: both, and the trees and files in which they differ. */
export async function comparedBy(repo: Repo, what: string, from: string, to: string, path: string[]): Promise<string[]> {
  const [trees, differing] = await Promise.all([
    repo.tried(['rev-parse', `${from}^{tree}`, `${to}^{tree}`]),
    repo.tried([...DIFFERING, from, to, ...path]),
  ])
  const failed = trees.failed ?? differing.failed
  if (failed !== undefined) throw damaged(what, failed)
  return [from, to, ...trees.stdout.toString().trim().split('\n'), ...objectsIn(differing.stdout).map(({ id }) => id)]
}

/**
 * All that a merge reads of two comparisons: trees, and files that differ in both. Where one of these was deleted, what was added may be
 * the same file under another name. Other files are not read, and a partial clone may not have them.
 */
export function mergedBy(raw: Buffer): string[] {
  const objects = objectsIn(raw)
  const times = new Map<string, number>()
  for (const { path, isOld, status } of objects) if (isOld || status === 'A') times.set(path, (times.get(path) ?? 0) + 1)
  const isInBoth = (path: string) => (times.get(path) ?? 0) > 1
  const moved = objects.some(({ path, status }) => status === 'D' && isInBoth(path))
  return objects.filter(({ path, isTree, status }) => isTree || isInBoth(path) || (moved && status === 'A')).map(({ id }) => id)
}

interface Differing {
  id: string
  path: string
  isTree: boolean
  isOld: boolean
  status: string
}

/** `:mode mode id id S`, path. The commit of a submodule is not in this repository. */
function objectsIn(raw: Buffer): Differing[] {
  const parts = raw.toString('latin1').split('\0')
  const found: Differing[] = []
  for (let n = 0; n + 1 < parts.length; n += 2) {
    const [before, after, old, fresh, status = ''] = (parts[n] ?? '').slice(1).split(' ')
    const path = parts[n + 1] ?? ''
    for (const [mode, id, isOld] of [[before, old, true] as const, [after, fresh, false] as const])
      if (id && mode !== '000000' && mode !== '160000') found.push({ id, path, isTree: mode === '040000', isOld, status })
  }
  return found
}

/** The same repository, with these options for every git. */
export function readingFrom(repo: Repo, from: Options): Repo {
  const both = (options: Options = {}): Options => ({ ...options, ...from, env: { ...options.env, ...from.env } })
  return {
    ...repo,
    git: (args, options) => repo.git(args, both(options)),
    line: (args, options) => repo.line(args, both(options)),
    ask: (args, options) => repo.ask(args, both(options)),
    tried: (args, options) => repo.tried(args, both(options)),
  }
}

export function isObject(id: string, type: 'commit' | 'blob', content: Buffer): boolean {
  const hash = createHash(id.length === 40 ? 'sha1' : 'sha256')
  return hash.update(`${type} ${content.length}\0`).update(content).digest('hex') === id
}
