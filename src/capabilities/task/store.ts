import { type ExpressionBuilder, sql } from 'kysely'
import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { Status } from './schema.ts'

export interface TaskRow {
  id: string
  number: number
  project_id: string
  title: string
  description: string
  status: Status
  task_type: 'AUTO' | 'PAIR'
  priority: number
  acceptance_criteria: string
  base_branch: string | null
  parent_id: string | null
  assignee_id: string | null
  closed_reason: string | null
  version: number
  created_by: string
  created_at: number
  updated_at: number
  status_changed_at: number
  deleted_at: number | null
}

export interface NoteRow {
  id: string
  task_id: string
  author: string
  body: string
  at: number
}

export interface PlanRow {
  id: string
  project_id: string
  proposed_by: string
  proposal: string
  status: 'proposed' | 'accepted' | 'rejected'
  task_ids: string
  created_at: number
  decided_at: number | null
  decided_by: string | null
}

interface Tables {
  tasks: TaskRow
  task_dependencies: { task_id: string; blocked_by: string }
  task_notes: NoteRow
  plans: PlanRow
}

export interface TaskFilter {
  project?: string
  statuses?: Status[]
  assignee?: string
  parent?: string
  exclude?: string[]
}

export function taskStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    /** Also finds deleted ones: whoever asks for one by name should hear that it was deleted. */
    find: (ref: string) => {
      const all = db.selectFrom('tasks').selectAll()
      return (ref.startsWith('T-') ? all.where('number', '=', Number(ref.slice(2))) : all.where('id', '=', ref)).executeTakeFirst()
    },

    list: (filter: TaskFilter, after: number | undefined, limit: number, newestFirst = false) =>
      db
        .selectFrom('tasks')
        .selectAll()
        .where('deleted_at', 'is', null)
        .$if(after !== undefined, (query) => query.where('number', newestFirst ? '<' : '>', after as number))
        .where((eb) => eb.and(conditions(eb, filter)))
        .orderBy('number', newestFirst ? 'desc' : 'asc')
        .limit(limit)
        .execute(),

    insert: (row: TaskRow) => db.insertInto('tasks').values(row).execute(),

    /** Compare and set on the version: false when somebody else was faster. */
    update: async (row: TaskRow, changes: Partial<TaskRow>) => {
      const result = await db
        .updateTable('tasks')
        .set(changes)
        .where('id', '=', row.id)
        .where('version', '=', row.version)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },

    blockers: async (ids: string[]) =>
      ids.length
        ? db
            .selectFrom('task_dependencies as d')
            .innerJoin('tasks as t', 't.id', 'd.blocked_by')
            .select(['d.task_id', 't.id', 't.number', 't.status', 't.deleted_at'])
            .where('d.task_id', 'in', ids)
            .orderBy('t.number')
            .execute()
        : [],

    dependents: (id: string) =>
      db
        .selectFrom('task_dependencies as d')
        .innerJoin('tasks as t', 't.id', 'd.task_id')
        .select(['t.id', 't.number', 't.status'])
        .where('d.blocked_by', '=', id)
        .where('t.deleted_at', 'is', null)
        .orderBy('t.number')
        .execute(),

    setBlockers: async (id: string, blockers: string[]) => {
      await db.deleteFrom('task_dependencies').where('task_id', '=', id).execute()
      if (blockers.length)
        await db
          .insertInto('task_dependencies')
          .values(blockers.map((blocked_by) => ({ task_id: id, blocked_by })))
          .execute()
    },

    /** Whether `from` waits, directly or through others, for `target`. */
    waitsFor: async (from: string, target: string) => {
      const found = await sql<{ id: string }>`
        WITH RECURSIVE up (id) AS (
          SELECT blocked_by FROM task_dependencies WHERE task_id = ${from}
          UNION SELECT d.blocked_by FROM task_dependencies d JOIN up ON d.task_id = up.id
        ) SELECT id FROM up WHERE id = ${target}`.execute(db)
      return found.rows.length > 0
    },

    insertNote: (row: NoteRow) => db.insertInto('task_notes').values(row).execute(),
    /** The newest ones, oldest of them first. */
    notes: async (taskId: string, limit: number) =>
      (await db.selectFrom('task_notes').selectAll().where('task_id', '=', taskId).orderBy('id', 'desc').limit(limit).execute()).reverse(),
    countNotes: async (taskId: string) =>
      Number(
        (
          await db
            .selectFrom('task_notes')
            .select((eb) => eb.fn.countAll().as('n'))
            .where('task_id', '=', taskId)
            .executeTakeFirst()
        )?.n ?? 0,
      ),

    insertPlan: (row: PlanRow) => db.insertInto('plans').values(row).execute(),
    plan: (id: string) => db.selectFrom('plans').selectAll().where('id', '=', id).executeTakeFirst(),
    decidePlan: async (id: string, changes: Partial<PlanRow>) => {
      const result = await db.updateTable('plans').set(changes).where('id', '=', id).where('status', '=', 'proposed').executeTakeFirst()
      return result.numUpdatedRows === 1n
    },
  }
}

function conditions(eb: ExpressionBuilder<Tables, 'tasks'>, filter: TaskFilter) {
  return [
    ...(filter.project ? [eb('project_id', '=', filter.project)] : []),
    ...(filter.statuses?.length ? [eb('status', 'in', filter.statuses)] : []),
    ...(filter.assignee ? [eb('assignee_id', '=', filter.assignee)] : []),
    ...(filter.parent ? [eb('parent_id', '=', filter.parent)] : []),
    ...(filter.exclude?.length ? [eb('id', 'not in', filter.exclude)] : []),
  ]
}
