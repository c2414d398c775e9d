import { createHash, randomUUID } from 'node:crypto'
import { closeSync, constants, existsSync, fstatSync, lstatSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { lstat, mkdir, mkdtemp, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { counting, isOn, lastOf, type Setting, written } from './config.ts'
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
    const [own, notes] = [this.pathFor(common), this.notesFor(common)]
    const shallow = await shallowIn(common)
    const known = this.#roots.get(own)
    const isThere = known?.shallow === shallow && existsSync(notes) && isAsWritten(own, common, filesFor(settings, known.honest))
    if (isThere) return own
    await this.#turns.take(own, async () => {
      await mkdir(join(common, 'logs'), { recursive: true }).catch(() => {})
      await mkdir(notes, { recursive: true, mode: 0o700 })
      const honest = await settle(own, common, settings, shallow, roots)
      this.#roots.set(own, { shallow, honest })
    })
    return own
  }

  /** For one look at a repository inside of a worktree; gone afterwards. */
  lend<T>(common: string, settings: Setting[], roots: Roots, use: (own: string) => Promise<T>): Promise<T> {
    return this.temporary(async (folder) => {
      const own = join(folder, 'git')
      await settle(own, common, settings, await shallowIn(common), roots)
      return use(own)
    })
  }
}

async function shallowIn(common: string): Promise<string> {
  return (await smallFile(join(common, 'shallow'), MOST_BYTES)) ?? ''
}

function filesFor(settings: Setting[], roots: string): Record<string, string> {
  return { HEAD, config: configFor(settings), ...(roots ? { shallow: roots } : {}) }
}

/** Makes it what it is to be. Returns the roots that are in it. */
async function settle(own: string, common: string, settings: Setting[], shallow: string, roots: Roots): Promise<string> {
  for (const folder of [own, join(own, 'info')]) await makeFolder(folder)
  for (const name of SHARED) await link(join(common, name), join(own, name))
  if (!lfsIsRight(own, common)) await link(join(common, LFS), join(own, LFS))
  for (const [name, text] of Object.entries(filesFor(settings, ''))) await put(own, name, text)
  const honest = await honestRoots(own, shallow, roots)
  if (honest) await put(own, 'shallow', honest)
  const known = namesIn(filesFor(settings, honest))
  await removeOthers(own, (name) => known.has(name))
  await removeOthers(join(own, 'info'), (name) => known.has(`info/${name}`))
  return honest
}

function namesIn(files: Record<string, string>): Set<string> {
  return new Set([...SHARED, LFS, 'info', ...Object.keys(files)])
}

/** The only copy of a file may be in a folder that a filter made, so that stays. */
function lfsIsRight(own: string, common: string): boolean {
  const found = lstatSync(join(own, LFS), { throwIfNoEntry: false })
  if (found?.isSymbolicLink()) return readlinkSync(join(own, LFS)) === join(common, LFS)
  return found ? found.isDirectory() : !existsSync(join(common, LFS))
}

/** At every opening, so without a thread: these are a few tiny files of our own, and none of them is waited for. */
function isAsWritten(own: string, common: string, files: Record<string, string>): boolean {
  try {
    const known = namesIn(files)
    const [top, info] = [own, join(own, 'info')].map((folder) => lstatSync(folder).isDirectory() && readdirSync(folder))
    if (!top || !info) return false
    return (
      top.every((name) => known.has(name)) &&
      info.every((name) => known.has(`info/${name}`)) &&
      SHARED.every((name) => readlinkSync(join(own, name)) === join(common, name)) &&
      lfsIsRight(own, common) &&
      Object.entries(files).every(([name, text]) => holds(join(own, name), text))
    )
  } catch {
    return false
  }
}

function holds(path: string, text: string): boolean {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) return false
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    return fstatSync(file).size === Buffer.byteLength(text) && readFileSync(file, 'utf8') === text
  } finally {
    closeSync(file)
  }
}

async function makeFolder(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found?.isDirectory()) return
  if (found) await rm(path, { force: true })
  await mkdir(path, { recursive: true, mode: 0o700 })
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
  if (holds(path, text)) return
  if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) await rm(path, { recursive: true, force: true })
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
