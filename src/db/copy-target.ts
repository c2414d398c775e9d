import pg from 'pg'
import { UsageError } from '../kernel/error.ts'
import { listed, quoted, type Value } from './copy-source.ts'
import { exactNumbers } from './postgres-connection.ts'

const OLDEST_VERSION = 15
/** What a target has before anything is written: which migrations it went through, its generation, its server. */
const KEPT_BY_EVERY_TARGET = new Set(['migrations', 'meta'])

export interface TargetColumn {
  name: string
  type: string
  identity: boolean
}

/** One connection to the database that is filled. It takes as long as it takes. */
export class CopyTarget {
  readonly client: pg.Client

  private constructor(client: pg.Client) {
    this.client = client
    // Without a listener a lost connection would end the process; the statement under way fails by itself.
    client.on('error', () => {})
  }

  static async connect(url: string): Promise<CopyTarget> {
    try {
      const target = new CopyTarget(
        new pg.Client({
          connectionString: url,
          types: exactNumbers,
          application_name: 'signalbox-copy',
          connectionTimeoutMillis: 10_000,
        } as pg.ClientConfig),
      )
      await target.client.connect()
      await target.client.query('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0')
      return target
    } catch (error) {
      throw unreachable(url, error as { code?: string; message?: string })
    }
  }

  /** Reads only. */
  async refuseUnfit(ours: Set<string>, knownMigrations: Set<string>): Promise<void> {
    await this.#refuseServer()
    const present = await this.#tables()
    const foreign = present.includes('migrations') ? present.filter((name) => !ours.has(name)) : present
    if (foreign.length) throw notEmpty(`it has ${some(foreign)}, which Signalbox did not make`)
    if (present.length) await this.#refuseNewer(knownMigrations)
    await this.refuseRows(present)
  }

  async refuseRows(tables: string[]): Promise<void> {
    const filled: string[] = []
    for (const name of tables.filter((table) => !KEPT_BY_EVERY_TARGET.has(table))) {
      const { rows } = await this.client.query(`SELECT EXISTS (SELECT 1 FROM ${quoted(name)}) AS filled`)
      if (rows[0]?.filled) filled.push(name)
    }
    if (filled.length) throw notEmpty(`there are rows in ${some(filled)}`)
  }

