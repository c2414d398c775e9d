import type { ColumnTypes, Migration } from '../kernel/capability.ts'
import { UsageError } from '../kernel/error.ts'

/** What running migrations needs of a connection. */
export interface MigrationConnection {
  exec(sql: string): void
  applied(): Set<string>
  record(name: string): void
}

export interface NamedMigrations {
  owner: string
  migrations: Migration[]
}

/** `<owner>/<position>-<name>`: the position is part of the name, so a reordered list is seen, not silently skipped. */
export function migrationNames({ owner, migrations }: NamedMigrations): string[] {
  return migrations.map((m, i) => `${owner}/${String(i + 1).padStart(3, '0')}-${m.name}`)
}

/** Each migration is one transaction. A database that is newer than this program is refused, never guessed at. */
export function migrate(connection: MigrationConnection, types: ColumnTypes, sets: NamedMigrations[]): void {
  const applied = connection.applied()
  const known = new Set(sets.flatMap(migrationNames))
  const unknown = [...applied].filter((name) => !known.has(name))
  if (unknown.length) {
    throw new UsageError(
      `This database was written by a newer Signalbox (it has ${unknown.join(', ')}). Update Signalbox, or restore an older backup.`,
    )
  }
  for (const set of sets) {
    migrationNames(set).forEach((name, i) => {
      if (applied.has(name)) return
      connection.exec('BEGIN IMMEDIATE')
      try {
        for (const statement of set.migrations[i]?.up(types) ?? []) connection.exec(statement)
        connection.record(name)
        connection.exec('COMMIT')
      } catch (error) {
        connection.exec('ROLLBACK')
        throw new Error(`Migration ${name} failed: ${(error as Error).message}`, { cause: error })
      }
    })
  }
}
