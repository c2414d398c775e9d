import { createHash, randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { counting, isOn, lastOf, type Setting, written } from './config.ts'
import { exists } from './files.ts'
import { smallFile } from './small-file.ts'

/** What git is to find where the repository has it. The rest (configuration, attributes, hooks, grafts, rerere) it finds in ours. */
const SHARED = ['refs', 'packed-refs', 'reftable', 'logs', 'worktrees', 'info/exclude']
/** Where the repository has none yet, a filter makes its own. */
const SHARED_WHEN_THERE = ['lfs']
/** The main checkout is not ours: what it has checked out is in its own folder. */
const HEAD = 'ref: refs/signalbox/none\n'
const MOST_SHALLOW_BYTES = 8 * 1024 * 1024

/** Of the commits that the repository calls its roots, those whose parents it has not. */
export type Roots = (own: string, ids: string[]) => Promise<string[]>

/**
 * A git directory of ours over the refs and objects of a repository. Git reads the configuration, the attributes and all that can
 * name a program from here, so nothing that a worker writes into the repository's own has an effect.
 */
export class OwnDirectories {
  readonly #root: string
  readonly #made = new Map<string, string>()

  constructor(root: string) {
    this.#root = root
  }

  pathFor(common: string): string {
    return join(this.#root, createHash('sha256').update(common).digest('hex').slice(0, 16))
  }

  /** Also when another process, or an attempt that was cut off, made it before, or half of it. */
  async make(common: string, settings: Setting[], roots: Roots): Promise<string> {
    const own = this.pathFor(common)
    const wanted = await contentFor(common, settings)
    const made = JSON.stringify(wanted)
    if (this.#made.get(own) === made && (await exists(join(own, 'config')))) return own
    await mkdir(join(common, 'logs'), { recursive: true }).catch(() => {})
    await fill(own, common, wanted, roots)
    this.#made.set(own, made)
    return own
  }

  /** For one look at a repository inside of a worktree; gone afterwards. */
  async lend<T>(common: string, settings: Setting[], roots: Roots, use: (own: string) => Promise<T>): Promise<T> {
    const folder = await mkdtemp(join(tmpdir(), 'signalbox-own-'))
    try {
      await fill(folder, common, await contentFor(common, settings), roots)
      return await use(folder)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
}

interface Content {
  config: string
  shallow: string
}

async function contentFor(common: string, settings: Setting[]): Promise<Content> {
  return { config: configFor(settings), shallow: (await smallFile(join(common, 'shallow'), MOST_SHALLOW_BYTES)) ?? '' }
}

async function fill(own: string, common: string, { config, shallow }: Content, roots: Roots): Promise<void> {
  await mkdir(join(own, 'info'), { recursive: true, mode: 0o700 })
  for (const name of SHARED) await link(join(common, name), join(own, name))
  for (const name of SHARED_WHEN_THERE) if (await exists(join(common, name))) await link(join(common, name), join(own, name))
  await put(join(own, 'HEAD'), HEAD)
  await put(join(own, 'config'), config)
  await putRoots(own, shallow, roots)
}

function configFor(settings: Setting[]): string {
  // A bare repository has no reflogs unless it says so; ours is bare, whatever the other is.
  const logs: Setting[] =
    lastOf(settings, 'core.logallrefupdates') || isOn(settings, 'core.bare') ? [] : [['core.logallrefupdates', 'true']]
  return written([['core.bare', 'true'], ...logs, ...counting(settings)])
}

/** Where a clone was cut off. As a graft it would take parents from any commit: so only of those whose parents are really not there. */
async function putRoots(own: string, shallow: string, roots: Roots): Promise<void> {
  const ids = shallow.split('\n').filter((line) => /^[0-9a-f]{40,64}$/.test(line))
  const honest = ids.length ? await roots(own, ids) : []
  if (honest.length) await put(join(own, 'shallow'), `${honest.join('\n')}\n`)
  else await rm(join(own, 'shallow'), { force: true })
}

async function link(to: string, path: string): Promise<void> {
  await symlink(to, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}

/** Whole or not at all: a git may be reading it. */
export async function put(path: string, text: string): Promise<void> {
  const fresh = `${path}.${randomUUID()}`
  await writeFile(fresh, text, { mode: 0o600 })
  await rename(fresh, path)
}
