import { readFileSync } from 'node:fs'
import { UsageError } from '../../kernel/error.ts'
import { closest } from '../../kernel/registry.ts'
import type { Tool } from '../../kernel/tool.ts'
import { commandOf } from './names.ts'
import { argumentsOf, flagOf, type Property, wordsOf } from './schema.ts'
import { asList, asValue } from './value.ts'

/** Flags of the command line itself, beside those of the tool. */
export const OWN_FLAGS: Record<string, { does: string; takes?: string; when?(tool: Tool): boolean }> = {
  json: { does: 'print JSON, as always when the output is no terminal' },
  watch: { does: 'draw it again whenever something changes, until Ctrl-C', when: (tool) => tool.look !== undefined },
  yes: { does: 'go ahead without asking; needed where nobody can be asked', when: (tool) => tool.impact === 'destructive' },
  as: { does: 'act for this agent (people only; it is recorded)', takes: 'AGENT' },
  help: { does: 'this text' },
}

export interface Given {
  input: Record<string, unknown>
  json: boolean
  watch: boolean
  yes: boolean
  actFor: string | undefined
}

const TASK = /^(T-\d+|task_\w+)$/

export const asksForHelp = (args: string[]): boolean => beforeDashes(args).some((arg) => arg === '--help' || arg === '-h')

const beforeDashes = (args: string[]) => (args.includes('--') ? args.slice(0, args.indexOf('--')) : args)

/** By flag or, for some, by order. Checks only what must be known to read the words; the tool checks the rest. */
export async function parseFlags(tool: Tool, args: string[], stdin: () => Promise<string>): Promise<Given> {
  const properties = argumentsOf(tool)
  const { flags, words } = readWords(tool, args, properties)
  const wanted = wordsWith(tool, words[0])
  const open = wanted.filter((name) => !flags.has(flagOf(name)))
  for (const [i, word] of words.entries()) {
    const name = open[i]
    if (!name) throw new UsageError(`"${word}" is one argument too many. ${seeHelp(tool)}`)
    flags.set(flagOf(name), [ofItsOwn(word)])
  }
  const read = reader(stdin)
  const input: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(properties)) {
    const given = flags.get(flagOf(name))
    if (given !== undefined) input[name] = await converted(given, property, flagOf(name), read)
  }
  const own = (name: string) => (name in properties ? undefined : flags.get(name))
  return { input, json: own('json') === true, watch: own('watch') === true, yes: own('yes') === true, actFor: textOf(own('as')) }
}

/** `review decide T-1 approve`: a task that may be left out, and is meant all the same. */
export function wordsWith(tool: Tool, first: unknown): string[] {
  const words = wordsOf(tool)
  const isTask = 'task_id' in argumentsOf(tool) && !words.includes('task_id') && typeof first === 'string' && TASK.test(first)
  return isTask ? ['task_id', ...words] : words
}

type Raw = true | false | string[]

function readWords(tool: Tool, args: string[], properties: Record<string, Property>): { flags: Map<string, Raw>; words: string[] } {
  const known = new Map(Object.entries(properties).map(([name, property]) => [flagOf(name), property]))
  const own = Object.keys(OWN_FLAGS).filter((name) => OWN_FLAGS[name]?.when?.(tool) ?? true)
  const flags = new Map<string, Raw>()
  const words: string[] = []
  const rest = [...args]
  while (rest.length) {
    const arg = rest.shift() as string
    if (arg === '--') {
      words.push(...rest.splice(0))
    } else if (arg === '-y') {
      flags.set('yes', true)
    } else if (/^-[a-z]$/i.test(arg) || /^--[^=\s]/.test(arg)) {
      const [, typed = '', inline] = /^--?([^=]+)(?:=(.*))?$/s.exec(arg) ?? []
      const name = typed.replaceAll('_', '-')
      const off = name.startsWith('no-') && known.get(name.slice(3))?.type === 'boolean' ? name.slice(3) : undefined
      if (off) flags.set(off, false)
      else if (known.get(name)?.type === 'boolean' || (own.includes(name) && !OWN_FLAGS[name]?.takes && !known.has(name)))
        flags.set(name, truth(name, inline, known.has(name)))
      else if (known.has(name) || own.includes(name)) add(flags, name, inline ?? ofItsOwn(following(name, rest)), known.get(name))
      else throw new UsageError(unknownFlag(tool, arg.startsWith('--') ? name : typed, [...known.keys(), ...own]))
    } else {
      words.push(arg)
    }
  }
  return { flags, words }
}

