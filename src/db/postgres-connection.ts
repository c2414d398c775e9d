import {
  type CompiledQuery,
  type DatabaseConnection,
  DefaultQueryExecutor,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely'
import pg from 'pg'
import { Collision, refuse, TransientFault } from '../kernel/error.ts'

/** What both a pool and one of its clients can do. */
interface Queryable {
  query(query: pg.QueryConfig): Promise<pg.QueryResult>
}

const MAX_STATEMENTS = 500
const names = new Map<string, string>()
let edition = 1

/** Nearly every transaction writes one of these, and their rows know its number: to ask for it would be one more message. */
const NUMBERED = /^insert into "(calls|events)" (?!.*\breturning\b)/s

/** Statements on one pool or client. Each text is prepared once per server connection. */
export class PostgresConnection implements DatabaseConnection {
  readonly #target: Queryable
  #last: Promise<unknown> = Promise.resolve()
  #open = true
  /** What the transaction is called, once a row of the log or the audit has told. */
  xid: string | undefined

  constructor(target: Queryable) {
    this.#target = target
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    // A statement that a late handler still sends must not land in somebody else's transaction.
    if (!this.#open) throw new Error('this transaction has ended')
    try {
      const text = NUMBERED.test(query.sql) ? `${query.sql} returning xid` : query.sql
      const result = await this.#send({ text, values: query.parameters as unknown[], name: statementName(text) })
      if (text !== query.sql) this.xid = (result.rows[0] as { xid: string } | undefined)?.xid ?? this.xid
      return { rows: result.rows as R[], numAffectedRows: BigInt(result.rowCount ?? 0) }
    } catch (error) {
      throw translated(error)
    }
  }

  /** No more statements, and none under way: what follows on this connection is the end of the transaction. */
  async end(): Promise<void> {
    this.#open = false
    await this.#last
  }

  /** A transaction is one conversation: statements that a handler sends side by side wait for each other here. */
  #send(query: pg.QueryConfig): Promise<pg.QueryResult> {
    if (this.#target instanceof pg.Pool) return this.#read(query)
    const sent = this.#last.then(() => this.#target.query(query))
    this.#last = sent.catch(() => {})
    return sent
  }

  async #read(query: pg.QueryConfig): Promise<pg.QueryResult> {
    try {
      return await this.#target.query(query)
    } catch (error) {
      if (!isStalePlan(error)) throw error
      return this.#target.query({ ...query, name: statementName(query.text) })
    }
  }

  // biome-ignore lint/correctness/useYield: Kysely asks for it; nothing here streams
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('page through rows by keyset instead of streaming them')
  }
}

/** A newer daemon has changed a table under the prepared statements of this one: from here on they are prepared anew. */
function isStalePlan(error: unknown): boolean {
  const { code, message = '' } = error as { code?: string; message?: string }
  const stale = code === '26000' || (code === '0A000' && message.includes('cached plan'))
  if (stale) {
    edition++
    names.clear()
  }
  return stale
}

/** Lists of different length make different texts: beyond a bound they are sent unprepared. */
function statementName(sql: string): string | undefined {
  const known = names.get(sql)
  if (known || names.size >= MAX_STATEMENTS) return known
  const name = `s${edition}_${names.size + 1}`
  names.set(sql, name)
  return name
}

const compiler = new PostgresQueryCompiler()
const adapter = new PostgresAdapter()
const driver = new DummyDriver()
const dialect = {
  createAdapter: () => adapter,
  createDriver: () => driver,
  createIntrospector: (db: Kysely<never>) => new PostgresIntrospector(db),
  createQueryCompiler: () => compiler,
}

export function builderOn(connection: DatabaseConnection): Kysely<unknown> {
  const executor = new DefaultQueryExecutor(compiler, adapter, { provideConnection: (use) => use(connection) })
  return new Kysely<unknown>({ config: { dialect }, driver, dialect, executor } as never)
}

const INT8 = 20
const NUMERIC = 1700

/** Numbers as numbers; one that JavaScript cannot hold exactly is a defect, not a rounding. */
export const exactNumbers = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === INT8 || oid === NUMERIC) return exact
    return pg.types.getTypeParser(oid as never, format as never)
  },
}

function exact(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new Error(`${text} cannot be held exactly`)
  return value
}

const COLLISIONS = new Set(['40001', '40P01', '23505'])
const DISK = new Set(['53100', '53200', '25006'])
/** Connection lost or refused, server starting or stopping, too many clients, a statement that waited too long. */
const GONE = /^(08|57P0|53300|25P03|57014|55P03)|^(ECONN|EPIPE|ETIMEDOUT|ENOENT|EHOSTUNREACH|EAI_AGAIN|ENETUNREACH)/

/** PostgreSQL's codes in our words. */
export function translated(error: unknown): unknown {
  if (error instanceof Collision || error instanceof TransientFault) return error
  const { code = '', message = '' } = error as { code?: string; message?: string }
  if (COLLISIONS.has(code) || isStalePlan(error)) return new Collision(message, { cause: error })
  if (DISK.has(code)) {
    return refuse('STORAGE_FULL', `The database cannot be written: ${message}. Nothing was written.`, {
      hint: 'Free space on the database server; Signalbox goes on by itself.',
    })
  }
  // The driver reports some lost connections by text alone.
  if (
    GONE.test(code) ||
    /^(Connection terminated|Client has encountered a connection error|timeout exp?ired|timeout exceeded when trying|Query read timeout|Client was closed)/.test(
      message,
    )
  )
    return new TransientFault(error)
  return error
}

/** The limit is for making a connection: in the pool it would also end a call that only waits for its turn. */
export class PatientlyQueued extends pg.Client {
  constructor(config: pg.ClientConfig) {
    super({ ...config, connectionTimeoutMillis: 5_000 })
  }
}
