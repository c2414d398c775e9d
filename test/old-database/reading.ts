import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import { isPostgres } from '../../src/db/address.ts'

export type Row = Record<string, string | number | null>

/** Every row of every table. What PostgreSQL alone has to keep the order of commits is left out. */
export async function contentOf(location: string): Promise<Map<string, Row[]>> {
  const tables = isPostgres(location)
    ? "SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname"
    : "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
  return reading(location, async (all) => {
    const content = new Map<string, Row[]>()
    for (const { name } of await all(tables)) content.set(String(name), await all(`SELECT * FROM "${name}"`))
    return content
  })
}

/** Which generation of the log a database is in is no part of its schema. */
const POSTGRES_SCHEMA = [
  `SELECT table_name, column_name, data_type, is_nullable, CASE column_name WHEN 'generation' THEN NULL ELSE column_default END AS "default"
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, column_name`,
  "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexdef",
  `SELECT conrelid::regclass::text AS "table", conname, pg_get_constraintdef(oid) AS definition FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2`,
]
const SQLITE_SCHEMA = ['SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name']

export async function schemaOf(location: string): Promise<Row[]> {
  return reading(location, async (all) => {
    const rows: Row[] = []
    for (const sql of isPostgres(location) ? POSTGRES_SCHEMA : SQLITE_SCHEMA) rows.push(...(await all(sql)))
    return rows
  })
}

async function reading<T>(location: string, read: (all: (sql: string) => Promise<Row[]>) => Promise<T>): Promise<T> {
  if (isPostgres(location)) {
    const client = new pg.Client({ connectionString: location })
    await client.connect()
    return read(async (sql) => (await client.query(sql)).rows).finally(() => client.end())
  }
  const db = new DatabaseSync(location, { readOnly: true })
  return read(async (sql) => db.prepare(sql).all() as Row[]).finally(() => db.close())
}
