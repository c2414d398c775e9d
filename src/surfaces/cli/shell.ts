import type { Tool } from '../../kernel/tool.ts'
import { SHORT } from './built-in.ts'
import { wordsWith } from './flags.ts'
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

/** The same in as few words as people type: `signalbox resume T-1`. */
export function asTyped(tool: Tool, input: Record<string, unknown>): string {
  const short = Object.entries(SHORT).find(([, { means }]) => isMeant(means, tool, input))
  const said = new Set(short?.[1].means.filter((word) => word.startsWith('--')).map((flag) => flag.slice(2).replaceAll('-', '_')))
  const rest = Object.fromEntries(Object.entries(input).filter(([name]) => !said.has(name)))
  const inOrder = wordsWith(tool, input.task_id).filter((name) => !said.has(name))
  const stop = inOrder.findIndex((name) => !isWord(rest[name]))
  const before = stop < 0 ? inOrder : inOrder.slice(0, stop)
  const flags = Object.fromEntries(Object.entries(rest).filter(([name]) => !before.includes(name)))
  const words = [...before.map((name) => String(rest[name])), ...flagsFor(tool, flags)]
  return ['signalbox', short?.[0] ?? commandOf(tool), ...words.map(quote)].join(' ')
}

/** `job submit --action resume_agent`: the tool, and what it is called with. */
function isMeant([noun, verb, ...flags]: string[], tool: Tool, input: Record<string, unknown>): boolean {
  if (commandOf(tool) !== `${noun} ${verb}`) return false
  return flags.every((flag, i) => i % 2 === 1 || input[flag.slice(2).replaceAll('-', '_')] === flags[i + 1])
}

/** What can stand by itself without being taken for something else. */
function isWord(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && !/^[-@]/.test(value)
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
