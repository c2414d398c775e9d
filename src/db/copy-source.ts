import { UsageError } from '../kernel/error.ts'
import { coreMigrations } from './core.ts'
import { checkFile } from './maintenance.ts'
import { migrationNames, type NamedMigrations } from './migrate.ts'
import { damaged } from './sqlite.ts'
import { Connection } from './sqlite-connection.ts'

/** What both databases give back for a column: anything else could not be compared. */
export type Value = string | number | null

export interface SourceTable {
  name: string
  columns: string[]
  /** The columns of its primary key, in order. */
  key: string[]
  rows: number
}

/** A SQLite database as it is at one instant. Nothing of it is ever changed. */
export class CopySource {
  readonly #connection: Connection
  readonly tables: SourceTable[]

  private constructor(connection: Connection) {
    this.#connection = connection
    connection.exec('BEGIN')
    const found = this.#all(
      `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' AND name <> 'migrations' ORDER BY name`,
    )
    this.tables = found.map(([name]) => this.#describe(String(name)))
  }

  static open(path: string, migrations: NamedMigrations[]): CopySource {
    const { ok, problems } = checkFile(path)
    if (!ok) throw damaged(path, new Error(problems.join('; ')))
    const connection = new Connection(path, { readOnly: true })
    try {
      refuseOtherVersion(connection, path, migrations)
      return new CopySource(connection)
    } catch (error) {
      connection.close()
      throw error
    }
  }

  /** In the order of the primary key, one by one. */
  *rows({ name, columns, key }: SourceTable): Generator<Value[]> {
    const statement = this.#connection.raw.prepare(`SELECT ${listed(columns)} FROM ${quoted(name)} ORDER BY ${listed(key)}`)
    statement.setReturnArrays(true)
    yield* statement.iterate() as unknown as Iterable<Value[]>
  }

  meta(name: string): string | undefined {
    return this.#all(`SELECT value FROM meta WHERE name = ${literal(name)}`)[0]?.map(String)[0]
  }

  close(): void {
    this.#connection.close()
  }

  #describe(name: string): SourceTable {
    const columns = this.#all(`SELECT name, pk FROM pragma_table_info(${literal(name)}) ORDER BY cid`)
    const key = columns.filter(([, pk]) => Number(pk) > 0).sort(([, a], [, b]) => Number(a) - Number(b))
    if (!key.length) throw new Error(`the table ${name} has no primary key, so its rows have no order in which to compare them`)
    const [[rows] = []] = this.#all(`SELECT count(*) FROM ${quoted(name)}`)
    return { name, columns: columns.map(([column]) => String(column)), key: key.map(([column]) => String(column)), rows: Number(rows) }
  }

  #all(sql: string): Value[][] {
    const statement = this.#connection.raw.prepare(sql)
    statement.setReturnArrays(true)
    return statement.all() as unknown as Value[][]
  }
}

export function knownMigrations(migrations: NamedMigrations[]): Set<string> {
  return new Set([{ owner: 'core', migrations: coreMigrations }, ...migrations].flatMap(migrationNames))
}

/** Migrating it here would change it, and the target's tables are those of this version. */
function refuseOtherVersion({ raw }: Connection, path: string, migrations: NamedMigrations[]): void {
  const applied = new Set(
    raw
      .prepare('SELECT name FROM migrations')
      .all()
      .map((row) => String(row.name)),
  )
  const known = knownMigrations(migrations)
  const newer = [...applied].filter((name) => !known.has(name))
  if (newer.length) throw new UsageError(`${path} was written by a newer Signalbox (it has ${newer.join(', ')}). Update Signalbox first.`)
  const missing = [...known].filter((name) => !applied.has(name))
  if (missing.length)
    throw new UsageError(
      `${path} was written by an older Signalbox (it lacks ${missing.join(', ')}). Start this version of Signalbox on it once, stop it, and copy then.`,
    )
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

export function listed(names: string[]): string {
  return names.map(quoted).join(', ')
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
