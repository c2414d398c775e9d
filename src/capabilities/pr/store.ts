import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'

/** Its table is made by a migration of review/, by whose name every database knows it. What changes it from now on is a migration of its own. */
export interface PrRow {
  id: string
  repo_id: string
  number: number
  project_id: string
  /** Of the work of a task, or of a whole epic. */
  task_id: string | null
  epic_id: string | null
  head: string
  base: string
  title: string
  description: string
  state: 'OPEN' | 'MERGED' | 'CLOSED'
  merge_commit: string | null
  created_by: string
  created_at: number
  updated_at: number
  merged_at: number | null
}

interface Tables {
  pull_requests: PrRow
}

export function prStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    find: (id: string) => db.selectFrom('pull_requests').selectAll().where('id', '=', id).executeTakeFirst(),
    ofTask: (task: string) => db.selectFrom('pull_requests').selectAll().where('task_id', '=', task).executeTakeFirst(),
    ofTasks: async (tasks: string[]) =>
      tasks.length ? db.selectFrom('pull_requests').selectAll().where('task_id', 'in', tasks).execute() : [],
    /** The one to the base branch. */
    ofEpic: (epic: string) =>
      db.selectFrom('pull_requests').selectAll().where('epic_id', '=', epic).where('task_id', 'is', null).executeTakeFirst(),
    /** What was last merged into the branch of an epic. */
    lastMerged: async (epic: string) => {
      const row = await db
        .selectFrom('pull_requests')
        .select('merge_commit')
        .where('epic_id', '=', epic)
        .where('task_id', 'is not', null)
        .where('merge_commit', 'is not', null)
        .orderBy('merged_at', 'desc')
        .limit(1)
        .executeTakeFirst()
      return row?.merge_commit ?? undefined
    },
    insert: (row: PrRow) => db.insertInto('pull_requests').values(row).execute(),
    update: (id: string, changes: Partial<PrRow>) => db.updateTable('pull_requests').set(changes).where('id', '=', id).execute(),
  }
}
