import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'

/**
 * One round of handing in work.
 *
 * | decision        | outcome  | means                                                    |
 * |-----------------|----------|----------------------------------------------------------|
 * | null            | null     | nobody has decided                                       |
 * | request_changes | null     | it went back, with the feedback                          |
 * | approve         | null     | it is being merged                                       |
 * | approve         | merged   | it is on the branch, by `merge_commit`; with a `reason` when it was before |
 * | approve         | conflict | it went back: `reason` names the files                   |
 * | approve         | red      | it went back: the checks fail on the merged tree         |
 * | approve         | failed   | git would not: `reason` says why; it can be decided anew |
 */
export interface ReviewRow {
  id: string
  task_id: string
  project_id: string
  round: number
  summary: string
  reviewer_prompt: string | null
  requested_by: string
  requested_at: number
  decision: 'approve' | 'request_changes' | null
  decided_by: string | null
  decided_at: number | null
  feedback: string | null
  /** What was approved, and nothing later. */
  head_commit: string | null
  outcome: 'merged' | 'conflict' | 'red' | 'failed' | null
  merge_commit: string | null
  reason: string | null
}

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
  reviews: ReviewRow
  pull_requests: PrRow
}

export function reviewStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    find: (id: string) => db.selectFrom('reviews').selectAll().where('id', '=', id).executeTakeFirst(),
    insert: (row: ReviewRow) => db.insertInto('reviews').values(row).execute(),
    update: (id: string, changes: Partial<ReviewRow>) => db.updateTable('reviews').set(changes).where('id', '=', id).execute(),
    ofTask: (task: string) => db.selectFrom('reviews').selectAll().where('task_id', '=', task).orderBy('round').execute(),
    /** The last round of each. */
    latest: async (tasks: string[]) => {
      if (!tasks.length) return []
      return db
        .selectFrom('reviews as r')
        .selectAll()
        .where('r.task_id', 'in', tasks)
        .where('r.round', '=', (eb) =>
          eb
            .selectFrom('reviews as newest')
            .select((of) => of.fn.max('newest.round').as('round'))
            .whereRef('newest.task_id', '=', 'r.task_id'),
        )
        .execute()
    },
  }
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
