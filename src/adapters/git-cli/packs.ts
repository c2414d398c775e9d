import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { GitRefusal } from '../../ports/git.ts'
import { exists } from './files.ts'
import type { Repo } from './run.ts'
import { plainFile, smallFileOrNone } from './small-file.ts'

/** What is in a `.keep` of ours. */
const OURS = 'signalbox'
/** Whoever collected when it was packed has ended by then. */
const SETTLED_MS = 600_000
export const MOST_INDEX_BYTES = 256 * 1024 * 1024
const MOST_KNOWN = 1_000

/**
 * A prune deletes every loose object that no ref named when it began, however long ago that was and whatever names it by now. A pack
 * with a `.keep` beside it is left alone by all of git: what we make is packed before anything is moved to it.
 */
export class Packs {
  /** By the commit. */
  readonly #known = new Map<string, string>()

  /**
   * All that a commit has and others have not. What is wrong with it, when something is: it was collected before, or its content is
   * not what its id says. Git does not look at that when it reads an object, but who makes an index of a pack has to.
   */
  async keep(repo: Repo, commit: string, ...others: string[]): Promise<string | undefined> {
    const input = [commit, ...others.map((other) => `^${other}`), ''].join('\n')
    const [listed, made] = await Promise.all([
      repo.tried(['rev-list', '--objects', '--no-object-names', '--stdin'], { input }),
      repo.piped(['pack-objects', '--revs', '--stdout', '--quiet', '--window=0'], input, [
        'index-pack',
        '--stdin',
        '--index-version=2',
        `--keep=${OURS}`,
      ]),
    ])
    const name = /^(?:keep|pack)\t([0-9a-f]+)$/m.exec(made.stdout.toString())?.[1]
    const failed = listed.failed ?? made.failed
    if (failed !== undefined || !name) return failed ?? 'git has packed nothing'
    const index = join(repo.objects, 'pack', `pack-${name}.idx`)
    const bytes = await plainFile(index, MOST_INDEX_BYTES)
    const packed = new Set(bytes ? idsIn(bytes, commit.length / 2) : [])
    const wrong = listed.stdout
      .toString()
      .split('\n')
      .find((id) => id && !packed.has(id))
    if (wrong) return `${wrong} is not what its id says`
    if (this.#known.size >= MOST_KNOWN) this.#known.clear()
    this.#known.set(commit, index)
    return undefined
  }

  /** The same, when it may have been done before. */
  async kept(repo: Repo, commit: string, other: string): Promise<string | undefined> {
    const index = this.#known.get(commit)
    const files = index ? [index, index.replace(/idx$/, 'pack')] : []
    const there = await Promise.all(files.map(exists))
    return there.length && !there.includes(false) ? undefined : this.keep(repo, commit, other)
  }
}

export function damaged(what: string, damage: string): GitRefusal {
  return new GitRefusal('damaged', `${what} cannot be read: ${damage}. \`git fsck\` tells what is missing; bring it back, then retry.`)
}

/** The second version of a pack's index: a head of 8 bytes, 256 counts of which the last is that of all, then the ids in order. */
export function* idsIn(index: Buffer, bytes: number): Generator<string> {
  const first = 8 + 256 * 4
  if (index.length < first) return
  const count = Math.min(index.readUInt32BE(first - 4), Math.floor((index.length - first) / bytes))
  for (let n = 0; n < count; n++) yield index.subarray(first + n * bytes, first + (n + 1) * bytes).toString('hex')
}

/**
 * Many small packs would make git slow, and have it collect all the time. One whose objects are all there by themselves is not needed
 * any more; one that git has taken for the only copy becomes a pack like any other.
 */
export async function sweepPacks(repo: Repo): Promise<void> {
  const folder = join(repo.objects, 'pack')
  for (const file of await readdir(folder).catch(() => [])) {
    const name = /^(pack-[0-9a-f]+)\.keep$/.exec(file)?.[1]
    if (!name) continue
    const keep = join(folder, file)
    const made = await stat(keep).catch(() => undefined)
    const settled = made && Date.now() - made.mtimeMs > SETTLED_MS
    if (!settled || (await smallFileOrNone(keep)).trim() !== OURS) continue
    const bytes = await plainFile(join(folder, `${name}.idx`), MOST_INDEX_BYTES).catch(() => undefined)
    const ids = bytes ? [...idsIn(bytes, (name.length - 'pack-'.length) / 2)] : []
    const loose = await Promise.all(ids.map((id) => exists(join(repo.objects, id.slice(0, 2), id.slice(2)))))
    // The index first: without it git does not look for the pack.
    const files = loose.length && loose.every(Boolean) ? [`${name}.idx`, `${name}.pack`, `${name}.rev`, file] : [file]
    for (const one of files) await rm(join(folder, one), { force: true })
  }
}
