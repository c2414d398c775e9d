import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { freemem } from 'node:os'

const MEMORY = '/dev/shm'
const ROOM_BYTES = 3 * 2 ** 30

/**
 * Temporary folders in memory, where there is room: on a disk every commit waits for it, and so does every file of every copy of a
 * database. What is killed here is a process, never the machine, so nothing that is tested depends on the disk; the soak stays on it.
 */
export function keepFilesInMemory(): void {
  if (process.env.TMPDIR || !hasRoom()) return
  // A short name: the path of a socket has at most 100 bytes.
  const folder = mkdtempSync(`${MEMORY}/sb-`)
  // The database server runs as somebody else.
  chmodSync(folder, 0o1777)
  process.env.TMPDIR = folder
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
}

/** A container often has 64 MB of it. */
function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return Math.min(bavail * bsize, freemem()) > ROOM_BYTES
  } catch {
    return false
  }
}
