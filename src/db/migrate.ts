import type { KnownValues, Migration } from '../kernel/capability.ts'
import { UsageError } from '../kernel/error.ts'
import type { EngineFacts } from './engine.ts'

/** What running migrations needs of a connection. */
export interface MigrationConnection {
  exec(sql: string): Promise<void>
  applied(): Promise<Set<string>>
  record(name: string): Promise<void>
}

export interface NamedMigrations {
  owner: string
  migrations: Migration[]
  /** Of its tables: what a check finds known. */
  values?: KnownValues | undefined
}

/** `<owner>/<position>-<name>`: the position is part of the name, so a reordered list is seen, not silently skipped. */
export function migrationNames({ owner, migrations }: NamedMigrations): string[] {
  return migrations.map((m, i) => `${owner}/${String(i + 1).padStart(3, '0')}-${m.name}`)
}

/** Each migration is one transaction. A database that is newer than this program is refused, never guessed at. */
export async function migrate(connection: MigrationConnection, facts: EngineFacts, sets: NamedMigrations[]): Promise<void> {
  const applied = await connection.applied()
  const known = new Set(sets.flatMap(migrationNames))
  const unknown = [...applied].filter((name) => !known.has(name))
  if (unknown.length) {
    throw new UsageError(
      `This database was written by a newer Signalbox (it has ${unknown.join(', ')}). Update Signalbox, or restore an older backup.`,
    )
  }
  for (const set of sets) {
    for (const [i, name] of migrationNames(set).entries()) {
      if (applied.has(name)) continue
      await connection.exec(facts.beginMigration)
      try {
        for (const statement of set.migrations[i]?.up(facts.types) ?? []) await connection.exec(statement)
        await connection.record(name)
        await connection.exec('COMMIT')
      } catch (error) {
        await connection.exec('ROLLBACK')
        throw new Error(`Migration ${name} failed: ${(error as Error).message}`, { cause: error })
      }
    }
  }
}
