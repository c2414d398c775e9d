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
const MOST_INDEX_BYTES = 256 * 1024 * 1024
const MOST_KNOWN = 1_000

/**
 * A prune deletes every loose object that no ref named when it began, however long ago that was and whatever names it by now. A pack
 * with a `.keep` beside it is left alone by all of git: what we make is packed before anything is moved to it.
 */
export class Packs {
  /** By the commit. */
  readonly #known = new Map<string, string>()

  /** All that a commit has and the others have not. What is wrong with it, when something is: it was collected before, or is not what its id says. */
  async keep(repo: Repo, commit: string, ...others: string[]): Promise<string | undefined> {
    const input = [commit, ...others.map((other) => `^${other}`), ''].join('\n')
    const { stdout, failed } = await repo.piped(['pack-objects', '--revs', '--stdout', '--quiet', '--window=0'], input, [
      'index-pack',
      '--stdin',
      `--keep=${OURS}`,
    ])
    const name = /^(?:keep|pack)\t([0-9a-f]+)$/m.exec(stdout.toString())?.[1]
    if (failed !== undefined || !name) return failed ?? 'git has packed nothing'
    if (this.#known.size >= MOST_KNOWN) this.#known.clear()
    this.#known.set(commit, join(repo.objects, 'pack', `pack-${name}.idx`))
    return undefined
  }

  /** What is wrong with all that a commit has and another has not. Git itself does not look whether a content is what its id says. */
  async damageIn(repo: Repo, commit: string, other: string): Promise<string | undefined> {
    const { stdout, failed } = await repo.tried(['rev-list', '--objects', '--no-object-names', commit, '--not', other])
    if (failed !== undefined) return failed
    const packed =
      (await this.#packed(commit)) ?? ((await this.keep(repo, commit, other)) === undefined ? await this.#packed(commit) : undefined)
    const [wrong] = stdout
      .toString()
      .split('\n')
      .filter((id) => id && !packed?.has(id))
    return wrong && `${wrong} is not there, or is not what its id says`
  }

  async requireWhole(repo: Repo, commit: string, other: string): Promise<void> {
    const damage = await this.damageIn(repo, commit, other)
    if (damage !== undefined) throw damaged(commit, damage)
  }

  /** Who packs a pack has read every object, and its index says what each of them is. */
  async #packed(commit: string): Promise<Set<string> | undefined> {
    const index = this.#known.get(commit)
    const bytes = index && (await plainFile(index, MOST_INDEX_BYTES).catch(() => undefined))
    return bytes ? new Set(idsIn(bytes, commit.length / 2)) : undefined
  }
}

export function damaged(what: string, damage: string): GitRefusal {
  return new GitRefusal('damaged', `${what} cannot be read: ${damage}. \`git fsck\` tells what is missing; bring it back, then retry.`)
}

/** The second version of a pack's index: a head of 8 bytes, 256 counts of which the last is that of all, then the ids in order. */
function* idsIn(index: Buffer, bytes: number): Generator<string> {
  const [first, count] = [8 + 256 * 4, index.readUInt32BE(8 + 255 * 4)]
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
    const files = bytes && loose.every(Boolean) ? [`${name}.idx`, `${name}.pack`, `${name}.rev`, file] : [file]
    for (const one of files) await rm(join(folder, one), { force: true })
  }
}
