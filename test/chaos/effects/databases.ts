import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { runMigrations } from 'graphile-worker'
import { inject } from 'vitest'
import { capabilities } from '../../../src/capabilities/index.ts'
import { openPostgres } from '../../../src/db/postgres.ts'
import { administer, type Cluster, createDatabase, startCluster, TEMPLATE } from '../../../src/testing/databases.ts'

export interface Place {
  database: string
  world: string
  remove(): Promise<void>
}

/** A fresh database and a fresh world for every run. */
export interface Places {
  fresh(): Promise<Place>
  close(): Promise<void>
}

/** On the engine of the project that runs the test. */
export function placesHere(): { engine: 'sqlite' | 'postgres'; open(): Promise<Places> } {
  return inject('postgres') ? { engine: 'postgres', open: postgresPlaces } : { engine: 'sqlite', open: sqlitePlaces }
}

export async function sqlitePlaces(): Promise<Places> {
  return {
    async fresh() {
      const world = mkdtempSync(join(tmpdir(), 'signalbox-world-'))
      return { world, database: join(world, 'signalbox.db'), remove: async () => rmSync(world, { recursive: true, force: true }) }
    },
    async close() {},
  }
}

export async function postgresPlaces(): Promise<Places> {
  const cluster: Cluster = await startCluster()
  const url = await createDatabase(cluster.folder, TEMPLATE)
  const engine = await openPostgres({ url, migrations: capabilities.map((c) => ({ owner: c.name, migrations: c.migrations ?? [] })) })
  await engine.close()
  await runMigrations({ connectionString: url })
  // Emptying one that is there is ten times as fast as making another.
  const used: string[] = []
  return {
    async fresh() {
      const world = mkdtempSync(join(tmpdir(), 'signalbox-world-'))
      const database = used.pop() ?? (await createDatabase(cluster.folder, basename(world), TEMPLATE))
      const remove = async () => {
        rmSync(world, { recursive: true, force: true })
        await administer(database, EMPTY)
        used.push(database)
      }
      return { world, database, remove }
    },
    close: () => cluster.remove(),
  }
}

const EMPTY = `
  DO $$ BEGIN
    EXECUTE (SELECT 'TRUNCATE ' || string_agg(format('%I', tablename), ', ') FROM pg_tables
      WHERE schemaname = 'public' AND tablename NOT IN ('migrations', 'meta'));
  END $$;
  DELETE FROM graphile_worker._private_jobs;`
