import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import type { KnownValues } from '../kernel/capability.ts'
import { Collision, TransientFault, UncertainFault, UsageError } from '../kernel/error.ts'
import type { Ledger } from '../kernel/log.ts'
import type { Tx } from '../kernel/storage.ts'
import { connectionsOf, whereIs } from './address.ts'
import { coreMigrations } from './core.ts'
import { type CheckResult, type Engine, POSTGRES } from './engine.ts'
import { migrate, type NamedMigrations } from './migrate.ts'
import { Bell, type Session } from './postgres-bell.ts'
import { builderOn, exactNumbers, PatientlyQueued, PostgresConnection, translated } from './postgres-connection.ts'
import { postgresLedger, postgresRows } from './postgres-ledger.ts'
import type { RowOrder } from './row-order.ts'
import { asTx, tables } from './tables.ts'
import { knownValues, looksForStrangeValues } from './values.ts'

/** Any number that nobody else uses: daemons that start together migrate one after the other. */
const MIGRATION_LOCK = 7_283_901

const COLLISIONS_BEFORE_GIVING_UP = 8
const SIZE_EVERY_MS = 60_000
const ASK_AGAIN_MS = 200
const UNCERTAIN_AFTER_MS = 20_000
const STATUS = 'SELECT pg_xact_status($1::xid8) AS status'
const INVALID_PARAMETER = '22023'

export interface PostgresOptions {
  url: string
  migrations: NamedMigrations[]
  /** After how long without a statement the server ends a transaction. */
  idleInTransactionMs?: number
}

export async function openPostgres({ url, migrations, idleInTransactionMs = 10_000 }: PostgresOptions): Promise<Engine> {
  const settings = {
    connectionString: url,
    types: exactNumbers,
    application_name: 'signalbox',
    Client: PatientlyQueued,
    keepAlive: true,
    // A server that vanished without a word: its own limit below comes first when it lives.
    query_timeout: 35_000,
    // A transaction that was left open would hold the event log's watermark back for everybody.
    idle_in_transaction_session_timeout: idleInTransactionMs,
    statement_timeout: 30_000,
  } as unknown as pg.PoolConfig
  // A migration may take as long as it takes.
  const unlimited = { ...settings, statement_timeout: 0, query_timeout: 0 } as pg.ClientConfig
  const generation = await prepare(new PatientlyQueued(unlimited), migrations, url)
  const engine = new PostgresEngine(settings, generation, knownValues(migrations))
  await Promise.all([engine.measure(), engine.listening()])
  return engine
}

class PostgresEngine implements Engine {
  readonly facts = POSTGRES
  readonly view: Tx
  readonly ledger: Ledger
  readonly order: RowOrder
  readonly generation: number
  readonly #values: KnownValues
  readonly #reading: pg.Pool
  readonly #writing: pg.Pool
  readonly #bell: Bell
  readonly #sizing: NodeJS.Timeout
  #calls = 0
  #size = 0

