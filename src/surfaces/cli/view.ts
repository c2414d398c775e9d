import type { Row } from './call.ts'
import { isEmpty, isRow, isRows, type Look, labelOf, saysTwice, textOf, toned } from './cell.ts'
import { type Property, propertiesOf } from './schema.ts'
import { table } from './table.ts'
import { oneLine, pad, width, wrap } from './text.ts'

const WIDEST_TEXT = 100
const LEAST_ROOM = 20

/** An answer for a person's eyes: lists as tables, a thing as one field a line. */
export function view(result: Row, schema: Property, noun: string, look: Look): string {
  const properties = propertiesOf(schema)
  const entries = Object.entries(result).filter(([key, value]) => !isForPrograms(key, value) && !isEmpty(value))
  const things = entries.filter(([, value]) => isRow(value))
  const [thing] = things
  // `{ task_id, handle, task }` is the task; what stands beside it repeats it.
  if (thing && things.length === 1 && isRow(thing[1]) && isThing(thing[1])) {
    const inner = thing[1]
    const beside = entries.filter(([key, value]) => key !== thing[0] && !Object.values(inner).includes(value as never))
    const own = record(inner, properties[thing[0]], thing[0], look)
    return own + (beside.length ? `\n${record(Object.fromEntries(beside), schema, noun, look)}` : '')
  }
  const lists = entries.filter(([, value]) => isRows(value))
  const [list] = lists
  if (!list || lists.length > 1 || !isRows(list[1])) return record(Object.fromEntries(entries), schema, noun, look)
  // The list is the answer; what else there is stands below it.
  const rest = entries.filter((entry) => entry !== list)
  const below = rest.length ? `\n${record(Object.fromEntries(rest), schema, noun, look)}` : ''
  return listed(list[1], properties[list[0]]?.items, singular(list[0]), look) + below
}

/** Of things that have lists of their own a table would show nothing but ids: each stands for itself, with a table of what it has. */
function listed(rows: Row[], schema: Property | undefined, noun: string, look: Look): string {
  const nested = rows.some((row) => Object.values(row).some((value) => isRows(value) && value.length > 0))
  return nested ? rows.map((row) => record(row, schema, noun, look)).join('\n') : table(rows, schema, noun, look)
}

/** `next` is told as a command by whoever knows the command; the others only serve to go on from here. */
function isForPrograms(key: string, value: unknown): boolean {
  return ['cursor', 'next', 'resume'].includes(key) || (key === 'version' && typeof value === 'number')
}

const isThing = (row: Row) => 'id' in row || 'handle' in row

function record(row: Row, schema: Property | undefined, noun: string, look: Look): string {
  const properties = propertiesOf(schema)
  const entries = Object.entries(row).filter(([key, value]) => !isForPrograms(key, value) && !isEmpty(value) && !saysTwice(key, row, look))
  const name = ['title', 'name'].find((key) => typeof row[key] === 'string')
  const headed = name !== undefined && typeof row.handle === 'string'
  const inHead = headed ? ['handle', name] : []
  const head = headed ? headline(oneLine(String(row.handle)), oneLine(String(row[name])), look) : ''
  const simple = entries.filter(([key, value]) => !inHead.includes(key) && !isRow(value) && !isRows(value))
  const ordered = [...simple.filter(([key]) => key !== 'id'), ...simple.filter(([key]) => key === 'id')]
  const inner = { ...look, columns: look.columns - 2 }
  const parts = [head + fields(ordered, properties, noun, look)]
  for (const [key, value] of entries) {
    if (isRow(value)) parts.push(`${look.paint('bold', labelOf(key, noun))}\n${indented(record(value, properties[key], key, inner))}`)
    if (isRows(value)) parts.push(`${look.paint('bold', labelOf(key, noun))}\n${table(value, properties[key]?.items, singular(key), look)}`)
  }
  return parts.filter(Boolean).join('\n')
}

function headline(handle: string, title: string, look: Look): string {
  const left = width(handle) + 2
  const [first, ...rest] = wrap(title, Math.max(LEAST_ROOM, look.columns - left))
  return [`${look.paint('bold', handle)}  ${first}`, ...rest.map((line) => ' '.repeat(left) + line)].map((line) => `${line}\n`).join('')
}

export const singular = (key: string): string => key.replace(/s$/, '')

function fields(entries: [string, unknown][], properties: Record<string, Property>, noun: string, look: Look): string {
  const keys = entries.map(([key]) => key)
  const labels = keys.map((key) => labelOf(key, noun, keys))
  const left = Math.max(0, ...labels.map(width))
  const room = Math.max(LEAST_ROOM, Math.min(look.columns, WIDEST_TEXT) - left - 2)
  return entries
    .map(([key, value], i) => {
      const lines = linesOf(key, value, room, look)
      return lines
        .map((line, n) => {
          const label = n ? ' '.repeat(left) : look.paint('dim', pad(labels[i] as string, left))
          return `${label}  ${toned(line, properties[key], look)}`.trimEnd()
        })
        .map((line) => `${line}\n`)
        .join('')
    })
    .join('')
}

/** Sentences in a list stand below each other, words beside each other. */
function linesOf(key: string, value: unknown, room: number, look: Look): string[] {
  const sentences = Array.isArray(value) && value.some((item) => /\s/.test(String(item)))
  if (!sentences) return wrap(textOf(key, value, look), room)
  return value.flatMap((item) => wrap(textOf(key, item, look), room - 2).map((line, n) => (n ? `  ${line}` : `- ${line}`)))
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, '  ')
}
