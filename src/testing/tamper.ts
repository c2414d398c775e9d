import { DatabaseSync } from '@photostructure/sqlite'
import { sql } from 'kysely'
import { tables } from '../db/tables.ts'
import type { TestApp } from './app.ts'

/** As somebody who has the file or the server, through no tool. */
export async function tamper(app: TestApp, ...statements: string[]): Promise<void> {
  const { engine } = app.app
  if (engine.facts.name === 'postgres')
    return engine.write(async (tx) => {
      for (const statement of statements) await sql.raw(statement).execute(tables(tx))
    })
  const db = new DatabaseSync(app.database)
  // As one: a call that is audited in between would take a number that is free for a moment.
  db.exec(`PRAGMA busy_timeout = 60000; BEGIN IMMEDIATE; ${statements.join('; ')}; COMMIT`)
  db.close()
}

export function literal(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  return typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`
}
