import type { KnownValues } from '../kernel/capability.ts'
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

export function knownValues(sets: NamedMigrations[]): KnownValues {
  return Object.assign({}, ...sets.map(({ values }) => values ?? {}))
}

/** One for each column of which all values are known. */
export function looksForStrangeValues(values: KnownValues): Look[] {
  return Object.entries(values).flatMap(([table, columns]) =>
    Object.entries(columns).map(([column, known]) => lookInto(table, column, known)),
  )
}

function lookInto(table: string, column: string, known: readonly string[]): Look {
  const list = known.map((value) => `'${value}'`).join(', ')
  return {
    table,
    column,
    sql: `SELECT ${column} AS value, count(*) AS n FROM ${table} WHERE ${column} NOT IN (${list}) GROUP BY ${column} ORDER BY ${column} LIMIT ${MOST_VALUES}`,
    problems: (rows) =>
      rows.map(({ value, n }) => {
        const many = Number(n) === 1 ? '1 row has' : `${Number(n)} rows have`
        return `${table}.${column}: ${many} ${JSON.stringify(value)}, which this Signalbox does not know; it knows ${known.join(', ')}`
      }),
  }
}
