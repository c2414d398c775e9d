import { constants } from 'node:fs'
import { lstat, open, opendir, readlink, realpath } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'
import type { FileText } from '../../ports/git.ts'
import { proven } from './proven.ts'
import { commitAt } from './repo.ts'
import type { Repo } from './run.ts'

/** A file below `top`, wherever links lead; git's own folder is not part of the work. */
export async function fileBelow(top: string, path: string, bytes: number): Promise<FileText | undefined> {
  if (path === '' || path.includes('\0') || isAbsolute(path)) return undefined
  const root = await realpath(top).catch(() => undefined)
  const real = root && (await realpath(join(root, path)).catch(() => undefined))
  if (!real || !isBelow(root, real)) return undefined
  const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined)
  if (!handle) return undefined
  try {
    // Between the two steps a folder on the way can have become a link that leads out.
    const opened = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => real)
    const kind = await handle.stat()
    if (!isBelow(root, opened) || !kind.isFile()) return undefined
    const buffer = Buffer.alloc(Math.min(bytes, kind.size))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0)
    return { bytes: buffer.subarray(0, bytesRead), size: kind.size, cut: kind.size > bytesRead, commit: null }
  } finally {
    await handle.close()
  }
}

/** A file as a commit has it: what is in somebody's folder has no part in it. */
export async function fileOn(repo: Repo, at: string, path: string, bytes: number): Promise<FileText | undefined> {
  if (path === '' || path.includes('\0') || isAbsolute(path)) return undefined
  // By its id from here on: a ref can be moved between two looks.
  const commit = await commitAt(repo, at)
  if (!commit) return undefined
  const parts = path.replace(/^(?:\.\/)+/, '').split('/')
  const name = `${commit}:${parts.join('/')}`
  if ((await repo.ask(['cat-file', '-t', name])) !== 'blob') return undefined
  const above = parts.map((_, n) => `${commit}:${parts.slice(0, n).join('/')}`)
  const ids = (await repo.line(['rev-parse', ...above, name])).split('\n')
  const { size, content } = await proven(repo, path, [commit, ...ids], 'alone', async (run) => ({
    size: Number(await repo.line(['cat-file', '-s', name], run)),
    content: await repo.git(['cat-file', 'blob', name], { ...run, cutAfter: bytes }),
  }))
  return { bytes: content.subarray(0, bytes), size, cut: size > bytes, commit }
}

function isBelow(root: string, path: string): boolean {
  const parts = relative(root, path).split(sep)
  return parts[0] !== '' && parts[0] !== '..' && !isAbsolute(parts[0] ?? '') && !parts.some((part) => part.toLowerCase() === '.git')
}

export async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined
}

/** As the disk counts it; what has several names counts once. */
export async function sizeOf(folder: string): Promise<number> {
  const seen = new Set<number>()
  const walk = async (at: string): Promise<number> => {
    let sum = 0
    const entries = await opendir(at).catch(() => undefined)
    if (!entries) return 0
    for await (const entry of entries) {
      const path = join(at, entry.name)
      const found = await lstat(path).catch(() => undefined)
      if (!found || (found.nlink > 1 && !found.isDirectory() && seen.size === seen.add(found.ino).size)) continue
      sum += found.blocks * 512 + (found.isDirectory() ? await walk(path) : 0)
    }
    return sum
  }
  return walk(folder)
}
