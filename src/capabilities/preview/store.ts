import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { PreviewState } from './schema.ts'

export interface PreviewRow {
  id: string
  work_id: string
  repo_id: string
  project_id: string
  task_id: string
  /** As it was when it was asked for. */
  command: string
  state: PreviewState
  /** Null until its program was started. */
  host: string | null
  first_port: number | null
  last_port: number | null
  /** From then on it is taken for one that never answers. */
  silent_at: number | null
  /** On which it answered. */
  port: number | null
  reason: string | null
  /** What it printed last, when it was over. */
  log: string | null
  started_by: string
  stop_asked_at: number | null
  started_at: number
  ended_at: number | null
}

const LIVING = ['starting', 'ready'] as const

export function previewStore(tx: Tx) {
  const db = tables<{ previews: PreviewRow }>(tx)
  return {
    find: (id: string) => db.selectFrom('previews').selectAll().where('id', '=', id).executeTakeFirst(),
    insert: (row: PreviewRow) => db.insertInto('previews').values(row).execute(),
    update: (id: string, changes: Partial<PreviewRow>) => db.updateTable('previews').set(changes).where('id', '=', id).execute(),
    /** The newest, whatever became of it. */
    lastOf: (task: string) =>
      db.selectFrom('previews').selectAll().where('task_id', '=', task).orderBy('id', 'desc').limit(1).executeTakeFirst(),
    livingOf: (task: string) =>
      db.selectFrom('previews').selectAll().where('task_id', '=', task).where('state', 'in', LIVING).orderBy('id').executeTakeFirst(),
    living: (project: string | undefined, after: string, limit: number) => {
      const all = db.selectFrom('previews').selectAll().where('state', 'in', LIVING).where('id', '>', after).orderBy('id').limit(limit)
      return (project ? all.where('project_id', '=', project) : all).execute()
    },
    livingOn: (host: string) =>
      db.selectFrom('previews').selectAll().where('state', 'in', LIVING).where('host', '=', host).orderBy('id').execute(),
  }
}
