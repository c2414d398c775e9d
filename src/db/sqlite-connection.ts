import { existsSync, statSync } from 'node:fs'
import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite'
import {
  type CompiledQuery,
  type DatabaseConnection,
  DefaultQueryExecutor,
  DummyDriver,
  Kysely,
  type LimitNode,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { type ErrorBody, Refusal, TransientFault } from '../kernel/error.ts'
import { Changes, writtenBy } from './changes.ts'

const MAX_STATEMENTS = 500

interface Prepared {
  statement: StatementSyncInstance
  /** Of the rows that it gives back; none: it gives none. */
  columns: string[]
  writesTo: string | undefined
}

/** One SQLite connection with its prepared statements. Without the cache every call re-parses its SQL and memory grows. */
export class Connection implements DatabaseConnection {
  readonly raw: DatabaseSyncInstance
  readonly changes = new Changes()
  /** Told when a page cannot be read: whoever asks for health must hear of it too. */
  onDamage: ((error: DamagedDatabase) => void) | undefined
  /** Told when the disk takes no write, though it is not full: that passes only when somebody mends it. */
  onUnwritable: ((why: string) => void) | undefined
  readonly #statements = new Map<string, Prepared>()

  constructor(path: string, options: { readOnly?: boolean } = {}) {
    for (const suffix of ['', '-wal', '-journal', '-shm']) requirePlain(path + suffix)
    this.raw = new DatabaseSync(path, { readOnly: options.readOnly ?? false })
    // Blocking the event loop for a lock would stop health too: wait briefly here, longer and asynchronously above.
    this.raw.exec('PRAGMA busy_timeout = 100; PRAGMA foreign_keys = ON;')
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    try {
      const { statement, columns, writesTo } = this.#prepared(query.sql)
      if (writesTo !== undefined) this.changes.wrote(writesTo)
      const parameters = query.parameters as never[]
      if (columns.length)
        return { rows: (statement.all(...parameters) as unknown as unknown[][]).map((values) => rowOf<R>(columns, values)) }
      const { changes, lastInsertRowid } = statement.run(...parameters)
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
    } catch (error) {
      throw this.#told(translated(error))
    }
  }

  #prepared(sql: string): Prepared {
    const known = this.#statements.get(sql)
    if (known) return known
    if (this.#statements.size >= MAX_STATEMENTS) {
      const [oldest] = this.#statements.keys()
      this.#statements.delete(oldest as string)
    }
    const statement = this.raw.prepare(sql)
    const columns = statement.columns().map(({ name }) => name)
    statement.setReturnArrays(true)
    const prepared = { statement, columns, writesTo: writtenBy(sql) }
    this.#statements.set(sql, prepared)
    return prepared
  }

  // biome-ignore lint/correctness/useYield: Kysely asks for it; nothing here streams
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('page through rows by keyset instead of streaming them')
  }

  /** SAVEPOINT and RELEASE, for every job. */
  control(sql: string): void {
    try {
      this.#prepared(sql).statement.run()
    } catch (error) {
      throw this.#told(translated(error))
    }
  }

  exec(sql: string): void {
    try {
      this.raw.exec(sql)
    } catch (error) {
      throw this.#told(translated(error))
    }
  }

  #told(error: unknown): unknown {
    if (error instanceof DamagedDatabase) this.onDamage?.(error)
    if (error instanceof UnwritableDatabase) this.onUnwritable?.(error.body.message)
    return error
  }

  close(): void {
    this.#statements.clear()
    this.raw.close()
  }
}

/** Made here: the package would make objects without a prototype, which V8 keeps as hash tables, several times as slow. */
function rowOf<R>(columns: string[], values: unknown[]): R {
  const row: Record<string, unknown> = {}
  for (let i = 0; i < columns.length; i++) row[columns[i] as string] = values[i]
  return row as R
}

/** SQLite looks at a bare `LIMIT ?` when it plans: each new value, and every run has one, would compile the statement again. */
class Compiler extends SqliteQueryCompiler {
  protected override visitLimit(node: LimitNode): void {
    super.visitLimit(node)
    this.append(' + 0')
  }
}

const compiler = new Compiler()
const adapter = new SqliteAdapter()
const driver = new DummyDriver()
const dialect = {
  createAdapter: () => adapter,
  createDriver: () => driver,
  createIntrospector: (db: Kysely<never>) => new SqliteIntrospector(db),
  createQueryCompiler: () => compiler,
}

/** A query builder whose statements run on this connection. Cheap: one is made for each call. */
export function builderOn(connection: DatabaseConnection): Kysely<unknown> {
  const executor = new DefaultQueryExecutor(compiler, adapter, { provideConnection: (use) => use(connection) })
  return new Kysely<unknown>({ config: { dialect }, driver, dialect, executor } as never)
}

const [BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB] = [5, 6, 8, 10, 11, 13, 14, 26]

/** `all()` of @photostructure/sqlite throws without its code: a full disk would pass for a defect of ours. */
const CODE_OF: Record<string, number> = {
  'database is locked': BUSY,
  'database table is locked': LOCKED,
  'attempt to write a readonly database': READONLY,
  'disk I/O error': IOERR,
  'database disk image is malformed': CORRUPT,
  'database or disk is full': FULL,
  'unable to open database file': CANTOPEN,
  'file is not a database': NOTADB,
}

function resultCode(error: unknown): number | undefined {
  const { errcode, message } = error as { errcode?: number; message?: string }
  return errcode === undefined ? CODE_OF[message ?? ''] : errcode & 0xff
}

/** SQLite's result codes in our words: what passes by itself, what the disk refuses, what is damaged. */
export function translated(error: unknown): unknown {
  switch (resultCode(error)) {
    case BUSY:
    case LOCKED:
      return new TransientFault(error)
    case FULL:
      return new Refusal(unwritten(error as Error))
    case READONLY:
    case IOERR:
    case CANTOPEN:
      return new UnwritableDatabase(unwritten(error as Error))
    case CORRUPT:
    case NOTADB:
      return new DamagedDatabase(error as Error)
    default:
      return error
  }
}

/** To open a pipe or a device waits for its other end, and with it the whole process. What is wrong otherwise, SQLite says. */
function requirePlain(path: string): void {
  const found = existsSync(path) ? statSync(path, { throwIfNoEntry: false }) : undefined
  if (found && !found.isFile() && !found.isDirectory()) throw new Error(`${path} is not a plain file`)
}

function unwritten({ message }: Error): ErrorBody {
  return {
    code: 'STORAGE_FULL',
    message: `The database cannot be written: ${message}. Nothing was written.`,
    hint: 'Free some space on the disk of $SIGNALBOX_HOME, or make it writable; Signalbox goes on by itself.',
  }
}

class UnwritableDatabase extends Refusal {}

export class DamagedDatabase extends Refusal {
  override readonly cause: Error
  constructor(cause: Error) {
    super({
      code: 'INTERNAL_ERROR',
      message: `The database file is damaged: ${cause.message}. Nothing was written.`,
      hint: 'Stop the daemon; "signalbox db check" names what is damaged, "signalbox db restore <file>" goes back to a backup.',
    })
    this.name = 'DamagedDatabase'
    this.cause = cause
  }
}
