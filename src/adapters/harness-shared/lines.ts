import { MOST_TEXT } from '../../ports/harness.ts'

/** What stands of a line that has not ended. In base64: it may end in the middle of a character. */
export interface OpenLine {
  bytes: string
  /** How many more came than are kept. */
  dropped: number
}

/** A line may be longer than a text, as its JSON holds escapes; what is longer than this is no message of any program. */
export const MOST_LINE = 1024 * 1024

export interface Line {
  text: string
  /** How many bytes of it are not here. */
  dropped: number
}

const NEWLINE = 0x0a

export const noLine = (): OpenLine => ({ bytes: '', dropped: 0 })

/** The lines that these bytes end, and what is left. Where the bytes were cut apart makes no difference. */
export function takeLines(open: OpenLine, bytes: Buffer, most = MOST_LINE): { lines: Line[]; open: OpenLine } {
  const lines: Line[] = []
  let held: Buffer = Buffer.from(open.bytes, 'base64')
  let { dropped } = open
  let from = 0
  while (from < bytes.length) {
    const end = bytes.indexOf(NEWLINE, from)
    const piece = bytes.subarray(from, end === -1 ? bytes.length : end)
    const room = piece.subarray(0, Math.max(0, most - held.length))
    held = held.length ? Buffer.concat([held, room]) : room
    dropped += piece.length - room.length
    if (end === -1) break
    lines.push(line(held, dropped))
    held = Buffer.alloc(0)
    dropped = 0
    from = end + 1
  }
  return { lines, open: { bytes: held.toString('base64'), dropped } }
}

/** The last line of a program that ended without a newline. */
export function lastLine(open: OpenLine): Line[] {
  return open.bytes || open.dropped ? [line(Buffer.from(open.bytes, 'base64'), open.dropped)] : []
}

function line(bytes: Buffer, dropped: number): Line {
  return { text: bytes.toString('utf8'), dropped }
}

/** One that has no end on its line is only its first two characters: what follows is a text that nobody may hide. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-~]?)/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g
/** What acts on a terminal, or turns the order of what stands around it; not those that join letters and emoji. */
const UNSEEN = /(?!\r\n|[\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** As a person would see the line on a terminal: without colours, and of what was written over itself only the last. */
export function printable({ text, dropped }: Line): string {
  const written = text.replace(/\r+$/, '').split('\r').at(-1) ?? ''
  return clip(clean(written), dropped)
}

/** Without what a terminal would act on and what a database could not store. */
export function clean(text: string): string {
  return text.replace(ESCAPES, '').replace(CONTROLS, '').toWellFormed()
}

/** All of what a program wants to do, for whoever is asked whether it may: what could not be seen is written out, and nothing is left away. */
export function visible(text: string): string {
  return text.replace(UNSEEN, codeOf).toWellFormed()
}

function codeOf(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`
}

/** Never longer than this, and says so when something is missing. */
export function clip(text: string, dropped = 0, most = MOST_TEXT): string {
  if (text.length <= most && dropped === 0) return text
  const kept = text.slice(0, most - 100).toWellFormed()
  const missing = text.length - kept.length + dropped
  return `${kept}… (${missing.toLocaleString('en')} more characters)`
}
