import type { z } from 'zod'
import { iso, isoOrNull } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import { epicHandle, launchOf } from './rules.ts'
import type { EpicSummary, EpicView } from './schema.ts'
import { type EpicRow, epicStore } from './store.ts'

export async function summariesOf(view: Tx, rows: EpicRow[]): Promise<z.output<typeof EpicSummary>[]> {
  const counts = await epicStore(view).progress(rows.map(({ id }) => id))
  return rows.map((row) => {
    const { id, project_id, repo_id, title, state, branch, base_branch, supervisor_id, lead_task_id, max_workers, version } = row
    const of = (status?: string) =>
      counts.filter(({ epic, status: its }) => epic === id && (!status || its === status)).reduce((sum, { count }) => sum + count, 0)
    return {
      ...{ id, handle: epicHandle(row), project_id, repo_id, title, state, branch, base_branch, supervisor_id, lead_task_id, max_workers },
      progress: { total: of(), backlog: of('BACKLOG'), in_progress: of('IN_PROGRESS'), review: of('REVIEW'), done: of('DONE') },
      version,
      created_at: iso(row.created_at),
      updated_at: iso(row.updated_at),
    }
  })
}

export async function epicView(view: Tx, row: EpicRow): Promise<z.output<typeof EpicView>> {
  const [summary] = await summariesOf(view, [row])
  if (!summary) throw new Error(`the epic ${row.id} has no summary`)
  return {
    ...summary,
    description: row.description,
    supervisor_harness: launchOf(row, 'supervisor').harness ?? null,
    worker_harness: launchOf(row, 'worker').harness ?? null,
    created_by: row.created_by,
    completed_at: isoOrNull(row.completed_at),
  }
}