function truth(name: string, inline: string | undefined, hasNo: boolean): boolean {
  if (inline === undefined || inline === 'true') return true
  if (inline === 'false') return false
  throw new UsageError(`--${name} is on or off: write --${name} or ${hasNo ? `--no-${name}` : 'leave it out'}.`)
}

function following(name: string, rest: string[]): string {
  const next = rest.shift()
  if (next === undefined) throw new UsageError(`--${name} needs a value.`)
  if (/^--[^=\s]/.test(next)) throw new UsageError(`--${name} needs a value; one that begins with -- is given as --${name}=${next}`)
  return next
}

/** `-` as a word of its own is stdin; in `--title=-` it is text. */
function ofItsOwn(word: string): string {
  return word === '-' ? STDIN : word
}

function add(flags: Map<string, Raw>, name: string, value: string, property: Property | undefined): void {
  const before = flags.get(name)
  if (before && property?.type !== 'array') throw new UsageError(`--${name} was given twice.`)
  flags.set(name, [...(Array.isArray(before) ? before : []), value])
}

function unknownFlag(tool: Tool, name: string, all: string[]): string {
  const near = closest(name, all)
  if (Object.hasOwn(OWN_FLAGS, name))
    return `There is nothing to ${name === 'watch' ? 'watch' : 'confirm'} at "signalbox ${commandOf(tool)}".`
  return `There is no flag --${name}. ${near.length ? `Did you mean: ${near.map((flag) => `--${flag}`).join(', ')}?` : seeHelp(tool)}`
}

function seeHelp(tool: Tool): string {
  return `See: signalbox ${commandOf(tool)} --help`
}

interface Text {
  text: string
  /** From a file or stdin: taken as it is, not split at commas. */
  whole: boolean
}

type Read = (raw: string, flag: string) => Promise<Text>

/** As if it were a file. */
const STDIN = '@-'

/** `@file` and `@-` stand for what is in there; `@@` for an @. */
function reader(stdin: () => Promise<string>): Read {
  let taken: string | undefined
  return async (raw, flag) => {
    if (raw.startsWith('@@')) return { text: raw.slice(1), whole: false }
    if (!raw.startsWith('@') || raw === '@') return { text: raw, whole: false }
    if (raw !== STDIN) return { text: fileText(raw.slice(1), flag), whole: true }
    if (taken) throw new UsageError(`--${flag}: stdin was already read for --${taken}; it can be read only once.`)
    taken = flag
    return { text: withoutLastBreak(await stdin()), whole: true }
  }
}

function fileText(path: string, flag: string): string {
  try {
    return withoutLastBreak(readFileSync(path, 'utf8'))
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no such file' : (error as Error).message
    throw new UsageError(`--${flag} @${path}: ${why}. For text that begins with @ write @@${path}.`)
  }
}

const withoutLastBreak = (text: string) => text.replace(/\r?\n$/, '')

async function converted(given: Raw, property: Property, flag: string, read: Read): Promise<unknown> {
  if (!Array.isArray(given)) return given
  const texts: Text[] = []
  for (const raw of given) texts.push(await read(raw, flag))
  const [first] = texts as [Text]
  if (texts.length === 1 && first.text === 'null' && property.nullable) return null
  if (property.type === 'array') return texts.flatMap(({ text, whole }) => asList(text, property.items ?? {}, flag, whole))
  return asValue(first.text, property, flag)
}

function textOf(raw: Raw | undefined): string | undefined {
  return Array.isArray(raw) ? raw[0] : undefined
}
