import type { ParsedNode, YAMLMap } from 'yaml'
import { z } from 'zod'
import { text } from '../../kernel/schema.ts'
import { Patterns } from './words.ts'

/** A repository may propose with it what a fresh checkout of it needs. */
export const CONFIG = '.signalbox.yaml'
export const MOST_BYTES = 64 * 1_024

/** A person is shown it before it holds: no character that hides or reorders others. */
const Command = text(2_000)
  .regex(/^[^\p{C}\u2028\u2029]+$/u, 'must be one line of visible characters')
  // As an argument of the CLI the word takes a command away.
  .refine((command) => command !== 'null', 'is the text "null"; write null without quotes')

export const Needs = z.strictObject({
  checks: Command.nullable(),
  setup: Command.nullable(),
  cleanup: Command.nullable(),
  dev: Command.nullable(),
  files: Patterns,
  check_files: Patterns,
})
export type Needs = z.output<typeof Needs>
export const NEEDS = Object.keys(Needs.shape) as (keyof Needs)[]

interface Read {
  /** Only what the file says. */
  needs: Partial<Needs>
  problem: string | null
}

/** It comes from a branch. One that cannot be read proposes nothing, and says where it is wrong. */
export async function readConfig(source: string | undefined): Promise<Read> {
  if (source === undefined) return wrong(`${CONFIG} is not a text file of at most ${MOST_BYTES / 1_024} KB.`)
  // Loaded here: every command of the CLI would pay for it.
  const { LineCounter, isMap, parseDocument } = await import('yaml')
  const lines = new LineCounter()
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false })
  const at = (offset: number | undefined, why: string) => wrong(`${CONFIG}, line ${lines.linePos(offset ?? 0).line}: ${why}`)
  const [error] = document.errors
  if (error) return at(error.pos[0], `${error.message}.`)
  if (document.contents === null) return { needs: {}, problem: null }
  if (!isMap(document.contents)) return at(0, 'it has to hold "name: value" lines.')
  const read = Needs.partial().safeParse(plain(document))
  if (read.success) return { needs: read.data, problem: null }
  const [issue] = read.error.issues
  const isUnknown = issue?.code === 'unrecognized_keys'
  const name = String(isUnknown ? issue.keys[0] : (issue?.path[0] ?? ''))
  const why = isUnknown ? `"${name.slice(0, 60)}" is not known. Known: ${NEEDS.join(', ')}.` : `${name}: ${issue?.message}.`
  return at(offsetOf(document.contents, name), why)
}

function wrong(problem: string): Read {
  return { needs: {}, problem: problem.slice(0, 500) }
}

/** Aliases are refused: a few lines of them can stand for gigabytes. */
function plain(document: { toJS(options: { maxAliasCount: number }): unknown }): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 })
  } catch {
    return { 'an alias': null }
  }
}

function offsetOf(map: YAMLMap | ParsedNode, name: string): number | undefined {
  const items = 'items' in map ? (map.items as { key?: { value?: unknown; range?: [number, number, number] | null } }[]) : []
  return items.find(({ key }) => key?.value === name)?.key?.range?.[0]
}
