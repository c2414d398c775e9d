import { accessSync, chmodSync, constants, statSync } from 'node:fs'
import { sql } from 'kysely'
import type { KnownValues } from '../kernel/capability.ts'
import { UsageError } from '../kernel/error.ts'
import type { Ledger } from '../kernel/log.ts'
import type { Tx } from '../kernel/storage.ts'
import { Beside } from './beside.ts'
import { coreMigrations } from './core.ts'
import { type CheckResult, type Engine, SQLITE } from './engine.ts'
import { createLedger, sqliteOrder } from './ledger.ts'
import { type MigrationConnection, migrate, type NamedMigrations } from './migrate.ts'
import { refuseMoved } from './moved.ts'
import { sqliteRows } from './row-order.ts'
import { builderOn, Connection, DamagedDatabase, translated } from './sqlite-connection.ts'
import { asTx, tables } from './tables.ts'
import { knownValues } from './values.ts'
import { inspectWal } from './wal.ts'
import { Writer } from './writer.ts'

/** "SBOX": how we know a file of ours from somebody else's database. */
export const APPLICATION_ID = 0x53424f58

/** What every file has before its first migration. */
export const OWN_TABLES = `CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY NOT NULL, at INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT;`

export interface SqliteOptions {
  path: string
  migrations: NamedMigrations[]
}

export async function openSqlite({ path, migrations }: SqliteOptions): Promise<Engine> {
  refuseMoved(path)
  const unclean = inspectWal(`${path}-wal`)
  const writing = openForWriting(path)
  try {
    await migrate(migrationConnection(writing), SQLITE, [{ owner: 'core', migrations: coreMigrations }, ...migrations])
    const generation = Number(writing.raw.prepare(`SELECT value FROM meta WHERE name = 'generation'`).get()?.value ?? 1)
    return new SqliteEngine(path, writing, generation, knownValues(migrations), unclean ? [recovered(writing, unclean.droppedBytes)] : [])
  } catch (error) {
    writing.close()
    throw isDamage(error) ? damaged(path, error as Error) : error
  }
}

class SqliteEngine implements Engine {
  readonly facts = SQLITE
  readonly view: Tx
  readonly ledger: Ledger
  readonly order = sqliteRows
  readonly generation: number
  readonly #path: string
  readonly #values: KnownValues
  readonly #writing: Connection
  readonly #reading: Connection
  readonly #writer: Writer
  readonly #beside = new Beside()
  #checking: Promise<CheckResult> | undefined
  readonly #notices: string[]
  #damaged = false
  /** Why the disk took no write, and how many commits there were by then: with the next one it has passed. */
  #refused: { why: string; commits: number } | undefined
  #probing = false

