import type { Tool } from '../../kernel/tool.ts'
import { commandOf } from './names.ts'
import { argumentsOf, flagOf } from './schema.ts'

/** The words that give these arguments by flags: what somebody would type. */
export function flagsFor(tool: Tool, input: Record<string, unknown>): string[] {
  const properties = argumentsOf(tool)
  return Object.entries(input).flatMap(([name, value]) => {
    const flag = `--${flagOf(name)}`
    if (typeof value === 'boolean' && properties[name]?.type === 'boolean') return value ? [flag] : [`--no-${flagOf(name)}`]
    if (Array.isArray(value) && value.length && value.every(isPlain)) return value.flatMap((item) => words(flag, item))
    return typeof value === 'string' ? words(flag, value) : [flag, JSON.stringify(value)]
  })
}

/** `signalbox task create --title 'Fix the login'`, ready to paste; on several lines when one of `columns` does not hold it. */
export function commandLine(tool: Tool, input: Record<string, unknown>, columns = Number.POSITIVE_INFINITY): string {
  const flags = flagsFor(tool, input).map(quote)
  const line = ['signalbox', commandOf(tool), ...flags].join(' ')
  if (line.length <= columns) return line
  const pairs = flags.join(' ').split(/ (?=--)/)
  return [`signalbox ${commandOf(tool)}`, ...pairs].join(' \\\n      ')
}

export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** Lists of texts without a [ or a comma are repeated flags; the rest is JSON. */
function isPlain(item: unknown): item is string {
  return typeof item === 'string' && item !== '' && !item.includes(',') && !item.startsWith('[')
}

/** As text, where it would otherwise be read as a file, as stdin or as a flag. */
function words(flag: string, text: string): string[] {
  if (text === '-' || text.startsWith('--')) return [`${flag}=${text}`]
  return [flag, text.startsWith('@') ? `@${text}` : text]
}
