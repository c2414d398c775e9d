import { sql } from 'kysely'
import { tables } from '../db/tables.ts'
import type { TestApp } from './app.ts'

/** Puts a value into a column as an older Signalbox, or somebody with a shell, could have left it there. */
export async function makeStrange(app: TestApp, table: string, column: string, value = 'weird'): Promise<void> {
  await app.app.engine.write(async (tx) => {
    const db = tables(tx)
    for (const statement of unguarded(app, table, column)) await sql.raw(statement).execute(db)
    await sql`UPDATE ${sql.table(table)} SET ${sql.ref(column)} = ${value}`.execute(db)
  })
}

function unguarded({ app }: TestApp, table: string, column: string): string[] {
  if (app.engine.facts.name === 'postgres') return [`ALTER TABLE ${table} DROP CONSTRAINT IF EXISTS ${table}_${column}_known`]
  return ['insert', 'update'].map((verb) => `DROP TRIGGER IF EXISTS ${table}_${column}_known_${verb}`)
}
