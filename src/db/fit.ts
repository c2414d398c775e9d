import { UsageError } from '../kernel/error.ts'
import { coreMigrations } from './core.ts'
import { SQLITE } from './engine.ts'
import { migrationNames, type NamedMigrations } from './migrate.ts'
import { OWN_TABLES } from './sqlite.ts'
import { Connection } from './sqlite-connection.ts'

/** Refuses a file that a daemon could not go on with: one of a newer program, or without what its own migrations made. */
export function refuseUnfit(path: string, migrations: NamedMigrations[]): void {
  const file = new Connection(path, { readOnly: true })
  try {
    const expected = afterMigrations(path, appliedIn(file), [{ owner: 'core', migrations: coreMigrations }, ...migrations])
    const found = columnsIn(file)
    const missing = [...expected].flatMap(([table, columns]) => {
      const there = found.get(table)
      return there ? columns.filter((column) => !there.includes(column)).map((column) => `${table}.${column}`) : [table]
    })
    if (missing.length) throw new UsageError(`${path} lacks ${missing.join(', ')}: it is not whole.`)
  } finally {
    file.close()
  }
}

/** What the same migrations make of an empty database. */
function afterMigrations(path: string, applied: Set<string>, sets: NamedMigrations[]): Map<string, string[]> {
  const unknown = [...applied].filter((name) => !sets.flatMap(migrationNames).includes(name))
  if (unknown.length)
    throw new UsageError(`${path} was written by a newer Signalbox (it has ${unknown.join(', ')}). Update Signalbox first.`)
  const scratch = new Connection(':memory:')
  try {
    scratch.exec(OWN_TABLES)
    for (const set of sets) for (const statement of statementsOf(path, set, applied)) scratch.exec(statement)
    return columnsIn(scratch)
  } finally {
    scratch.close()
  }
}

function statementsOf(path: string, set: NamedMigrations, applied: Set<string>): string[] {
  const names = migrationNames(set)
  const done = names.filter((name) => applied.has(name)).length
  const skipped = names.slice(0, done).filter((name) => !applied.has(name))
  if (skipped.length) throw new UsageError(`${path} lacks the migration ${skipped.join(', ')}: it is not whole.`)
  return set.migrations.slice(0, done).flatMap((migration) => migration.up(SQLITE.types))
}

function appliedIn({ raw }: Connection): Set<string> {
  const rows = raw.prepare('SELECT name FROM migrations').all()
  return new Set(rows.map((row) => String(row.name)))
}

function columnsIn({ raw }: Connection): Map<string, string[]> {
  const rows = raw
    .prepare(
      `SELECT m.name AS "table", c.name AS "column" FROM sqlite_master AS m, pragma_table_info(m.name) AS c
        WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY m.name, c.cid`,
    )
    .all()
  const columns = new Map<string, string[]>()
  for (const row of rows) columns.set(String(row.table), [...(columns.get(String(row.table)) ?? []), String(row.column)])
  return columns
}
