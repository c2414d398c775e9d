import { PostgresAdapter, sql } from 'kysely'
import { capabilities } from '../capabilities/index.ts'
import type { CoreTables } from '../db/core.ts'
import { tables } from '../db/tables.ts'
import { type Capability, defineCapability } from '../kernel/capability.ts'
import type { Tx } from '../kernel/storage.ts'
import type { RunContext, Tool } from '../kernel/tool.ts'
import type { TestApp } from './app.ts'

interface ProbeTables {
  probe_rows: { id: string; body: string }
}

/** All real capabilities and one more with a table of its own, so that a test sees what its tool wrote. */
export function withProbe(tools: Tool[], more: Partial<Capability> = {}): Capability[] {
  const migrations = [{ name: 'rows', up: () => ['CREATE TABLE probe_rows (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL)'] }]
  return [...capabilities, defineCapability({ name: 'probe', tools, migrations, ...more })]
}

export async function put(ctx: Pick<RunContext, 'tx' | 'id'>, body: string): Promise<void> {
  await tables<ProbeTables>(ctx.tx)
    .insertInto('probe_rows')
    .values({ id: ctx.id('probe'), body })
    .execute()
}

export async function written(app: TestApp): Promise<string[]> {
  const rows = await tables<ProbeTables>(app.app.engine.view).selectFrom('probe_rows').select('body').orderBy('id').execute()
  return rows.map((row) => row.body)
}

/** The audit as it is stored, oldest first. Reads reach it in batches: `reopen` first to see them. */
export function auditRows(app: TestApp): Promise<CoreTables['calls'][]> {
  return tables<CoreTables>(app.app.engine.view).selectFrom('calls').selectAll().orderBy('seq').execute()
}

/** How many rows each table has. `calls` may grow by a refusal's own audit row, `seals` by themselves: both are left out unless asked for. */
export async function rowCounts(view: Tx, leaveOut: string[] = ['calls', 'refusals', 'seals']): Promise<Record<string, number>> {
  const db = tables(view)
  const counts: Record<string, number> = {}
  for (const name of (await tableNames(view)).filter((table) => !leaveOut.includes(table))) {
    const { rows } = await sql<{ n: number }>`SELECT count(*) AS n FROM ${sql.table(name)}`.execute(db)
    counts[name] = Number(rows[0]?.n)
  }
  return counts
}

async function tableNames(view: Tx): Promise<string[]> {
  const catalogue =
    tables(view).getExecutor().adapter instanceof PostgresAdapter
      ? sql<{ name: string }>`SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename`
      : sql<{ name: string }>`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`
  return (await catalogue.execute(tables(view))).rows.map((row) => row.name)
}
