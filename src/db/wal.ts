import { closeSync, openSync, readSync, statSync } from 'node:fs'

export interface WalReport {
  /** Bytes behind the last whole commit that SQLite will drop when it opens the database. */
  droppedBytes: number
}

const HEADER = 32
const FRAME_HEADER = 24
/** The last bit of the magic number says in which byte order the checksums count. */
const MAGIC = 0x377f0682

/**
 * Reads the write-ahead log as SQLite recovers it: frames of the current salt, each with a checksum over all before it, up
 * to the last one that ends a commit. Bytes behind that belonged to a transaction that was never acknowledged, or to
 * some that the disk lost.
 */
export function inspectWal(path: string): WalReport | undefined {
  const size = sizeOf(path)
  if (size === 0) return undefined
  const file = openSync(path, 'r')
  try {
    const header = Buffer.alloc(HEADER)
    readSync(file, header, 0, HEADER, 0)
    const magic = header.readUInt32BE(0)
    const sum = new Checksum((magic & 1) === 1)
    if (size < HEADER || (magic & ~1) >>> 0 !== MAGIC || !sum.add(header.subarray(0, 24)).equals(header, 24)) return { droppedBytes: size }
    const salt = header.subarray(16, 24)
    const frame = Buffer.alloc(FRAME_HEADER + header.readUInt32BE(8))
    let lastCommit = HEADER
    let offset = HEADER
    for (let whole = true; offset < size; offset += frame.length) {
      const read = readSync(file, frame, 0, frame.length, offset)
      // Frames of an older salt are what a checkpoint left behind: not ours to lose.
      if (read >= FRAME_HEADER && !frame.subarray(8, 16).equals(salt)) break
      whole &&= read === frame.length && sum.add(frame.subarray(0, 8)).add(frame.subarray(FRAME_HEADER)).equals(frame, 16)
      if (whole && frame.readUInt32BE(4) !== 0) lastCommit = offset + frame.length
    }
    return { droppedBytes: Math.min(offset, size) - lastCommit }
  } finally {
    closeSync(file)
  }
}

/** Two running sums over pairs of 32-bit words, as the file format defines them. */
class Checksum {
  readonly #bigEndian: boolean
  #a = 0
  #b = 0

  constructor(bigEndian: boolean) {
    this.#bigEndian = bigEndian
  }

  add(bytes: Buffer): this {
    for (let i = 0; i < bytes.length; i += 8) {
      this.#a = (this.#a + this.#word(bytes, i) + this.#b) >>> 0
      this.#b = (this.#b + this.#word(bytes, i + 4) + this.#a) >>> 0
    }
    return this
  }

  equals(bytes: Buffer, at: number): boolean {
    return bytes.readUInt32BE(at) === this.#a && bytes.readUInt32BE(at + 4) === this.#b
  }

  #word(bytes: Buffer, at: number): number {
    return this.#bigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at)
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
