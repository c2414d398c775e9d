import { closeSync, openSync, readSync, statSync } from 'node:fs'

export interface WalReport {
  /** Bytes behind the last whole commit that SQLite will drop when it opens the database. */
  droppedBytes: number
}

const HEADER = 32
const FRAME_HEADER = 24

/**
 * Reads the write-ahead log as SQLite recovers it: frames of the current salt up to the last one that ends a commit.
 * Bytes behind that belonged to a transaction that was never acknowledged, or to one that the disk lost.
 */
export function inspectWal(path: string): WalReport | undefined {
  const size = sizeOf(path)
  if (size === 0) return undefined
  const file = openSync(path, 'r')
  try {
    if (size < HEADER) return { droppedBytes: size }
    const header = Buffer.alloc(HEADER)
    readSync(file, header, 0, HEADER, 0)
    const frameSize = FRAME_HEADER + header.readUInt32BE(8)
    const salt = header.subarray(16, 24)
    let lastCommit = HEADER
    let offset = HEADER
    const frame = Buffer.alloc(FRAME_HEADER)
    while (offset + FRAME_HEADER <= size) {
      readSync(file, frame, 0, FRAME_HEADER, offset)
      // Frames of an older salt are what a checkpoint left behind: not ours to lose.
      if (!frame.subarray(8, 16).equals(salt)) return { droppedBytes: offset - lastCommit }
      if (offset + frameSize > size) break
      offset += frameSize
      if (frame.readUInt32BE(4) !== 0) lastCommit = offset
    }
    return { droppedBytes: size - lastCommit }
  } finally {
    closeSync(file)
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
