import { createHash, type Hash } from 'node:crypto'
import { UsageError } from '../kernel/error.ts'
import { CopySource, knownMigrations, listed, quoted, type SourceTable, type Value } from './copy-source.ts'
import { CopyTarget, type TargetColumn, withoutPassword } from './copy-target.ts'
import type { NamedMigrations } from './migrate.ts'
import { markMoved } from './moved.ts'
import { beginGeneration, openPostgres } from './postgres.ts'

export interface CopyOptions {
  /** A SQLite file. The caller holds its daemon's lock. */
  source: string
  /** The address of an empty PostgreSQL database. */
  target: string
  migrations: NamedMigrations[]
  /** Waited for. */
  onTable?(copied: CopiedTable): void | Promise<void>
}

export interface PlannedTable {
  table: string
  rows: number
}

export interface CopiedTable extends PlannedTable {
  /** SHA-256 over the rows as either database gives them back, in the order of the primary key. */
  hash: string
}

/** Both at once bound the memory that a batch takes: many small rows, or a few of a megabyte. */
const BATCH_ROWS = 1_000
const BATCH_CHARACTERS = 2_000_000

/** What would be copied. Throws what a copy would be refused with, and writes nothing anywhere. */
export function planCopy(options: CopyOptions): Promise<PlannedTable[]> {
  return withBoth(options, async (source) => source.tables.map(({ name, rows }) => ({ table: name, rows })))
}

/** In one transaction: whatever ends it early leaves the target without a row, and it can be repeated. The source is marked as moved. */
export function copyToPostgres(options: CopyOptions): Promise<CopiedTable[]> {
  return withBoth(options, async (source, target) => {
    await (await openPostgres({ url: options.target, migrations: options.migrations })).close()
    await target.client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
    const copied = await fill(source, target, options.onTable)
    markMoved(options.source, withoutPassword(options.target))
    await commit(target)
    return copied
  })
}

async function withBoth<T>(options: CopyOptions, work: (source: CopySource, target: CopyTarget) => Promise<T>): Promise<T> {
  const source = CopySource.open(options.source, options.migrations)
  try {
    const target = await CopyTarget.connect(options.target)
    try {
      const ours = new Set(['migrations', ...source.tables.map((table) => table.name)])
      await target.refuseUnfit(ours, knownMigrations(options.migrations))
      return await work(source, target)
    } finally {
      await target.close()
    }
  } finally {
    source.close()
  }
}

async function fill(source: CopySource, target: CopyTarget, onTable: CopyOptions['onTable'] = () => {}): Promise<CopiedTable[]> {
  const names = source.tables.map((table) => table.name)
  // A daemon, or another copy, that began in the meantime: either it wrote before this, or it waits for us.
  await target.client.query(`LOCK TABLE ${listed(names)} IN ACCESS EXCLUSIVE MODE`)
  await target.refuseRows(names)
  await target.client.query('DELETE FROM meta')
  const bringBackReferences = await target.withoutReferences()
  const generation = Number(source.meta('generation') ?? 1)
  const filled: Filled[] = []
  for (const table of source.tables) {
    filled.push(await fillTable(source, target, table, generation).catch((error) => Promise.reject(inTable(table.name, error))))
    await onTable(filled.at(-1) as Filled)
  }
  await bringBackReferences()
  await target.client.query(`ANALYZE ${listed(names)}`)
  for (const table of filled) await compare(target, table)
  await beginGeneration(target.client)
  return filled.map(({ table, rows, hash }) => ({ table, rows, hash }))
}

interface Filled extends CopiedTable {
  source: SourceTable
  pages: number[]
}

async function fillTable(source: CopySource, target: CopyTarget, table: SourceTable, generation: number): Promise<Filled> {
  const columns = await target.columns(table.name)
  const rowOf = inColumns(table, columns, generation)
  const seen = new Fingerprint()
  const pages: number[] = []
  for (const batch of batches(source.rows(table))) {
    for (const row of batch) seen.add(row)
    await target.insert(table.name, columns, batch.map(rowOf))
    pages.push(batch.length)
  }
  if (seen.rows !== table.rows) throw new Error(`SQLite counts ${table.rows} rows and gave ${seen.rows}`)
  await goOnCounting(target, table.name, columns)
  return { table: table.name, rows: seen.rows, hash: seen.hash(), source: table, pages }
}

/** Neither database says in which table a value was that it could not read or take. */
function inTable(table: string, error: Error): Error {
  return new Error(`${table}: ${error.message}`, { cause: error })
}

function* batches(rows: Iterable<Value[]>): Generator<Value[][]> {
  let batch: Value[][] = []
  let characters = 0
  for (const row of rows) {
    batch.push(row)
    for (const value of row) if (typeof value === 'string') characters += value.length
    if (batch.length < BATCH_ROWS && characters < BATCH_CHARACTERS) continue
    yield batch
    batch = []
    characters = 0
  }
  if (batch.length) yield batch
}

/** Those that only PostgreSQL has keep the order of commits: see `located` in postgres-ledger.ts. */
function inColumns(table: SourceTable, columns: TargetColumn[], generation: number): (row: Value[]) => Value[] {
  const readers = columns.map(({ name }): ((row: Value[]) => Value) => {
    const at = table.columns.indexOf(name)
    if (at >= 0) return (row) => row[at] as Value
    if (name === 'generation') return () => generation
    if (name === 'xid') return () => '0'
    throw new Error(`nothing is known to put into ${table.name}.${name}`)
  })
  const lost = table.columns.filter((name) => !columns.some((column) => column.name === name))
  if (lost.length) throw new Error(`the target has no column for ${table.name}.${lost.join(', ')}`)
  return (row) => readers.map((read) => read(row))
}

async function goOnCounting(target: CopyTarget, table: string, columns: TargetColumn[]): Promise<void> {
  for (const { name } of columns.filter((column) => column.identity)) {
    const { rows } = await target.client.query(`SELECT coalesce(max(${quoted(name)}), 0) + 1 AS next FROM ${quoted(table)}`)
    await target.client.query(`ALTER TABLE ${quoted(table)} ALTER COLUMN ${quoted(name)} RESTART WITH ${Number(rows[0]?.next)}`)
  }
}

async function compare(target: CopyTarget, { source, rows, hash, pages }: Filled): Promise<void> {
  const found = new Fingerprint()
  for await (const row of target.rows(source, pages)) found.add(row)
  const copied = found.hash()
  if (found.rows === rows && copied === hash) return
  throw new UsageError(
    `${source.name} did not arrive as it was: ${rows} rows with hash ${hash.slice(0, 12)} were sent, ${found.rows} with ${copied.slice(0, 12)} came back. Nothing was copied.`,
  )
}

/** One way of writing a row down, whichever database it came from. */
class Fingerprint {
  readonly #hash: Hash = createHash('sha256')
  rows = 0

  add(row: Value[]): void {
    for (const value of row) if (!isExact(value)) throw new Error(`${typeof value} ${String(value)} cannot be compared exactly`)
    this.#hash.update(`${JSON.stringify(row)}\n`)
    this.rows++
  }

  hash(): string {
    return this.#hash.digest('hex')
  }
}

function isExact(value: unknown): boolean {
  return value === null || typeof value === 'string' || Number.isSafeInteger(value)
}

async function commit(target: CopyTarget): Promise<void> {
  try {
    await target.client.query('COMMIT')
  } catch (error) {
    throw new UsageError(
      `The connection was lost while the copy was being made final: ${(error as Error).message}. Run the same command with --dry-run: if the target is no longer empty, the copy is there and whole.`,
    )
  }
}
