import pg from 'pg'
import { Collision, TransientFault } from '../kernel/error.ts'
import type { Ledger } from '../kernel/log.ts'
import type { Tx } from '../kernel/storage.ts'
import { coreMigrations } from './core.ts'
import { type CheckResult, type Engine, POSTGRES } from './engine.ts'
import { migrate, type NamedMigrations } from './migrate.ts'
import { builderOn, exactNumbers, PostgresConnection, translated } from './postgres-connection.ts'
import { APPLICATION, postgresLedger } from './postgres-ledger.ts'
import { asTx } from './tables.ts'

const CHANNEL = 'signalbox_events'
/** Any number that nobody else uses: daemons that start together migrate one after the other. */
const MIGRATION_LOCK = 7_283_901

const READERS = 6
const WRITERS = 10
const COLLISIONS_BEFORE_GIVING_UP = 8
const NOTIFY_WITHIN_MS = 5
const SAFETY_LOOK_MS = 1_000
const RECONNECT_MS = 500

export async function openPostgres({ url, migrations }: { url: string; migrations: NamedMigrations[] }): Promise<Engine> {
  const settings = {
    connectionString: url,
    types: exactNumbers,
    application_name: APPLICATION,
    connectionTimeoutMillis: 5_000,
    // A transaction that was left open would hold the event log's watermark back for everybody.
    idle_in_transaction_session_timeout: 10_000,
    statement_timeout: 30_000,
  } as pg.PoolConfig
  const generation = await prepare(new pg.Client(settings as pg.ClientConfig), migrations)
  return new PostgresEngine(settings, generation)
}

class PostgresEngine implements Engine {
  readonly facts = POSTGRES
  readonly view: Tx
  readonly ledger: Ledger
  readonly generation: number
  readonly notices: string[] = []
  readonly sound = true
  readonly #reading: pg.Pool
  readonly #writing: pg.Pool
  readonly #bell: Bell
  #calls = 0

  constructor(settings: pg.PoolConfig, generation: number) {
    // Two pools: a burst of writes can never keep a read, and so health, from being answered.
    this.#reading = new pg.Pool({ ...settings, max: READERS })
    this.#writing = new pg.Pool({ ...settings, max: WRITERS })
    // A pooled connection that dies while idle is replaced at its next use; without a listener it would end the process.
    for (const pool of [this.#reading, this.#writing]) pool.on('error', () => {})
    this.view = asTx(builderOn(new PostgresConnection(this.#reading)))
    this.generation = generation
    this.ledger = postgresLedger(generation)
    this.#bell = new Bell(settings as pg.ClientConfig)
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
        await pause(Math.random() * 2 ** collisions)
      }
    }
  }

  /** One connection for the whole of it; a handler never gets a second one, so the pool cannot wait for itself. */
  async #once<T>(job: (tx: Tx) => Promise<T>): Promise<T> {
    const client = await this.#writing.connect().catch((error) => Promise.reject(translated(error)))
    const connection = new PostgresConnection(client)
    let broken: Error | undefined
    const onBroken = (error: Error) => {
      broken = error
    }
    client.on('error', onBroken)
    try {
      await client.query('BEGIN')
      const value = await job(asTx(builderOn(connection)))
      connection.open = false
      await client.query('COMMIT')
      return value
    } catch (error) {
      connection.open = false
      await client.query('ROLLBACK').catch(onBroken)
      throw translated(broken ?? error)
    } finally {
      client.off('error', onBroken)
      client.release(broken)
    }
  }

  onChange(listener: () => void): void {
    this.#bell.onRing(listener)
  }

  async newestCall(): Promise<string | undefined> {
    const { rows } = await this.#reading.query('SELECT id FROM calls ORDER BY id DESC LIMIT 1')
    return rows[0]?.id as string | undefined
  }

  async check(): Promise<CheckResult> {
    await this.#reading.query('SELECT 1')
    return { ok: true, problems: [] }
  }

  backup(): Promise<void> {
    return Promise.reject(new Error('PostgreSQL is backed up with its own tools: pg_dump.'))
  }

  stats() {
    return { queued: this.#writing.waitingCount, batches: this.#calls, calls: this.#calls, size_bytes: 0 }
  }

  async close(): Promise<void> {
    await this.#bell.close()
    await Promise.all([this.#reading.end(), this.#writing.end()])
  }
}

/**
 * Tells the other daemons, and hears them. One empty NOTIFY for all commits of a few milliseconds, sent outside their
 * transactions (inside, it costs four times); a slow look makes up for one that was lost with its connection.
 */
class Bell {
  readonly #settings: pg.ClientConfig
  readonly #listeners: (() => void)[] = []
  readonly #safety: NodeJS.Timeout
  #client: pg.Client | undefined
  #timer: NodeJS.Timeout | undefined
  #connecting: Promise<void>
  #closed = false

  constructor(settings: pg.ClientConfig) {
    this.#settings = settings
    this.#safety = setInterval(() => this.#tell(), SAFETY_LOOK_MS)
    this.#safety.unref()
    this.#connecting = this.#connect()
  }

  onRing(listener: () => void): void {
    this.#listeners.push(listener)
  }

  ring(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      void this.#client?.query(`NOTIFY ${CHANNEL}`).catch(() => {})
    }, NOTIFY_WITHIN_MS)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#safety)
    clearTimeout(this.#timer)
    // One that is just being made would otherwise outlive us.
    await this.#connecting
    await this.#client?.end().catch(() => {})
  }

  async #connect(): Promise<void> {
    if (this.#closed) return
    const client = new pg.Client(this.#settings)
    client.on('error', () => {})
    client.on('notification', () => this.#tell())
    client.once('end', () => {
      this.#client = undefined
      if (!this.#closed) this.#reconnect()
    })
    try {
      await client.connect()
      await client.query(`LISTEN ${CHANNEL}`)
      this.#client = client
      this.#tell()
    } catch {
      await client.end().catch(() => {})
    }
  }

  #reconnect(): void {
    setTimeout(() => {
      this.#connecting = this.#connect()
    }, RECONNECT_MS).unref()
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}

async function prepare(client: pg.Client, migrations: NamedMigrations[]): Promise<number> {
  await client.connect()
  try {
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
    const { rows } = await client.query(`SELECT value FROM meta WHERE name = 'generation'`)
    return Number(rows[0]?.value ?? 1)
  } finally {
    await client.end()
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
