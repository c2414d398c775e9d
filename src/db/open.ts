import { isPostgres } from './address.ts'
import type { Engine } from './engine.ts'
import type { NamedMigrations } from './migrate.ts'

/** A path is a SQLite file; a postgres:// address is a server. Each loads only its own driver. */
export async function openEngine(location: string, migrations: NamedMigrations[]): Promise<Engine> {
  if (isPostgres(location)) return (await import('./postgres.ts')).openPostgres({ url: location, migrations })
  return (await import('./sqlite.ts')).openSqlite({ path: location, migrations })
}
