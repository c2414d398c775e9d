import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'

export interface ReviewRow {
  id: string
  task_id: string
  project_id: string
  round: number
  summary: string
  reviewer_prompt: string | null
  requested_by: string
  requested_at: number
}

export function reviewStore(tx: Tx) {
  const db = tables<{ reviews: ReviewRow }>(tx)
  return {
    insert: (row: ReviewRow) => db.insertInto('reviews').values(row).execute(),
    ofTask: (task: string) => db.selectFrom('reviews').selectAll().where('task_id', '=', task).orderBy('round').execute(),
  }
}
