import { sql } from 'kysely'
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

/** How many rows each table has. `calls` may grow by a refusal's own audit row, so it is left out unless asked for. */
export async function rowCounts(view: Tx, leaveOut: string[] = ['calls', 'refusals']): Promise<Record<string, number>> {
  const db = tables<{ sqlite_master: { name: string; type: string } }>(view)
  const found = await db.selectFrom('sqlite_master').select('name').where('type', '=', 'table').orderBy('name').execute()
  const counts: Record<string, number> = {}
  for (const { name } of found.filter((table) => !leaveOut.includes(table.name))) {
    const { rows } = await sql<{ n: number }>`SELECT count(*) AS n FROM ${sql.table(name)}`.execute(db)
    counts[name] = Number(rows[0]?.n)
  }
  return counts
}
