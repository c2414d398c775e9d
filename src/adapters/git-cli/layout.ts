import { realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { smallFileOrNone } from './small-file.ts'

/** Where git keeps what it knows of one checkout. */
export interface Layout {
  /** HEAD and index of this checkout. */
  gitDir: string
  /** What all checkouts of the repository share: refs, objects, configuration. */
  common: string
}

/** Of a folder that is the top of a work tree, or a bare repository. Read from git's files: git itself would read the configuration first. */
export async function layoutOf(top: string): Promise<Layout | undefined> {
  const link = join(top, '.git')
  const kind = await stat(link).catch(() => undefined)
  const named = kind?.isFile() ? linkIn(await smallFileOrNone(link)) : undefined
  const gitDir = await realpath(kind?.isDirectory() ? link : named ? resolve(top, named) : top).catch(() => undefined)
  if (!gitDir || (kind?.isFile() && !named)) return undefined
  const elsewhere = (await smallFileOrNone(join(gitDir, 'commondir'))).trim()
  // Only the folder of a linked worktree says so. In the repository's own one somebody would send us to another repository.
  if (elsewhere && !named) return undefined
  const common = elsewhere ? await realpath(resolve(gitDir, elsewhere)).catch(() => undefined) : gitDir
  return common && (await isWhole(gitDir, common)) ? { gitDir, common } : undefined
}

/** What a `.git` file or a record of a worktree points to. */
export function linkIn(text: string): string | undefined {
  return text.startsWith('gitdir: ') ? text.slice('gitdir: '.length).trim() || undefined : undefined
}

/** The top of the work tree that a folder is in. */
export async function topAbove(folder: string): Promise<{ top: string; layout: Layout } | undefined> {
  for (let top = folder; ; top = dirname(top)) {
    const layout = await layoutOf(top)
    // Inside of git's own folder there are no files of a work tree.
    if (layout) return layout.gitDir === top ? undefined : { top, layout }
    if (top === dirname(top)) return undefined
  }
}

async function isWhole(gitDir: string, common: string): Promise<boolean> {
  const needed = [join(gitDir, 'HEAD'), join(common, 'objects'), join(common, 'refs')]
  return Promise.all(needed.map((path) => stat(path))).then(
    () => true,
    () => false,
  )
}
