import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { runMigrations } from 'graphile-worker'
import { capabilities } from '../../../src/capabilities/index.ts'
import { openPostgres } from '../../../src/db/postgres.ts'
import { type Cluster, createDatabase, dropDatabase, startCluster, TEMPLATE } from '../../../src/testing/databases.ts'

export interface Place {
  database: string
  world: string
  remove(): Promise<void>
}

/** A fresh database and a fresh world for every run. */
export interface Places {
  fresh(): Promise<Place>
  close(): void
}

export async function sqlitePlaces(): Promise<Places> {
  return {
    async fresh() {
      const world = mkdtempSync(join(tmpdir(), 'signalbox-world-'))
      return { world, database: join(world, 'signalbox.db'), remove: async () => rmSync(world, { recursive: true, force: true }) }
    },
    close() {},
  }
}

export async function postgresPlaces(): Promise<Places> {
  const cluster: Cluster = startCluster()
  const url = await createDatabase(cluster.folder, TEMPLATE)
  const engine = await openPostgres({ url, migrations: capabilities.map((c) => ({ owner: c.name, migrations: c.migrations ?? [] })) })
  await engine.close()
  await runMigrations({ connectionString: url })
  return {
    async fresh() {
      const world = mkdtempSync(join(tmpdir(), 'signalbox-world-'))
      const database = await createDatabase(cluster.folder, basename(world), TEMPLATE)
      const remove = async () => {
        await dropDatabase(cluster.folder, basename(world))
        rmSync(world, { recursive: true, force: true })
      }
      return { world, database, remove }
    },
    close: () => cluster.remove(),
  }
}