  async columns(table: string): Promise<TargetColumn[]> {
    const { rows } = await this.client.query(
      `SELECT attname AS name, format_type(atttypid, NULL) AS type, attidentity <> '' AS identity
        FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
      [quoted(table)],
    )
    return rows as TargetColumn[]
  }

  /** Rows may point to rows that come later. Taken away they are put back, and so checked, by what is returned. */
  async withoutReferences(): Promise<() => Promise<void>> {
    const { rows } = await this.client.query(
      `SELECT conrelid::regclass::text AS "table", quote_ident(conname) AS name, pg_get_constraintdef(pg_constraint.oid) AS definition
        FROM pg_constraint JOIN pg_namespace n ON n.oid = connamespace WHERE contype = 'f' AND nspname = current_schema()`,
    )
    for (const { table, name } of rows) await this.client.query(`ALTER TABLE ${table} DROP CONSTRAINT ${name}`)
    return async () => {
      for (const { table, name, definition } of rows) await this.client.query(`ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`)
    }
  }

  async insert(table: string, columns: TargetColumn[], rows: Value[][]): Promise<void> {
    const names = listed(columns.map((column) => column.name))
    const arrays = columns.map(({ type }, i) => `$${i + 1}::${type}[]`).join(', ')
    await this.client.query(
      `INSERT INTO ${quoted(table)} (${names}) SELECT * FROM unnest(${arrays})`,
      columns.map((_, i) => rows.map((row) => row[i])),
    )
  }

  /** In the order of the key, in pages of the sizes given and then whatever is left. */
  async *rows(table: { name: string; columns: string[]; key: string[] }, pages: number[]): AsyncGenerator<Value[]> {
    await this.client.query(
      `DECLARE reading NO SCROLL CURSOR FOR SELECT ${listed(table.columns)} FROM ${quoted(table.name)} ORDER BY ${listed(table.key)}`,
    )
    for (let page = 0; ; page++) {
      const { rows } = await this.client.query({ text: `FETCH ${pages[page] ?? 1} FROM reading`, rowMode: 'array' })
      if (!rows.length) break
      yield* rows as unknown as Value[][]
    }
    await this.client.query('CLOSE reading')
  }

  async close(): Promise<void> {
    await this.client.end().catch(() => {})
  }

  async #refuseServer(): Promise<void> {
    const { rows } = await this.client.query(
      `SELECT current_setting('server_version_num')::int / 10000 AS version, current_setting('server_encoding') AS encoding,
        current_schema() AS schema, pg_is_in_recovery() AS standby, has_schema_privilege(current_schema(), 'CREATE') AS tables,
        has_database_privilege(current_database(), 'CREATE') OR to_regnamespace('graphile_worker') IS NOT NULL AS schemas`,
    )
    const found = rows[0] as {
      version: number
      encoding: string
      schema: string | null
      standby: boolean
      tables: boolean
      schemas: boolean
    }
    const unfit = (why: string) => new UsageError(`The target is not fit: ${why} Nothing was written.`)
    if (found.version < OLDEST_VERSION) throw unfit(`it is PostgreSQL ${found.version}; Signalbox needs ${OLDEST_VERSION} or newer.`)
    if (found.encoding !== 'UTF8')
      throw unfit(`its encoding is ${found.encoding}. Make the database with ENCODING 'UTF8' TEMPLATE template0.`)
    if (found.standby) throw unfit('it is a standby, which cannot be written. Name the primary.')
    if (!found.schema || !found.tables)
      throw unfit('this role may not make tables there. GRANT CREATE ON SCHEMA public TO it, or make it the owner.')
    if (!found.schemas)
      throw unfit('this role may not make the schema graphile_worker. GRANT CREATE ON DATABASE to it, or make it the owner.')
  }

  async #refuseNewer(known: Set<string>): Promise<void> {
    const { rows } = await this.client.query('SELECT * FROM migrations')
    const others = rows.map((row) => String(row.name)).filter((name) => !known.has(name))
    if (others.length) throw notEmpty(`its migrations (${some(others)}) are those of another program or of a newer Signalbox`)
  }

  /** What an extension brought along is nobody's data. */
  async #tables(): Promise<string[]> {
    const { rows } = await this.client.query(
      `SELECT relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
        WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f')
          AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
        ORDER BY relname`,
    )
    return rows.map((row) => String(row.name))
  }
}

function notEmpty(why: string): UsageError {
  return new UsageError(
    `The target is not empty: ${why}. It was left as it is. Copy into a new database (createdb NAME), or into another schema of this one.`,
  )
}

function some(names: string[]): string {
  return names.length > 5 ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more` : names.join(', ')
}

const WAYS_OUT: [RegExp, string][] = [
  [/^28/, 'Check the user and the password; a password can also come from PGPASSWORD or ~/.pgpass.'],
  [/^3D000/, 'Make that database first: createdb NAME.'],
  [/^42501/, 'Let this role connect: GRANT CONNECT ON DATABASE.'],
]

function unreachable(url: string, { code = '', message }: { code?: string; message?: string }): UsageError {
  const wayOut = WAYS_OUT.find(([pattern]) => pattern.test(code))?.[1] ?? 'Is the server running there, and may this machine reach it?'
  return new UsageError(`${withoutPassword(url)} cannot be reached: ${scrubbed(message || code, url)}. ${wayOut} Nothing was written.`)
}

/** For messages. */
export function withoutPassword(url: string): string {
  return url.replace(PASSWORD, '$1***@').replace(PASSWORD_PARAMETER, '$1***')
}

/** Also a driver may quote a piece of what it was given. */
export function scrubbed(message: string, url: string): string {
  const secrets = [PASSWORD.exec(url)?.[2], ...[...url.matchAll(PASSWORD_PARAMETER)].map((match) => match[2])].filter(
    (text) => text !== undefined,
  )
  const spellings = secrets.flatMap((secret) => [secret, decoded(secret)]).filter((text) => text !== '')
  return spellings.reduce((text, secret) => text.replaceAll(secret, '***'), message)
}

/** Up to the last @: a password that was not encoded may hold one itself. */
const PASSWORD = /^([a-z]+:\/\/[^:@]*:)(.*)@/i
const PASSWORD_PARAMETER = /([?&](?:ssl)?password=)([^&#]*)/gi

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
