import { createHash, randomUUID } from 'node:crypto'
import { lstat, mkdir, mkdtemp, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { counting, isOn, lastOf, type Setting, written } from './config.ts'
import { exists } from './files.ts'
import { smallFile } from './small-file.ts'
import { Turns } from './turns.ts'

/** What git is to find where the repository has it. The rest (configuration, attributes, hooks, grafts, rerere) it finds in ours. */
const SHARED = ['refs', 'packed-refs', 'reftable', 'logs', 'worktrees', 'info/exclude']
/** Where the repository has none yet, a filter makes its own. */
const LFS = 'lfs'
/** The main checkout is not ours: what it has checked out is in its own folder. */
const HEAD = 'ref: refs/signalbox/none\n'
const MOST_BYTES = 8 * 1024 * 1024
/** Nothing runs for so long. */
const LEFT_BEHIND_MS = 24 * 60 * 60 * 1_000

/** Of the commits that the repository calls its roots, those whose parents it has not. */
export type Roots = (own: string, ids: string[]) => Promise<string[]>

/**
 * A git directory of ours over the refs and objects of a repository. Git reads the configuration, the attributes and all that can
 * name a program from here, so nothing that a worker writes into the repository's own has an effect. Runs do not see the folder that
 * all of them are in; a run that could not be isolated does, so what is there is compared with what we wrote at every opening.
 */
export class OwnDirectories {
  readonly #root: string
  readonly #turns = new Turns()
  readonly #roots = new Map<string, { shallow: string; honest: string }>()

  constructor(root: string) {
    this.#root = root
  }

  /** The git directory. */
  pathFor(common: string): string {
    return join(this.#root, createHash('sha256').update(common).digest('hex').slice(0, 16))
  }

  /** What we write down about a repository. */
  notesFor(common: string): string {
    return `${this.pathFor(common)}.notes`
  }

  lockFor(common: string): string {
    return `${this.pathFor(common)}.turn`
  }

  /** A folder for one use. */
  async temporary<T>(use: (folder: string) => Promise<T>): Promise<T> {
    const all = join(this.#root, 'tmp')
    await mkdir(all, { recursive: true, mode: 0o700 })
    const folder = await mkdtemp(join(all, '-'))
    try {
      return await use(folder)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  /** Temporary folders of a daemon that was killed. */
  async sweep(): Promise<void> {
    const all = join(this.#root, 'tmp')
    for (const name of await readdir(all).catch(() => [])) {
      const made = await lstat(join(all, name)).catch(() => undefined)
      if (made && Date.now() - made.mtimeMs > LEFT_BEHIND_MS) await rm(join(all, name), { recursive: true, force: true })
    }
  }

  /** Also when another process, or an attempt that was cut off, made it before, or half of it. */
  async make(common: string, settings: Setting[], roots: Roots): Promise<string> {
    const own = this.pathFor(common)
    await this.#turns.take(own, async () => {
      await mkdir(join(common, 'logs'), { recursive: true }).catch(() => {})
      await mkdir(this.notesFor(common), { recursive: true, mode: 0o700 })
      await settle(own, common, settings, (shallow) => this.#honest(own, shallow, roots))
    })
    return own
  }

  /** For one look at a repository inside of a worktree; gone afterwards. */
  lend<T>(common: string, settings: Setting[], roots: Roots, use: (own: string) => Promise<T>): Promise<T> {
    return this.temporary(async (folder) => {
      const own = join(folder, 'git')
      await settle(own, common, settings, (shallow) => honestRoots(own, shallow, roots))
      return use(own)
    })
  }

  async #honest(own: string, shallow: string, roots: Roots): Promise<string> {
    const known = this.#roots.get(own)
    if (known?.shallow === shallow) return known.honest
    const honest = await honestRoots(own, shallow, roots)
    this.#roots.set(own, { shallow, honest })
    return honest
  }
}

/** Makes it what it is to be; where it is that already, only looks. */
async function settle(own: string, common: string, settings: Setting[], honest: (shallow: string) => Promise<string>): Promise<void> {
  for (const folder of [own, join(own, 'info')]) await makeFolder(folder)
  await Promise.all(SHARED.map((name) => link(join(common, name), join(own, name))))
  // The only copy of a file may be in one that a filter made.
  if ((await exists(join(common, LFS))) && !(await isFolder(join(own, LFS)))) await link(join(common, LFS), join(own, LFS))
  await Promise.all([put(own, 'HEAD', HEAD), put(own, 'config', configFor(settings))])
  const shallow = await smallFile(join(common, 'shallow'), MOST_BYTES)
  const roots = shallow ? await honest(shallow) : ''
  if (roots) await put(own, 'shallow', roots)
  const known = new Set([...SHARED, LFS, 'HEAD', 'config', 'info', ...(roots ? ['shallow'] : [])])
  await removeOthers(own, (name) => known.has(name))
  await removeOthers(join(own, 'info'), (name) => known.has(`info/${name}`))
}

async function makeFolder(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found?.isDirectory()) return
  if (found) await rm(path, { force: true })
  await mkdir(path, { recursive: true, mode: 0o700 })
}

async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isDirectory() ?? false
}

function configFor(settings: Setting[]): string {
  // A bare repository has no reflogs unless it says so; ours is bare, whatever the other is.
  const logs: Setting[] =
    lastOf(settings, 'core.logallrefupdates') || isOn(settings, 'core.bare') ? [] : [['core.logallrefupdates', 'true']]
  return written([['core.bare', 'true'], ...logs, ...counting(settings)])
}

/** Where a clone was cut off. As a graft it would take parents from any commit: so only of those whose parents are really not there. */
async function honestRoots(own: string, shallow: string, roots: Roots): Promise<string> {
  const ids = shallow.split('\n').filter((line) => /^[0-9a-f]{40,64}$/.test(line))
  const honest = ids.length ? await roots(own, ids) : []
  return honest.map((id) => `${id}\n`).join('')
}

async function link(to: string, path: string): Promise<void> {
  if ((await readlink(path).catch(() => undefined)) === to) return
  await rm(path, { recursive: true, force: true })
  await symlink(to, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}

/** Made beside the directory: in it another process would take the half for something that is not ours. */
async function put(own: string, name: string, text: string): Promise<void> {
  const path = join(own, name)
  const isOurs = (await lstat(path).catch(() => undefined))?.isFile()
  if (isOurs && (await smallFile(path, MOST_BYTES).catch(() => undefined)) === text) return
  if (!isOurs) await rm(path, { recursive: true, force: true })
  await replace(path, text, dirname(own))
}

async function removeOthers(folder: string, isOurs: (name: string) => boolean): Promise<void> {
  for (const name of await readdir(folder)) if (!isOurs(name)) await rm(join(folder, name), { recursive: true, force: true })
}

/** Whole or not at all: somebody may be reading it. */
export async function replace(path: string, text: string, madeIn = dirname(path)): Promise<void> {
  const fresh = join(madeIn, randomUUID())
  await writeFile(fresh, text, { mode: 0o600, flag: 'wx' })
  await rename(fresh, path)
}
