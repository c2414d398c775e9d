const PRINTABLE_ASCII = /^[\x20-\x7e]*$/
let exactly: ((text: string) => number) | undefined
let segmenter: Intl.Segmenter | undefined

/** Its tables of all emoji take a tenth of a short command to load: only who draws on a terminal needs them. */
export async function loadWidths(): Promise<void> {
  exactly ??= (await import('string-width')).default
}

/** Text from outside is shown, never obeyed: control characters (colours, cursor moves, clipboard) are made visible. */
export function plain(text: string): string {
  return text.replace(/[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/gu, '\ufffd')
}

/** JSON whose texts cannot steer the terminal either; it is read as the same. JSON itself escapes only what is below U+0020. */
export function plainJson(json: string): string {
  const code = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return json.replace(/[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, code)
}

export function oneLine(text: string): string {
  return plain(text).replace(/\s+/g, ' ').trim()
}

/** Columns that it takes on a terminal: a Chinese character takes two, a combining accent none. */
export const width = (text: string): number => (PRINTABLE_ASCII.test(text) ? text.length : exactly ? exactly(text) : [...text].length)

export function pad(text: string, to: number): string {
  return text + ' '.repeat(Math.max(0, to - width(text)))
}

/** At most `to` columns, with … in the place of what is left out. */
export function cut(text: string, to: number): string {
  if (width(text) <= to) return text
  let kept = ''
  let taken = 0
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  for (const { segment } of segmenter.segment(text)) {
    taken += width(segment)
    if (taken > to - 1) break
    kept += segment
  }
  return `${kept.trimEnd()}…`
}

/** Lines of at most `to` columns, broken between words; a longer word, or a line that is a command, is left whole, so that it can be copied. */
export function wrap(text: string, to: number): string[] {
  return text.split('\n').flatMap((line) => {
    if (line.startsWith('signalbox ')) return [line]
    const lines: string[] = []
    let current = ''
    for (const word of line.split(/(?<=\s)(?=\S)/)) {
      if (current && width(current + word.trimEnd()) > to) {
        lines.push(current.trimEnd())
        current = ''
      }
      current += word
    }
    return [...lines, current.trimEnd()]
  })
}
