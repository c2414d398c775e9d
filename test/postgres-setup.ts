import type { TestProject } from 'vitest/node'
import { capabilities } from '../src/capabilities/index.ts'
import { openPostgres } from '../src/db/postgres.ts'
import { createDatabase, startCluster, TEMPLATE } from '../src/testing/databases.ts'

/** One private server for the whole run; every test works on a copy of a database that is already set up. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const cluster = await startCluster()
  const url = await createDatabase(cluster.folder, TEMPLATE)
  const engine = await openPostgres({ url, migrations: capabilities.map((c) => ({ owner: c.name, migrations: c.migrations ?? [] })) })
  await engine.close()
  const { runMigrations } = await import('graphile-worker')
  await runMigrations({ connectionString: url })
  project.provide('postgres', cluster.folder)
  return () => cluster.remove()
}
