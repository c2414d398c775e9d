import type { Compilable, CompiledQuery, Kysely, QueryResult } from 'kysely'
import type { Tx } from '../kernel/storage.ts'
import { tables } from './tables.ts'

/** Stands where a value will be put when the statement runs. */
class Slot {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

type Values = Record<string, unknown>
type AnyTables = Record<string, Values>

/** A statement whose text does not depend on its values, so that it is built and compiled once for each engine. */
export interface Statement<P extends Values, Row> {
  all(tx: Tx, values: P): Promise<Row[]>
  first(tx: Tx, values: P): Promise<Row | undefined>
  /** How many rows it has changed. */
  run(tx: Tx, values: P): Promise<bigint>
}

/** `build` gets a placeholder for each value: it may pass it on, but must not look into it. */
export function statement<T, P extends Values, Row>(build: (db: Kysely<T>, values: P) => Compilable<Row>): Statement<P, Row> {
  const compiled = compiledOnce<Row>((db) => build(db as Kysely<T>, SLOTS as P))
  const filled = (tx: Tx, values: P) => {
    const query = compiled(tx)
    return execute(
      tx,
      query,
      query.parameters.map((value) => (value instanceof Slot ? values[value.name] : value)),
    )
  }
  return {
    all: async (tx, values) => (await filled(tx, values)).rows,
    first: async (tx, values) => (await filled(tx, values)).rows[0],
    run: async (tx, values) => (await filled(tx, values)).numAffectedRows ?? 0n,
  }
}

/** Inserts whole rows of one table, so many at a time that a few texts do for any number of them. */
export function insertion<Row extends object>(table: string, options: { orNothing?: string } = {}): (tx: Tx, rows: Row[]) => Promise<void> {
  const texts = new Map<string, (tx: Tx) => CompiledQuery<unknown>>()
  return async (tx, rows) => {
    for (let from = 0; from < rows.length; ) {
      const columns = columnsOf(rows[from] as Values)
      const names = columns.join()
      const some = likeTheFirst(rows.slice(from, from + MOST_AT_ONCE) as Values[], names)
      const key = `${some.length} ${names}`
      const compiled = texts.get(key) ?? compiledOnce<unknown>((db) => insertRows(db as never, table, some, options.orNothing))
      texts.set(key, compiled)
      await execute(
        tx,
        compiled(tx),
        some.flatMap((row) => columns.map((column) => row[column])),
      )
      from += some.length
    }
  }
}

function columnsOf(row: Values): string[] {
  return Object.keys(row).filter((column) => row[column] !== undefined)
}

/** As many as have the same columns, and of those a power of two. */
function likeTheFirst(rows: Values[], columns: string): Values[] {
  if (rows.length === 1) return rows
  const other = rows.findIndex((row) => columnsOf(row).join() !== columns)
  return rows.slice(0, largestPowerOfTwo(other < 0 ? rows.length : other))
}

const MOST_AT_ONCE = 64

const SLOTS = new Proxy({}, { get: (_, name) => new Slot(String(name)) })

/** The parameters are the columns of the first row, then those of the next. */
function insertRows(db: Kysely<never>, table: string, rows: Values[], orNothing: string | undefined): Compilable<unknown> {
  const insert = (db as unknown as Kysely<AnyTables>).insertInto(table).values(rows)
  return orNothing === undefined ? insert : insert.onConflict((oc) => oc.column(orNothing).doNothing())
}

/** One text for each engine: they write the same statement differently. */
function compiledOnce<Row>(build: (db: Kysely<unknown>) => Compilable<Row>): (tx: Tx) => CompiledQuery<Row> {
  const byEngine = new Map<unknown, CompiledQuery<Row>>()
  return (tx) => {
    const db = tables<unknown>(tx)
    const { adapter } = db.getExecutor()
    const known = byEngine.get(adapter)
    if (known) return known
    const compiled = build(db).compile()
    byEngine.set(adapter, compiled)
    return compiled
  }
}

function execute<Row>(tx: Tx, compiled: CompiledQuery<Row>, parameters: readonly unknown[]): Promise<QueryResult<Row>> {
  return tables<unknown>(tx).executeQuery({ ...compiled, parameters })
}

function largestPowerOfTwo(upTo: number): number {
  return 2 ** Math.floor(Math.log2(upTo))
}