  constructor(path: string, writing: Connection, generation: number, values: KnownValues, notices: string[]) {
    this.#path = path
    this.#values = values
    this.#writing = writing
    this.#reading = new Connection(path, { readOnly: true })
    this.#writer = new Writer(writing)
    this.view = asTx(builderOn(this.#reading))
    this.generation = generation
    this.ledger = createLedger(sqliteOrder(generation))
    this.#notices = notices
    writing.onUnwritable = (why) => {
      this.#refused = { why, commits: this.#writer.commits }
    }
    for (const connection of [this.#reading, writing]) connection.onDamage = (error) => this.#noticeDamage(error)
  }

  get sound(): boolean {
    return !this.#damaged && this.#unwritable() === undefined
  }

  get notices(): string[] {
    const unwritable = this.#unwritable()
    return unwritable ? [...this.#notices, unwritable] : this.#notices
  }

  #unwritable(): string | undefined {
    if (this.#refused?.commits !== this.#writer.commits) this.#refused = undefined
    if (this.#refused) this.#tryToWrite()
    return this.#refused?.why ?? readOnly(this.#path)
  }

  /** Whoever asks for health may be the only one left who asks for anything. */
  #tryToWrite(): void {
    if (this.#probing) return
    this.#probing = true
    const touch = async (tx: Tx) => void (await sql`UPDATE meta SET value = value WHERE name = 'generation'`.execute(tables(tx)))
    void this.write(touch)
      .catch(() => {})
      .finally(() => {
        this.#probing = false
      })
  }

  #noticeDamage(error: DamagedDatabase): void {
    if (!this.#damaged) this.#notices.push(`${error.body.message} ${error.body.hint}`)
    this.#damaged = true
  }

  write<T>(job: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#writer.write(job)
  }

  versionOf(tables: readonly string[]): number | undefined {
    return this.#writing.changes.versionOf(tables)
  }

  async newestCall(): Promise<string | undefined> {
    const row = this.#reading.raw.prepare('SELECT max(id) AS id FROM calls').get()
    return (row?.id ?? undefined) as string | undefined
  }

  /** One at a time, shared by all who ask: a storm of them must not read the whole file once for each. */
  check(): Promise<CheckResult> {
    this.#checking ??= this.#beside.run<CheckResult>({ task: 'check', path: this.#path, values: this.#values }).finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  async backup(target: string): Promise<void> {
    await this.#beside.run({ task: 'backup', path: this.#path, target })
  }

  stats() {
    const { queued, batches, calls } = this.#writer
    return { queued, batches, calls, size_bytes: sizeOf(this.#path) + sizeOf(`${this.#path}-wal`) }
  }

  async close(): Promise<void> {
    await this.#beside.close()
    await this.#writer.close()
    this.#reading.close()
    emptyLog(this.#writing)
    this.#writing.close()
  }
}

function openForWriting(path: string): Connection {
  let connection: Connection | undefined
  try {
    connection = new Connection(path)
    if (!isOurs(connection))
      throw new UsageError(`${path} is a database of another program; Signalbox leaves it alone. Choose another path.`)
    chmodSync(path, 0o600)
    connection.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA application_id = ${APPLICATION_ID};`)
    connection.exec(`${OWN_TABLES}
      INSERT INTO meta (name, value) VALUES ('generation', '1') ON CONFLICT DO NOTHING;`)
    return connection
  } catch (error) {
    connection?.close()
    throw isDamage(error) ? damaged(path, error as Error) : error
  }
}

/** Closing does not do it by itself while prepared statements live, and a log that is left means a stop that was not clean. */
function emptyLog(connection: Connection): void {
  try {
    connection.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // A full disk: the log stays, and the next start reads it.
  }
}

/** Also one without any table: a first start that was killed in its first steps leaves that behind. */
function isOurs({ raw }: Connection): boolean {
  const id = Number(raw.prepare('PRAGMA application_id').get()?.application_id)
  return id === APPLICATION_ID || (id === 0 && Number(raw.prepare('SELECT count(*) AS n FROM sqlite_master').get()?.n) === 0)
}

function migrationConnection(connection: Connection): MigrationConnection {
  return {
    exec: async (sql) => connection.exec(sql),
    applied: async () =>
      new Set(
        connection.raw
          .prepare('SELECT name FROM migrations')
          .all()
          .map((row) => String(row.name)),
      ),
    record: async (name) => void connection.raw.prepare('INSERT INTO migrations (name, at) VALUES (?, ?)').run(name, Date.now()),
  }
}

function recovered(connection: Connection, droppedBytes: number): string {
  const last = connection.raw.prepare('SELECT seq, at FROM events ORDER BY seq DESC LIMIT 1').get()
  const upTo = last ? `event ${last.seq} of ${new Date(Number(last.at)).toISOString()}` : 'an empty log'
  const lost =
    droppedBytes > 0
      ? ` The last ${droppedBytes} bytes of the write-ahead log were not a whole commit and were dropped: whatever was written after that event may be missing.`
      : ''
  return `The last stop was not clean. Recovered up to ${upTo}.${lost}`
}

function isDamage(error: unknown): boolean {
  return translated(error) instanceof DamagedDatabase || error instanceof DamagedDatabase
}

export function damaged(path: string, error: Error): Error {
  const cause = error instanceof DamagedDatabase ? error.cause : error
  return new UsageError(
    `${path} is damaged: ${cause.message}. The file was left as it is. Look at it with "signalbox db check", go back to a backup with "signalbox db restore <file>".`,
    { cause },
  )
}

/** Told by the file system before anybody has tried. */
function readOnly(path: string): string | undefined {
  try {
    accessSync(path, constants.W_OK)
    return undefined
  } catch (error) {
    return `The database cannot be written: ${(error as Error).message}.`
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
