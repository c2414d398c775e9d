import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { damaged, idsIn, MOST_INDEX_BYTES } from './packs.ts'
import type { Options, Repo } from './run.ts'
import { plainFile } from './small-file.ts'

/** Whoever made it was killed. */
const LEFT_MS = 3_600_000

/**
 * Git does not look whether the content of an object is what its id says, and workers can write objects. These are copied to where git
 * finds nothing else, by a pack whose index has to be made from their content: whoever reads with the options reads what the ids say,
 * or fails. `what` is told when an object is missing or something else.
 */
export async function proven<T>(repo: Repo, what: string, ids: Iterable<string>, read: (from: Options) => Promise<T>): Promise<T> {
  const all = join(repo.own, 'proven')
  await sweep(all)
  const folder = join(all, randomUUID())
  const file = join(folder, 'pack', `pack-${'0'.repeat(40)}`)
  const wanted = [...new Set(ids)]
  try {
    await mkdir(join(folder, 'pack'), { recursive: true, mode: 0o700 })
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
    return await read({ env: { GIT_OBJECT_DIRECTORY: folder } })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** All that a comparison of two commits reads: both, and the trees and files in which they differ. */
export async function comparedBy(repo: Repo, what: string, from: string, to: string, path: string[]): Promise<string[]> {
  const [trees, differing] = await Promise.all([
    repo.tried(['rev-parse', `${from}^{tree}`, `${to}^{tree}`]),
    repo.tried(['diff-tree', '-r', '-t', '-z', '--raw', '--no-renames', from, to, ...path]),
  ])
  const failed = trees.failed ?? differing.failed
  if (failed !== undefined) throw damaged(what, failed)
  return [from, to, ...trees.stdout.toString().trim().split('\n'), ...objectsIn(differing.stdout)]
}

/** `:mode mode id id S`, path. The commit of a submodule is not in this repository. */
function objectsIn(raw: Buffer): string[] {
  const changes = raw.toString('latin1').split('\0')
  return changes.flatMap((change, n) => {
    if (n % 2) return []
    const [before = '', after = '', old = '', fresh = ''] = change.slice(1).split(' ')
    return [
      [before, old],
      [after, fresh],
    ].flatMap(([mode, id]) => (!id || mode === '000000' || mode === '160000' ? [] : [id]))
  })
}

async function sweep(all: string): Promise<void> {
  for (const name of await readdir(all).catch(() => [])) {
    const made = await stat(join(all, name)).catch(() => undefined)
    if (made && Date.now() - made.mtimeMs > LEFT_MS) await rm(join(all, name), { recursive: true, force: true })
  }
}
