import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmod, lstat, mkdir, readdir, readFile, readlink, realpath, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { platform } from 'node:os'
import { dirname, join, relative, sep } from 'node:path'
import type { Kept, Packages } from '../../ports/packages.ts'
import { removeTree } from '../files-shared/remove.ts'
import { keysOf } from './key.ts'

export interface PackagesOptions {
  /** `<home>/packages`: hidden from runs, on the disk that has the worktrees. */
  folder: string
  privateFolder: (path: string) => void
  env: Record<string, string | undefined>
}

interface Manifest {
  command: string
  /** Where it was made: some files name that folder. */
  madeIn: string
  paths: string[]
  /** Files and links that do. */
  naming: { files: string[]; links: string[] }
  bytes: number
  kept_at: number
}

/** On a disk that hangs, whoever waits shall hear of it. */
const LONGEST_MS = 15 * 60_000
const LEFT_MS = 60 * 60_000
const MANIFEST = 'manifest.json'
const TREE = 'tree'
/** A copy that the next checkout takes as it is. */
const SPARE = 'spare'
const MOST_LISTED = 64 * 1024 * 1024
const KEY = /^[0-9a-f]{40}$/

export function createPackages({ folder, privateFolder, env }: PackagesOptions): Packages {
  const at = (key: string) => {
    if (!KEY.test(key)) throw new Error(`${JSON.stringify(key)} is no key of kept packages.`)
    return join(folder, key)
  }
  const commands = new Map<string, string>()
  const busy = new Set<string>()
  /** A folder for one use, by a name that is nobody's key. */
  const aside = async <T>(use: (fresh: string) => Promise<T>): Promise<T> => {
    const name = `.${randomUUID()}`
    busy.add(name)
    try {
      return await use(join(folder, name))
    } finally {
      await removeTree(join(folder, name)).finally(() => busy.delete(name))
    }
  }
  return {
    async keysOf(command, checkout, files, brought) {
      const keys = await keysOf(command, checkout, files, brought, env.PATH)
      for (const key of Object.values(keys ?? {})) commands.set(key, command)
      return keys
    },

    async give(key, checkout) {
      const kept = await manifestIn(at(key))
      if (!kept) return false
      // Elsewhere first: a copy that is cut off leaves nothing in the checkout, and one that outlives its daemon writes to nobody's packages.
      await aside(async (fresh) => {
        await rename(join(at(key), SPARE), fresh).catch(() => copyAll(join(at(key), TREE), kept.paths, fresh))
        await nameAgain(kept, fresh, checkout)
        for (const path of kept.paths) await place(join(fresh, path), checkout, path)
      })
      const now = new Date()
      await utimes(join(at(key), MANIFEST), now, now).catch(() => {})
      return true
    },

    async keep(key, checkout, paths) {
      privateFolder(folder)
      await sweep(folder, busy)
      if (await manifestIn(at(key))) return
      await removeTree(at(key))
      await aside(async (fresh) => {
        await copyAll(checkout, paths, join(fresh, TREE))
        const bytes = await sizeOf(fresh)
        const manifest: Manifest = {
          command: commands.get(key) ?? '',
          madeIn: checkout,
          paths,
          naming: await naming(join(fresh, TREE), checkout),
          bytes,
          kept_at: Date.now(),
        }
        await writeFile(join(fresh, MANIFEST), JSON.stringify(manifest), { mode: 0o600 })
        // Somebody else may have been faster: theirs is the same.
        await rename(fresh, at(key)).catch(() => {})
      })
    },

    async stock(key, signal) {
      const kept = await manifestIn(at(key))
      if (!kept || (await hasSpare(at(key)))) return
      await aside(async (fresh) => {
        await copyAll(join(at(key), TREE), kept.paths, fresh, signal)
        await rename(fresh, join(at(key), SPARE))
      })
    },

    async list() {
      const found: Kept[] = []
      for (const key of (await readdir(folder).catch(() => [])).filter((name) => KEY.test(name))) {
        const kept = await manifestIn(at(key))
        const used = await stat(join(at(key), MANIFEST)).catch(() => undefined)
        if (!kept || !used) continue
        const { command, bytes, kept_at } = kept
        const size = (await hasSpare(at(key))) ? { bytes: 2 * bytes, spare_bytes: 0 } : { bytes, spare_bytes: bytes }
        found.push({ key, command, ...size, kept_at, used_at: Math.round(used.mtimeMs) })
      }
      return found.sort((a, b) => a.used_at - b.used_at)
    },

    async drop(key) {
      // In one step: whoever looks meanwhile finds all of it or nothing.
      await aside((gone) => rename(at(key), gone).catch(() => {}))
    },
  }
}

