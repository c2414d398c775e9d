import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { GitRefusal } from '../../ports/git.ts'

const MOST_BYTES = 64 * 1024

/**
 * A file of git's own, in a folder that workers can write to. Undefined when there is none. A pipe in its place is refused: a read
 * of it would never end, and hold one of the few threads that read files.
 */
export async function smallFile(path: string, mostBytes = MOST_BYTES): Promise<string | undefined> {
  return (await plainFile(path, mostBytes))?.toString()
}

export async function plainFile(path: string | Buffer, mostBytes: number): Promise<Buffer | undefined> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw new GitRefusal('failed', `${path} cannot be read: ${error.message}`)
  })
  if (!handle) return undefined
  try {
    const kind = await handle.stat()
    if (!kind.isFile()) throw new GitRefusal('failed', `${path} is not a plain file. Remove it.`)
    const buffer = Buffer.alloc(Math.min(kind.size, mostBytes) + 1)
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0)
    if (bytesRead > mostBytes) throw new GitRefusal('failed', `${path} is larger than ${mostBytes / 1024} KB. Make it smaller.`)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

/** … of which it does not matter why it cannot be read. */
export async function smallFileOrNone(path: string): Promise<string> {
  return (await smallFile(path).catch(() => undefined)) ?? ''
}