  constructor(settings: pg.PoolConfig, generation: number, values: KnownValues) {
    this.#values = values
    // Two pools: a burst of writes can never keep a read, and so health, from being answered.
    const { readers, writers } = connectionsOf(settings.connectionString as string)
    this.#reading = new pg.Pool({ ...settings, max: readers })
    this.#writing = new pg.Pool({ ...settings, max: writers })
    // A pooled connection that dies while idle is replaced at its next use; without a listener it would end the process.
    for (const pool of [this.#reading, this.#writing]) pool.on('error', () => {})
    this.view = asTx(builderOn(new PostgresConnection(this.#reading)))
    this.generation = generation
    this.ledger = postgresLedger(generation)
    this.order = postgresRows(generation)
    this.#bell = new Bell(settings as pg.ClientConfig)
    this.#sizing = setInterval(() => void this.measure(), SIZE_EVERY_MS)
    this.#sizing.unref()
  }

  /** Asked for now and then, so that health answers at once, and also while the server is away. */
  async measure(): Promise<void> {
    const found = await this.#reading.query('SELECT pg_database_size(current_database()) AS bytes').catch(() => undefined)
    this.#size = Number(found?.rows[0]?.bytes ?? this.#size)
  }

  get sound(): boolean {
    return this.#bell.reachable
  }

  get notices(): string[] {
    return this.sound ? [] : ['PostgreSQL does not answer. Signalbox goes on by itself as soon as it does.']
  }

  async write<T>(job: (tx: Tx) => Promise<T>): Promise<T> {
    for (let collisions = 0; ; collisions++) {
      try {
        const value = await this.#once(job)
        this.#calls++
        this.#bell.ring()
        return value
      } catch (error) {
        if (!(error instanceof Collision)) throw error
        if (collisions === COLLISIONS_BEFORE_GIVING_UP) throw new TransientFault(error)
        await sleep(Math.random() * 2 ** collisions)
      }
    }
  }

  /** One connection for the whole of it; a handler never gets a second one, so the pool cannot wait for itself. */
  async #once<T>(job: (tx: Tx) => Promise<T>): Promise<T> {
    const client = await this.#writing.connect().catch((error) => Promise.reject(translated(error)))
    const connection = new PostgresConnection(client)
    let broken: Error | undefined
    let onBroken = (_: Error) => {}
    // The server ends a transaction that nothing happens in: a handler that hangs must not keep the connection for ever.
    const lost = new Promise<never>((_, reject) => {
      onBroken = (error) => {
        broken = error
        reject(error)
      }
    })
    lost.catch(() => {})
    client.on('error', onBroken)
    try {
      await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
      const value = await Promise.race([job(asTx(builderOn(connection))), lost])
      await connection.end()
      await this.#commit(client, connection.xid)
      return value
    } catch (error) {
      await connection.end()
      await client.query('ROLLBACK').catch(onBroken)
      throw translated(error)
    } finally {
      client.off('error', onBroken)
      client.release(broken)
    }
  }

  async #commit(client: pg.PoolClient, known: string | undefined): Promise<void> {
    const xid = known ?? (await client.query('SELECT pg_current_xact_id_if_assigned() AS xid')).rows[0]?.xid
    const witness = this.#bell.session
    try {
      await client.query('COMMIT')
    } catch (error) {
      const lost = translated(error) instanceof TransientFault
      if (!lost || !(await this.#hasCommitted(xid, witness))) throw error
    }
  }

  /**
   * The connection was lost while it committed. A session that was there before and still answers shows that the server did
   * not crash: then the transaction's number is its own, and its status tells. After a crash the number may belong to
   * another one, so this only waits until the transaction is surely over; whoever wrote looks for their own row.
   */
  async #hasCommitted(xid: string | null, witness: Session | undefined): Promise<boolean> {
    if (xid === null) return false
    for (let waited = 0; ; waited += ASK_AGAIN_MS) {
      const seen = await witness?.ask(STATUS, [xid]).catch(() => undefined)
      if (seen && seen.status !== 'in progress') return seen.status === 'committed'
      if (!seen && (await this.#isOver(xid, waited))) return false
      await sleep(ASK_AGAIN_MS)
    }
  }

  async #isOver(xid: string, waited: number): Promise<boolean> {
    try {
      const { rows } = await this.#reading.query(STATUS, [xid])
      return rows[0]?.status !== 'in progress'
    } catch (error) {
      // A number that the server has not given out yet: the crash took it back.
      if ((error as { code?: string }).code === INVALID_PARAMETER) return true
      if (waited >= UNCERTAIN_AFTER_MS) throw new UncertainFault(error)
      return false
    }
  }

  /** Sorted by the caller, so that two who want the same things do not wait for each other in a circle. */
  async hold(tx: Tx, ids: string[]): Promise<void> {
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(id, 0)) FROM unnest(${ids}::text[]) AS id`.execute(tables(tx))
  }

  listening(): Promise<void> {
    return this.#bell.tried
  }

  onChange(listener: () => void): void {
    this.#bell.onRing(listener)
  }

  async newestCall(): Promise<string | undefined> {
    const { rows } = await this.#reading.query('SELECT id FROM calls ORDER BY id DESC LIMIT 1')
    return rows[0]?.id as string | undefined
  }

  async check(): Promise<CheckResult> {
    const problems: string[] = []
    // Before version 16 it cannot say what is JSON.
    const looks = looksForStrangeValues(this.#values, (column) => `${column} IS NOT NULL`)
    for (const look of looks) problems.push(...look.problems((await this.#reading.query(look.sql)).rows))
    return { ok: problems.length === 0, problems }
  }

  backup(): Promise<void> {
    return Promise.reject(new Error('PostgreSQL is backed up with its own tools: pg_dump.'))
  }

  stats() {
    return { queued: this.#writing.waitingCount, batches: this.#calls, calls: this.#calls, size_bytes: this.#size }
  }

  async close(): Promise<void> {
    clearInterval(this.#sizing)
    await this.#bell.close()
    await Promise.all([this.#reading.end(), this.#writing.end()])
  }
}

async function prepare(client: pg.Client, migrations: NamedMigrations[], url: string): Promise<number> {
  try {
    await client.connect()
    return await setUp(client, migrations)
  } catch (error) {
    throw error instanceof UsageError ? error : unusable(url, error as Error)
  } finally {
    await client.end().catch(() => {})
  }
}

async function setUp(client: pg.Client, migrations: NamedMigrations[]): Promise<number> {
  const { rows } = await client.query('SHOW server_encoding')
  if (rows[0]?.server_encoding !== 'UTF8') throw new Error(`its encoding is ${rows[0]?.server_encoding}, not UTF8`)
  await client.query(`SELECT pg_advisory_lock(${MIGRATION_LOCK})`)
  await client.query(`CREATE TABLE IF NOT EXISTS migrations (name TEXT COLLATE "C" PRIMARY KEY NOT NULL, at BIGINT NOT NULL);
    CREATE TABLE IF NOT EXISTS meta (name TEXT COLLATE "C" PRIMARY KEY NOT NULL, value TEXT NOT NULL);
    INSERT INTO meta (name, value) VALUES ('generation', '1') ON CONFLICT DO NOTHING;`)
  const connection = {
    exec: async (sql: string) => void (await client.query(sql)),
    applied: async () => new Set((await client.query('SELECT name FROM migrations')).rows.map((row) => String(row.name))),
    record: async (name: string) => void (await client.query('INSERT INTO migrations (name, at) VALUES ($1, $2)', [name, Date.now()])),
  }
  await migrate(connection, POSTGRES, [{ owner: 'core', migrations: coreMigrations }, ...migrations])
  await client.query('BEGIN')
  if (await cameFromAnotherServer(client)) await beginGeneration(client)
  await client.query('COMMIT')
  return currentGeneration(client)
}

function unusable(url: string, error: Error): UsageError {
  return new UsageError(
    `PostgreSQL at ${whereIs(url)} cannot be used: ${error.message || String((error as NodeJS.ErrnoException).code)}. Start it, create the database or correct SIGNALBOX_DATABASE_URL, then start Signalbox again.`,
    { cause: error },
  )
}

async function currentGeneration(client: pg.Client): Promise<number> {
  const { rows } = await client.query(`SELECT value FROM meta WHERE name = 'generation'`)
  return Number(rows[0]?.value ?? 1)
}

/** A dump that was restored elsewhere: there the transactions are numbered anew, perhaps below those of the rows it brought. */
async function cameFromAnotherServer(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query(
    `SELECT system_identifier::text AS here, (SELECT value FROM meta WHERE name = 'server') AS before FROM pg_control_system()`,
  )
  const { here, before } = rows[0] as { here: string; before: string | null }
  if (here === before) return false
  await client.query(`INSERT INTO meta (name, value) VALUES ('server', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, [here])
  return before !== null
}

/** From here on every row comes after those that are there, whatever the number of its transaction. */
export async function beginGeneration(client: Pick<pg.Client, 'query'>): Promise<void> {
  const { rows } = await client.query(
    `UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'generation' RETURNING value`,
  )
  const generation = Number(rows[0]?.value)
  for (const table of ['events', 'calls']) await client.query(`ALTER TABLE ${table} ALTER COLUMN generation SET DEFAULT ${generation}`)
}
