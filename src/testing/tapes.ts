import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import type { Harness } from '../ports/harness.ts'
import { EXIT_REASONS, type Frame } from '../ports/runner.ts'
import { type Recording, replay, type Tape } from './harness.ts'

/** Of a frame that is no whole text the bytes are kept. */
const StoredFrame = z.strictObject({
  stream: z.enum(['out', 'err', 'in']),
  at: z.number(),
  text: z.string().optional(),
  base64: z.string().optional(),
})

const Stored = z.strictObject({
  /** Which program said this. */
  program: z.string(),
  state: z.record(z.string(), z.unknown()).optional(),
  frames: z.array(StoredFrame),
  exit: z.strictObject({
    reason: z.enum(EXIT_REASONS),
    code: z.int().nullable(),
    signal: z.string().nullable(),
    detail: z.string(),
    at: z.number(),
  }),
})

const MOST_BYTES = 200_000

/** A life of a real program, told by the harness as it is now: only what was printed is on the tape. */
export function loadTape(harness: Harness, file: string): Recording {
  const { state, frames, exit } = Stored.parse(JSON.parse(readFileSync(file, 'utf8')))
  const tape: Tape = { frames: frames.map(played), exit, ...(state ? { state } : {}) }
  return { state: state ?? harness.begin(), frames: tape.frames, exit, events: replay(harness, tape) }
}

/** `hidden`: what stands only on this machine, as its folders, and what is written in its place. */
export function saveTape(file: string, program: string, { state, frames, exit }: Recording, hidden: Record<string, string> = {}): void {
  const text = JSON.stringify({ program, state, frames: together(frames).map(stored), exit }, null, 2)
  const shown = Object.entries(hidden).reduce((all, [from, to]) => all.replaceAll(from, to), text)
  if (shown.length > MOST_BYTES) throw new Error(`${file} would have ${shown.length} bytes; ${MOST_BYTES} is the most`)
  writeFileSync(file, `${shown}\n`)
}

/** A name that is cut by the end of a frame would not be found. */
function together(frames: Frame[]): Frame[] {
  const all: Frame[] = []
  for (const frame of frames) {
    const last = all.at(-1)
    if (last?.stream === frame.stream) last.bytes = Buffer.concat([last.bytes, frame.bytes])
    else all.push({ ...frame })
  }
  return all
}

function stored({ stream, at, bytes }: Frame): z.output<typeof StoredFrame> {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? { stream, at, text } : { stream, at, base64: bytes.toString('base64') }
}

function played({ stream, at, text, base64 }: z.output<typeof StoredFrame>): Frame {
  return { stream, at, bytes: base64 === undefined ? Buffer.from(text ?? '') : Buffer.from(base64, 'base64') }
}
