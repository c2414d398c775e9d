import { lstat, readFile, realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Judged } from './untrusted.ts'

/** A file that was written a moment ago can be written once more without its stamp telling. */
const SETTLED_MS = 1_000

export interface Layout {
  common: string
  /** The repository's own configuration files. */
  files: string[]
}

/** As git's own files tell it; undefined where they tell anything unusual, and git has to be asked. */
export async function layoutOf(top: string): Promise<Layout | undefined> {
  const link = join(top, '.git')
  const kind = await lstat(link).catch(() => undefined)
  const gitDir = kind?.isDirectory() ? link : kind?.isFile() ? await linked(top, link) : undefined
  if (!gitDir) return undefined
  const shared = await readFile(join(gitDir, 'commondir'), 'utf8').catch(() => undefined)
  const common = await realpath(shared === undefined ? gitDir : resolve(gitDir, shared.trim())).catch(() => undefined)
  const isWhole = common && (await Promise.all(['HEAD', 'objects'].map((name) => stat(join(common, name)))).catch(() => undefined))
  return isWhole ? { common, files: [join(common, 'config'), join(gitDir, 'config.worktree')] } : undefined
}

async function linked(top: string, link: string): Promise<string | undefined> {
  const text = await readFile(link, 'utf8').catch(() => '')
  return text.startsWith('gitdir: ') ? resolve(top, text.slice(8).trim()) : undefined
}

/** Remembers of which repositories the configuration names nothing that would be run, until one of its files changes. */
export class Harmless {
  readonly #known = new Map<string, { stamp: string; judged: Judged }>()

  async unless(layout: Layout | undefined, judge: () => Promise<Judged>): Promise<Judged> {
    if (!layout) return judge()
    const key = layout.files.join('\0')
    const stamp = await stampOf(layout.files)
    const known = this.#known.get(key)
    if (stamp !== undefined && known?.stamp === stamp) return known.judged
    const judged = await judge()
    if (judged.lasting && stamp !== undefined) this.#known.set(key, { stamp, judged })
    else this.#known.delete(key)
    return judged
  }
}

/** Undefined of what is a link, or was changed only now. */
async function stampOf(files: string[]): Promise<string | undefined> {
  const stamps = []
  for (const file of files) {
    const found = await lstat(file, { bigint: true }).catch((error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? null : undefined))
    if (found === undefined || (found && (!found.isFile() || Date.now() - Number(found.ctimeMs) < SETTLED_MS))) return undefined
    stamps.push(found ? [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join() : 'none')
  }
  return stamps.join('\0')
}
