import { type ExpressionBuilder, type Kysely, sql } from 'kysely'
import { insertion, statement } from '../../db/statement.ts'
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
  epic_id: string | null
  /** 1: the task of whoever leads the epic; it is none of the epic's own. */
  lead: number
  /** The task whose work its agent reviews: it is on no list itself. */
  reviews_task_id: string | null
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
  /** Without the task of its lead. */
  epic?: string
  exclude?: string[]
}

type Db = Kysely<Tables>

const byId = statement((db: Db, { id }: { id: string }) => db.selectFrom('tasks').selectAll().where('id', '=', id))
const byNumber = statement((db: Db, { number }: { number: number }) => db.selectFrom('tasks').selectAll().where('number', '=', number))
const insertTask = insertion<TaskRow>('tasks')
const insertNotes = insertion<NoteRow>('task_notes')
const blockersOf = statement((db: Db, { id }: { id: string }) => blockersIn(db).where('d.task_id', '=', id))
const neighboursOf = statement((db: Db, { id }: { id: string }) =>
  db
    .selectFrom('task_dependencies as d')
    .innerJoin('tasks as t', 't.id', 'd.blocked_by')
    .select(['d.task_id', 't.id', 't.number', 't.status', 't.deleted_at'])
    .where('d.task_id', '=', id)
    .unionAll(
      db
        .selectFrom('task_dependencies as d')
        .innerJoin('tasks as t', 't.id', 'd.task_id')
        .select(['d.task_id', 't.id', 't.number', 't.status', 't.deleted_at'])
        .where('d.blocked_by', '=', id)
        .where('t.deleted_at', 'is', null),
    )
    .orderBy('number'),
)
const latestNotes = statement((db: Db, { task, limit }: { task: string; limit: number }) =>
  db.selectFrom('task_notes').selectAll().where('task_id', '=', task).orderBy('id', 'desc').limit(limit),
)
const noteCount = statement((db: Db, { task }: { task: string }) =>
  db
    .selectFrom('task_notes')
    .select((eb) => eb.fn.countAll().as('n'))
    .where('task_id', '=', task),
)

function blockersIn(db: Db) {
  return db
    .selectFrom('task_dependencies as d')
    .innerJoin('tasks as t', 't.id', 'd.blocked_by')
    .select(['d.task_id', 't.id', 't.number', 't.status', 't.deleted_at'])
    .orderBy('t.number')
}

export const ORDERS = ['number', 'newest', 'recent'] as const
type Order = (typeof ORDERS)[number]

/** Names the row in that order. */
export function pageAfter({ number, updated_at }: TaskRow, order: Order): string {
  return order === 'recent' ? `${number}.${updated_at}` : String(number)
}

export function taskStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    /** Also finds deleted ones: whoever asks for one by name should hear that it was deleted. */
    find: (ref: string) => (ref.startsWith('T-') ? byNumber.first(tx, { number: Number(ref.slice(2)) }) : byId.first(tx, { id: ref })),

    /** `after` is `pageAfter` of the last row of the page before. */
    list: (filter: TaskFilter, order: Order, after: string | undefined, limit: number) => {
      const [number = 0, changed = 0] = after?.split('.').map(Number) ?? []
      const query = db
        .selectFrom('tasks')
        .selectAll()
        .where('deleted_at', 'is', null)
        .where((eb) => eb.and(conditions(eb, filter)))
        .limit(limit)
      if (order !== 'recent')
        return query
          .$if(after !== undefined, (rest) => rest.where('number', order === 'newest' ? '<' : '>', number))
          .orderBy('number', order === 'newest' ? 'desc' : 'asc')
          .execute()
      return query
        .$if(after !== undefined, (rest) =>
          rest.where((eb) => eb.or([eb('updated_at', '<', changed), eb.and([eb('updated_at', '=', changed), eb('number', '<', number)])])),
        )
        .orderBy('updated_at', 'desc')
        .orderBy('number', 'desc')
        .execute()
    },

    countByStatus: async (project: string | undefined): Promise<Record<Status, number>> => {
      const counts = { BACKLOG: 0, IN_PROGRESS: 0, REVIEW: 0, DONE: 0 }
      const found = await db
        .selectFrom('tasks')
        .select((eb) => ['status', eb.fn.countAll().as('n')])
        .where('deleted_at', 'is', null)
        .where((eb) => eb.and(conditions(eb, { project })))
        .groupBy('status')
        .execute()
      for (const { status, n } of found) counts[status] = Number(n)
      return counts
    },

    /** Those on which the work of this one is reviewed. */
    reviewersOf: (task: string) => db.selectFrom('tasks').selectAll().where('reviews_task_id', '=', task).orderBy('number').execute(),

    insert: (row: TaskRow) => insertTask(tx, [row]),

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

    /** Those of a project, which is over: nobody works on them, and what they were is in the log. */
    deleteDone: (project: string, now: number) =>
      db
        .updateTable('tasks')
        .set((eb) => ({ deleted_at: now, updated_at: now, version: eb('version', '+', 1) }))
        .where('project_id', '=', project)
        .where('status', '=', 'DONE')
        .where('deleted_at', 'is', null)
        .execute(),

    blockers: async (ids: string[]) => {
      if (ids.length === 1) return blockersOf.all(tx, { id: ids[0] as string })
      return ids.length ? blockersIn(db).where('d.task_id', 'in', ids).execute() : []
    },

    /** What the task waits for, and what waits for it. */
    neighbours: async (id: string) => {
      const all = await neighboursOf.all(tx, { id })
      return { blockers: all.filter((row) => row.task_id === id), dependents: all.filter((row) => row.task_id !== id) }
    },

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

    insertNote: (row: NoteRow) => insertNotes(tx, [row]),
    /** The newest ones, oldest of them first. */
    notes: async (task: string, limit: number) => (await latestNotes.all(tx, { task, limit })).reverse(),
    countNotes: async (task: string) => Number((await noteCount.first(tx, { task }))?.n ?? 0),

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
    eb('reviews_task_id', 'is', null),
    ...(filter.project ? [eb('project_id', '=', filter.project)] : []),
    ...(filter.statuses?.length ? [eb('status', 'in', filter.statuses)] : []),
    ...(filter.assignee ? [eb('assignee_id', '=', filter.assignee)] : []),
    ...(filter.parent ? [eb('parent_id', '=', filter.parent)] : []),
    ...(filter.epic ? [eb('epic_id', '=', filter.epic), eb('lead', '=', 0)] : []),
    ...(filter.exclude?.length ? [eb('id', 'not in', filter.exclude)] : []),
  ]
}