/** What a daemon was killed in the middle of. */
async function sweep(folder: string, busy: Set<string>): Promise<void> {
  for (const name of (await readdir(folder)).filter((one) => one.startsWith('.') && !busy.has(one))) {
    const kind = await stat(join(folder, name)).catch(() => undefined)
    if (kind && Date.now() - kind.ctimeMs > LEFT_MS) await removeTree(join(folder, name)).catch(() => {})
  }
}

async function manifestIn(folder: string): Promise<Manifest | undefined> {
  try {
    return JSON.parse(await readFile(join(folder, MANIFEST), 'utf8')) as Manifest
  } catch {
    // Not there, or cut off by a power cut: then it is nothing that anybody can use.
    return undefined
  }
}

/** What an attempt before this one left there goes. A branch may have a link in the place of a folder, which leads out. */
async function place(from: string, checkout: string, path: string): Promise<void> {
  const to = join(checkout, path)
  await mkdir(dirname(to), { recursive: true }).catch(() => {})
  const [top, real] = await Promise.all([realpath(checkout), realpath(dirname(to)).catch(() => '/')])
  const way = relative(top, real)
  if (way === '..' || way.startsWith(`..${sep}`)) throw new Error(`${path} leads out of ${checkout}.`)
  await removeTree(to)
  await rename(from, to)
}

/** By the system's own program: file by file from here takes ten times as long. */
async function copyAll(from: string, paths: string[], to: string, signal?: AbortSignal): Promise<void> {
  const flags = platform() === 'darwin' ? ['-Rpc'] : ['-a', '--reflink=auto']
  for (const path of paths) {
    await mkdir(dirname(join(to, path)), { recursive: true, mode: 0o700 })
    await run('cp', [...flags, '--', join(from, path), join(to, path)], { signal })
  }
}

async function hasSpare(kept: string): Promise<boolean> {
  return (await stat(join(kept, SPARE)).catch(() => undefined)) !== undefined
}

/** Python's programs, pnpm's and those of others have the path of their folder in them. */
async function naming(tree: string, madeIn: string): Promise<Manifest['naming']> {
  const listed = await run('grep', ['-rlIF', '--null', '-D', 'skip', '--', madeIn, '.'], { cwd: tree, fine: [0, 1] })
  const files = listed.split('\0').filter(Boolean)
  const found = await run(
    'find',
    ['.', '-type', 'l', '(', '-lname', literal(madeIn), '-o', '-lname', `${literal(madeIn)}/*`, ')', '-print0'],
    { cwd: tree },
  )
  return { files, links: found.split('\0').filter(Boolean) }
}

/** Those in the copy name the checkout that it is for. As bytes: not all that has a path in it is UTF-8. */
async function nameAgain({ naming, madeIn }: Manifest, copied: string, checkout: string): Promise<void> {
  const [before, after] = [madeIn, checkout].map((path) => Buffer.from(path).toString('latin1')) as [string, string]
  for (const path of naming.files) {
    const file = join(copied, path)
    const { mode } = await lstat(file)
    await chmod(file, mode | 0o600)
    const text = await readFile(file, 'latin1')
    await writeFile(
      file,
      text.replaceAll(before, () => after),
      'latin1',
    )
    await chmod(file, mode)
  }
  for (const path of naming.links) {
    const link = join(copied, path)
    const target = (await readlink(link)).replace(madeIn, () => checkout)
    await rm(link)
    await symlink(target, link)
  }
}

async function sizeOf(folder: string): Promise<number> {
  return Number((await run('du', ['-sk', '--', folder])).split('\t')[0]) * 1_024
}

interface HowToRun {
  cwd?: string
  fine?: number[]
  signal?: AbortSignal | undefined
}

function run(program: string, args: string[], { cwd = '/', fine = [0], signal }: HowToRun = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd, maxBuffer: MOST_LISTED, timeout: LONGEST_MS, ...(signal && { signal }) }, (error, stdout, stderr) => {
      const code = error ? (typeof error.code === 'number' ? error.code : -1) : 0
      if (fine.includes(code)) resolve(stdout)
      else reject(new Error(`${program} ${args.join(' ').slice(0, 200)}: ${stderr.trim().slice(0, 500) || error?.message}`))
    })
  })
}

/** For a pattern of find. */
function literal(path: string): string {
  return path.replace(/[\\*?[\]]/g, '\\$&')
}
