import type { Row } from './call.ts'
import { isEmpty, isRow, isState, type Look, labelOf, lineOf, saysTwice, toned } from './cell.ts'
import { isTaken } from './handles.ts'
import { type Property, propertiesOf } from './schema.ts'
import { cut, pad, width } from './text.ts'

const GAP = 2
/** A title of fewer columns says little; other text may be cut shorter. */
const LEAST_LABEL = 24
/** Where the terminal is so narrow that only the name and the title stand in it. */
const LEAST_EVER = 4
const LEAST_TEXT = 12
const MOST_LABEL = 120
const MOST_TEXT = 72
/** Ranks: what tells little, and what is long. */
const WEAK = 5
const LONG = 7

interface Column {
  key: string
  title: string
  property: Property | undefined
  identity: boolean
  cells: string[]
  /** Lower stays longer when there is not room for all. */
  rank: number
  least: number
  most: number
}

/** One line a row, never wider than the terminal: the columns that tell least are left out, then texts are cut. */
export function table(rows: Row[], schema: Property | undefined, noun: string, look: Look): string {
  const columns = fitting(narrowed(columnsOf(rows, schema, noun, look), look.columns), look.columns)
  const widths = shared(columns, look.columns)
  const line = (cells: string[], paint: (cell: string, i: number) => string) => {
    const last = cells.length - 1
    const shown = cells.map((cell, i) => {
      const text = cut(cell, widths[i] as number)
      return paint(i === last ? text : pad(text, widths[i] as number), i)
    })
    return `${shown.join(' '.repeat(GAP)).trimEnd()}\n`
  }
  const head = line(
    columns.map(({ title }) => title.toUpperCase()),
    (cell) => look.paint('dim', cell),
  )
  const body = rows.map((_, r) =>
    line(
      columns.map(({ cells }) => cells[r] as string),
      (cell, i) => (columns[i]?.identity ? look.paint('bold', cell) : toned(cell, columns[i]?.property, look)),
    ),
  )
  return head + body.join('')
}

function columnsOf(rows: Row[], schema: Property | undefined, noun: string, look: Look): Column[] {
  const properties = propertiesOf(schema)
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const identity = ['handle', 'key', 'id'].find((key) => keys.includes(key))
  const shown = keys.filter((key) => !isNoise(key, identity, rows) && rows.some((row) => !isEmpty(row[key]) && !saysTwice(key, row, look)))
  const first = [identity, ...shown.filter(isLabel)].filter((key): key is string => key !== undefined && shown.includes(key))
  const ordered = [...new Set([...first, ...shown])]
  return ordered.map((key, place) => {
    const cells = rows.map((row) => lineOf(key, row[key], look))
    const title = key === 'handle' ? noun : labelOf(key, noun, keys)
    const widest = Math.max(width(title), ...cells.map(width))
    const firm = key === identity || isState(properties[key]) || /_at$|^at$|_id$/.test(key)
    const least = isLabel(key) || key === 'description' ? LEAST_LABEL : firm ? widest : LEAST_TEXT
    const rank = rankOf(key, key === identity, rows, properties[key]) + place / 100
    return {
      key,
      title,
      property: properties[key],
      identity: key === identity,
      cells,
      rank,
      least: Math.min(least, widest),
      most: firm ? widest : Math.min(widest, isLabel(key) ? MOST_LABEL : MOST_TEXT),
    }
  })
}

const isLabel = (key: string) => key === 'title' || key === 'name'

/** For programs, said by the handle already, or an id that no verb takes. */
function isNoise(key: string, identity: string | undefined, rows: Row[]): boolean {
  if (key === 'id') return identity !== 'id' || !rows.some((row) => isTaken(String(row.id)))
  return key === 'version' || key === 'cursor'
}

function rankOf(key: string, identity: boolean, rows: Row[], property: Property | undefined): number {
  if (identity) return 0
  if (isLabel(key)) return 1
  if (/^created_|_type$/.test(key)) return 6
  if (rows.some((row) => isRow(row[key])) || key === 'description') return LONG
  const sparse = rows.filter((row) => isEmpty(row[key])).length > rows.length / 2 ? 1 : 0
  const same = rows.length > 1 && rows.every((row) => JSON.stringify(row[key]) === JSON.stringify(rows[0]?.[key]))
  // Who wrote a letter, and about what, is told also when it is the same of all: what they say of themselves may be a lie.
  if (/status|state|outcome/.test(key) || key === 'from' || key === 'subject') return 2
  // What is the same in every row tells nothing about any.
  if (same) return 5
  if (isState(property)) return 3 + sparse
  return (/_at$/.test(key) ? 4 : 3) + sparse
}

/** A title is cut short before it is left out. */
function narrowed(columns: Column[], room: number): Column[] {
  const beside = columns.reduce((sum, { identity, least }) => sum + (identity ? least + GAP : 0), 0)
  const most = Math.max(LEAST_EVER, room - beside)
  return columns.map((column) => (isLabel(column.key) ? { ...column, least: Math.min(column.least, most) } : column))
}

/** What tells little comes in only where nothing has to be cut for it. */
function fitting(columns: Column[], room: number): Column[] {
  const kept: Column[] = []
  for (const column of [...columns].sort((a, b) => a.rank - b.rank)) {
    const size = column.rank < WEAK || column.rank >= LONG ? 'least' : 'most'
    const taken = [...kept, column].reduce((sum, next) => sum + next[size] + GAP, -GAP)
    if (!kept.length || taken <= room) kept.push(column)
  }
  return columns.filter((column) => kept.includes(column))
}

/** Each gets its least; what is left goes to those that could use it, by rank. */
function shared(columns: Column[], room: number): number[] {
  const widths = columns.map(({ least }) => least)
  let left = room - widths.reduce((sum, w) => sum + w, 0) - GAP * (columns.length - 1)
  for (const i of columns.map((_, i) => i).sort((a, b) => (columns[a]?.rank ?? 0) - (columns[b]?.rank ?? 0))) {
    const more = Math.max(0, Math.min(left, (columns[i]?.most ?? 0) - (widths[i] ?? 0)))
    widths[i] = (widths[i] ?? 0) + more
    left -= more
  }
  return widths
}
