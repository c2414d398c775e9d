import type { Tool } from '../../kernel/tool.ts'
import { BUILT_IN } from './built-in.ts'
import type { Reach } from './call.ts'
import { OWN_FLAGS } from './flags.ts'
import { listed } from './handles.ts'
import { named, nouns, toolsOf, verbOf } from './names.ts'
import { argumentsOf, flagOf, kindOf, type Property, wordsOf } from './schema.ts'
import { oneLine } from './text.ts'

/** Somebody waits with the finger on the key. */
const PATIENCE_MS = 800

interface Candidate {
  word: string
  note?: string | undefined
}

/** What may stand in the place of the last word: one a line, with a tab and what it means behind it. */
export async function complete(words: string[], reach: Reach): Promise<string> {
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const candidates = await candidatesFor(before[0] === 'help' ? before.slice(1) : before, typed, reach)
  return candidates
    .filter(({ word }) => word.startsWith(typed))
    .map(({ word, note }) => `${word}${note ? `\t${oneLine(note)}` : ''}\n`)
    .join('')
}

async function candidatesFor(before: string[], typed: string, reach: Reach): Promise<Candidate[]> {
  const [noun, verb, ...args] = before
  if (noun === undefined) return [...nouns.map((word) => ({ word, note: toolsOf(word).map(verbOf).join(', ') })), ...builtIn()]
  if (verb === undefined) return verbs(noun)
  const tool = named(`${noun}_${verb.replaceAll('-', '_')}`)
  if (!tool) return []
  const flag = /^--(.+)$/.exec(args.at(-1) ?? '')?.[1]
  if (flag && takesValue(tool, flag)) return values(tool, flag, reach)
  const inline = /^--([^=]+)=/.exec(typed)
  if (inline?.[1] && takesValue(tool, inline[1]))
    return (await values(tool, inline[1], reach)).map(({ word, note }) => ({ word: inline[0] + word, note }))
  if (typed.startsWith('-')) return flags(tool, args)
  return values(tool, nextWord(tool, args), reach)
}

function builtIn(): Candidate[] {
  return Object.entries(BUILT_IN)
    .filter(([word]) => !nouns.includes(word))
    .map(([word, { does }]) => ({ word, note: does }))
}

function verbs(noun: string): Candidate[] {
  const own = toolsOf(noun).map((tool) => ({ word: verbOf(tool), note: tool.title }))
  const more = (BUILT_IN[noun]?.verbs ?? []).filter((word) => !own.some((verb) => verb.word === word))
  return [...own, ...more.map((word) => ({ word }))]
}

function flags(tool: Tool, used: string[]): Candidate[] {
  const own = Object.entries(OWN_FLAGS).filter(([, { when }]) => when?.(tool) ?? true)
  const all = [
    ...Object.entries(argumentsOf(tool)).map(([name, property]) => ({
      word: `--${property.type === 'boolean' && property.default === true ? 'no-' : ''}${flagOf(name)}`,
      note: property.description,
      again: property.type === 'array',
    })),
    ...own.map(([name, { does }]) => ({ word: `--${name}`, note: does, again: false })),
  ]
  const given = used.map((arg) => arg.split('=')[0])
  return all.filter(({ word, again }) => again || !given.includes(word))
}

function propertyOf(tool: Tool, flag: string): [string, Property] | undefined {
  return Object.entries(argumentsOf(tool)).find(([name]) => flagOf(name) === flag)
}

function takesValue(tool: Tool, flag: string): boolean {
  const [, property] = propertyOf(tool, flag) ?? []
  return property ? property.type !== 'boolean' : Boolean(OWN_FLAGS[flag]?.takes)
}

/** The flag whose value may stand here without it. */
function nextWord(tool: Tool, args: string[]): string {
  const given = args.filter((arg) => arg.startsWith('--')).map((arg) => arg.slice(2).split('=')[0])
  const words = args.filter((arg, i) => !arg.startsWith('-') && !takesValue(tool, (args[i - 1] ?? '').replace(/^--/, '')))
  const open = wordsOf(tool)
    .map(flagOf)
    .filter((flag) => !given.includes(flag))
  return open[words.length] ?? ''
}

async function values(tool: Tool, flag: string, reach: Reach): Promise<Candidate[]> {
  const [name, property] = propertyOf(tool, flag) ?? []
  const words = property?.enum ?? property?.items?.enum
  if (words) return words.map((word) => ({ word }))
  const kind = name ? kindOf(tool, name) : OWN_FLAGS[flag]?.takes?.toLowerCase()
  if (!kind) return []
  // A daemon that is down or slow has no candidates, and nothing to say in the middle of a line.
  const found = await listed(kind, reach, AbortSignal.timeout(PATIENCE_MS)).catch(() => [])
  return found.map(({ handle, label }) => ({ word: handle, note: label }))
}
