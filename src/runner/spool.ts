import { closeSync, fsyncSync, openSync, writeSync, writevSync } from 'node:fs'

/**
 * Everything an agent printed and was told, in order: `<stream> <epoch ms> <length>[ <seq>]\n<bytes>\n`. The last frame may be torn
 * when its writer was killed or its disk was full; what stands before it is whole.
 */
export type Stream = 'out' | 'err' | 'in'

export interface Frame {
  stream: Stream
  at: number
  bytes: Buffer
}

const FRAME_BYTES = 64 * 1024
const HEADER = /^(out|err|in) (\d{1,16}) (\d{1,6})(?: \d{1,16})?$/
const HEADER_BYTES = 64

/** A buffer of this size always holds a whole frame, and little more: whoever reads it does so between two answers to somebody else. */
export const BATCH_BYTES = FRAME_BYTES + 4 * HEADER_BYTES

export interface Spool {
  readonly size: number
  /** Throws when it cannot be kept. Nothing may follow then: the last frame may be torn. */
  append(stream: Stream, bytes: Buffer, seq?: number): void
  close(): void
}

export function createSpool(path: string): Spool {
  const file = openSync(path, 'ax', 0o600)
  let size = 0
  function write(...parts: Buffer[]): void {
    const length = parts.reduce((sum, part) => sum + part.length, 0)
    const done = writevSync(file, parts)
    if (done < length) writeRest(file, Buffer.concat(parts).subarray(done))
    size += length
  }
  return {
    get size() {
      return size
    },
    append(stream, bytes, seq) {
      for (let from = 0; from < bytes.length; from += FRAME_BYTES) {
        const part = bytes.subarray(from, from + FRAME_BYTES)
        write(headerOf(stream, part.length, seq), part, END)
      }
    },
    close() {
      try {
        fsyncSync(file)
      } catch {
        // A disk that cannot take the last of it must not keep the end from being written down.
      }
      closeSync(file)
    },
  }
}

const END = Buffer.from('\n')

function headerOf(stream: Stream, length: number, seq: number | undefined): Buffer {
  return Buffer.from(`${stream} ${Date.now()} ${length}${seq === undefined ? '' : ` ${seq}`}\n`)
}

function writeRest(file: number, rest: Buffer): void {
  for (let done = 0; done < rest.length; ) done += writeSync(file, rest, done)
}

/** What is told in one transaction: thousands of small ones would take longer than a transaction may. */
const MOST_FRAMES = 200

/** The whole frames at the beginning of these bytes, not all of very many, and how many bytes they are. */
export function parseFrames(bytes: Buffer): { frames: Frame[]; length: number } {
  const frames: Frame[] = []
  let at = 0
  while (frames.length < MOST_FRAMES) {
    const headerEnd = bytes.subarray(at, at + HEADER_BYTES).indexOf('\n')
    const header = headerEnd < 0 ? null : HEADER.exec(bytes.toString('latin1', at, at + headerEnd))
    if (!header) return { frames, length: at }
    const from = at + headerEnd + 1
    const end = from + Number(header[3])
    if (bytes[end] !== NEWLINE) return { frames, length: at }
    frames.push({ stream: header[1] as Stream, at: Number(header[2]), bytes: bytes.subarray(from, end) })
    at = end + 1
  }
  return { frames, length: at }
}

const NEWLINE = 0x0a
