/** What acts on a terminal or turns the order of what stands around it; not those that join letters and emoji. */
const UNSEEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Text of a program, with everything in it that would not be seen made visible: it can neither hide nor pretend. */
export function visible(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(UNSEEN, (char) => {
    const code = char.codePointAt(0) ?? 0
    if (code < 0x20) return String.fromCharCode(0x2400 + code)
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`
  })
}
