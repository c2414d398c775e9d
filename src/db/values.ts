import { JSON_TEXT, type KnownValues } from '../kernel/capability.ts'
import { redactText } from '../kernel/redact.ts'
import type { NamedMigrations } from './migrate.ts'

interface Look {
  table: string
  column: string
  /** Gives `value` and `n`, the number of its rows. */
  sql: string
  /** What its rows mean, a line each. */
  problems(rows: { value?: unknown; n?: unknown }[]): string[]
}

const MOST_VALUES = 20
const MOST_SHOWN = 80

export function knownValues(sets: NamedMigrations[]): KnownValues {
  return Object.assign({}, ...sets.map(({ values }) => values ?? {}))
}

/** One for each column of which something is known. `notJson`: the test for a text that may be no JSON. */
export function looksForStrangeValues(values: KnownValues, notJson: (column: string) => string): Look[] {
  return Object.entries(values).flatMap(([table, columns]) =>
    Object.entries(columns).map(([column, known]) =>
      known === JSON_TEXT ? lookIntoJson(table, column, notJson(column)) : lookInto(table, column, known),
    ),
  )
}

function lookInto(table: string, column: string, known: readonly string[]): Look {
  const list = known.map((value) => `'${value}'`).join(', ')
  return {
    table,
    column,
    sql: `SELECT ${column} AS value, count(*) AS n FROM ${table} WHERE ${column} NOT IN (${list}) GROUP BY ${column} ORDER BY ${column} LIMIT ${MOST_VALUES}`,
    problems: (rows) =>
      rows.map(
        ({ value, n }) =>
          `${table}.${column}: ${many(n)} ${JSON.stringify(value)}, which this Signalbox does not know; it knows ${known.join(', ')}`,
      ),
  }
}

function lookIntoJson(table: string, column: string, notJson: string): Look {
  return {
    table,
    column,
    sql: `SELECT ${column} AS value, count(*) AS n FROM ${table} WHERE ${notJson} GROUP BY ${column} ORDER BY ${column}`,
    problems: (rows) =>
      rows
        .filter(({ value }) => !isJson(String(value)))
        .slice(0, MOST_VALUES)
        .map(
          ({ value, n }) =>
            `${table}.${column}: ${many(n)} ${JSON.stringify(redactText(String(value)).slice(0, MOST_SHOWN))}, which is no JSON`,
        ),
  }
}

function many(n: unknown): string {
  return Number(n) === 1 ? '1 row has' : `${Number(n)} rows have`
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
