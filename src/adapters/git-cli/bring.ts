import { isUtf8 } from 'node:buffer'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readlink, realpath } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { GitRefusal } from '../../ports/git.ts'
import { type At, LONG_MS } from './run.ts'

const NOT_LITERAL = '--no-literal-pathspecs'
const MOST_FILES = 200
const MOST_BYTES = 32 * 1024 * 1024
/** The mode of a file that is being copied: nobody reads half of it, and the next attempt knows it. */
const BEGUN = 0o200

/**
 * Files that git does not carry, from the person's checkout to another one. Only what is ignored in both: anything else would be committed
 * with the work. What is there already stays.
 */
export async function bring(from: At, to: At, patterns: string[]): Promise<string[]> {
  const found = await ignored(from, patterns)
  if (found.length === 0) return []
  if (found.length > MOST_FILES)
    throw new GitRefusal(
      'invalid',
      `${found.length} ignored files match ${patterns.join(', ')}; at most ${MOST_FILES} are copied. Narrow the patterns.`,
    )
  const brought: string[] = []
  for (const path of await ignoredThere(to, found)) if (await isThere(from.cwd, to.cwd, path)) brought.push(path)
  return brought
}

async function ignoredThere(to: At, paths: string[]): Promise<string[]> {
  // It ends with 1 when none is ignored.
  const { stdout, failed } = await to.tried([NOT_LITERAL, 'check-ignore', '-z', '--stdin'], { input: `${paths.join('\0')}\0` })
  if (paths.length === 1 || !failed?.includes('fatal: ')) return words(stdout)
  // It ends at the first that lies behind a link or in a submodule, which a branch may have in the place of a folder.
  const each: string[] = []
  for (const path of paths) each.push(...(await ignoredThere(to, [path])))
  return each
}

/** A colon would begin a pattern of git's. */
export async function ignored(at: At, patterns: string[]): Promise<string[]> {
  // To git, no pattern at all means every file.
  if (patterns.length === 0) return []
  const listing = [NOT_LITERAL, '--glob-pathspecs', 'ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--']
  return words(await at.git([...listing, ...patterns], { timeoutMs: LONG_MS })).filter((path) => !path.startsWith(':'))
}

/** Copied now, or before. Not through a link: agents can write to the person's checkout, and it would lead to what is hidden from them. */
async function isThere(from: string, to: string, path: string): Promise<boolean> {
  return reading(from, path, async (handle, kind) => {
    if (kind.size > MOST_BYTES)
      throw new GitRefusal('invalid', `${path} has ${kind.size} bytes; files of at most ${MOST_BYTES} are copied.`)
    const target = join(to, path)
    await mkdir(dirname(target), { recursive: true }).catch(() => {})
    // A branch may have a link in the place of a folder, which leads out.
    if (!(await isWithin(to, dirname(target)))) return false
    await put(to, target, await contentOf(handle, kind.size), kind.mode & 0o777)
    return true
  })
}

/** What is there stays, unless an attempt before this one was cut off in the middle of it. */
async function put(top: string, target: string, content: Buffer, mode: number): Promise<void> {
  const handle = (await opened(target, constants.O_EXCL | constants.O_CREAT)) ?? (await begunBefore(target))
  try {
    if (!handle || !(await isBelow(top, await pathOf(handle, target)))) return
    await handle.truncate(0)
    await handle.writeFile(content)
    await handle.chmod(mode)
  } finally {
    await handle?.close()
  }
}

async function begunBefore(target: string): Promise<FileHandle | undefined> {
  const isBegun = (kind: Stats) => kind.isFile() && kind.nlink === 1 && (kind.mode & 0o777) === BEGUN
  if (!isBegun(await lstat(target))) return undefined
  const handle = await opened(target, 0)
  if (handle && isBegun(await handle.stat())) return handle
  await handle?.close()
  return undefined
}

function opened(target: string, how: number): Promise<FileHandle | undefined> {
  const flags = how | constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  return open(target, flags, BEGUN).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return undefined
    throw error
  })
}

/** What the person's files say, as far as they are text. */
export async function textsOf(at: At, patterns: string[], mostBytes: number): Promise<string[]> {
  const texts: string[] = []
  for (const path of (await ignored(at, patterns)).slice(0, MOST_FILES))
    await reading(at.cwd, path, async (handle, { size }) => {
      const bytes = size <= mostBytes ? await contentOf(handle, size) : Buffer.alloc(0)
      if (isUtf8(bytes)) texts.push(bytes.toString('utf8'))
      return true
    })
  return texts
}

/** False when it is no file, or is reached by a link. */
async function reading(top: string, path: string, read: (handle: FileHandle, kind: Stats) => Promise<boolean>): Promise<boolean> {
  const source = join(top, path)
  if (!(await isWithin(top, dirname(source)))) return false
  const handle = await open(source, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined)
  try {
    const kind = await handle?.stat()
    if (!handle || !kind?.isFile()) return false
    // Between the two steps a folder on the way can have become a link that leads out.
    return (await isBelow(top, await pathOf(handle, source))) && (await read(handle, kind))
  } finally {
    await handle?.close()
  }
}

/** Where it was really opened, on a system that says so. */
function pathOf(handle: FileHandle, asked: string): Promise<string> {
  return readlink(`/proc/self/fd/${handle.fd}`).catch(() => realpath(asked))
}

/** No more than it had when it was looked at: somebody may be adding to it without an end. */
async function contentOf(handle: FileHandle, size: number): Promise<Buffer> {
  const buffer = Buffer.alloc(size)
  let length = 0
  for (let read = -1; read !== 0 && length < size; length += read)
    ({ bytesRead: read } = await handle.read(buffer, length, size - length, length))
  return buffer.subarray(0, length)
}

async function isWithin(top: string, folder: string): Promise<boolean> {
  return isBelow(top, await realpath(folder).catch(() => '/'))
}

/** `real` has no links in it. */
async function isBelow(top: string, real: string): Promise<boolean> {
  const way = relative(await realpath(top), real)
  return way !== '..' && !way.startsWith(`..${sep}`)
}

function words(listed: Buffer): string[] {
  return listed.toString('utf8').split('\0').filter(Boolean)
}
