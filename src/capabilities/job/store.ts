import { type Kysely, sql } from 'kysely'
import { statement } from '../../db/statement.ts'
import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { RunRow } from '../run/index.ts'
import type { ActionName, JobState } from './schema.ts'

export interface JobRow {
  id: string
  number: number
  task_id: string
  project_id: string
  action: ActionName
  arguments: string
  state: JobState
  code: string | null
  reason: string | null
  priority: number
  submitted_by: string
  /** How many runs it has had. */
  lives: number
  /** The one it has now, or had last. */
  run_id: string | null
  not_before: number
  cancel_asked_at: number | null
  created_at: number
  started_at: number | null
  ended_at: number | null
}

interface Tables {
  jobs: JobRow
  runs: RunRow
}

type Db = Kysely<Tables>

const STARTS = ['start_agent', 'resume_agent'] as const

/** The newest job that started an agent, or is to: what a task's attention is told by. One statement for a whole board. */
const latestOf = (db: Db, tasks: string[]) =>
  db
    .selectFrom('jobs as j')
    .leftJoin('runs as r', 'r.id', 'j.run_id')
    .select([
      'j.task_id',
      'j.number',
      'j.state',
      'j.code',
      'j.reason',
      'j.not_before',
      'j.created_at',
      'j.ended_at',
      'r.state as run_state',
    ])
    .select(['r.heard_at', 'r.open_calls', 'r.paused', 'r.stop_asked', 'r.harness', 'r.resets_at', 'r.agent_id'])
    .where('j.task_id', 'in', tasks)
    .where('j.number', '=', (eb) =>
      eb
        .selectFrom('jobs as newest')
        .select((of) => of.fn.max('newest.number').as('number'))
        .whereRef('newest.task_id', '=', 'j.task_id')
        .where('newest.action', 'in', STARTS),
    )

const latestOfOne = statement((db: Db, { task }: { task: string }) => latestOf(db, [task]))

export function jobStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    find: (ref: string) =>
      db
        .selectFrom('jobs')
        .selectAll()
        .where(ref.startsWith('J-') ? 'number' : 'id', '=', ref.startsWith('J-') ? Number(ref.slice(2)) : ref)
        .executeTakeFirst(),
    insert: (row: JobRow) => db.insertInto('jobs').values(row).execute(),
    update: (id: string, changes: Partial<JobRow>) => db.updateTable('jobs').set(changes).where('id', '=', id).execute(),

    /** As it is now, and nobody else changes it until the transaction ends: a cancel must not be lost to whoever read it before. */
    held: (id: string) =>
      db
        .updateTable('jobs')
        .set((eb) => ({ number: eb.ref('number') }))
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst(),

    list: (filter: { task?: string; project?: string; states?: JobState[] }, before: number | undefined, limit: number) =>
      db
        .selectFrom('jobs')
        .selectAll()
        .$if(filter.task !== undefined, (rest) => rest.where('task_id', '=', filter.task as string))
        .$if(filter.project !== undefined, (rest) => rest.where('project_id', '=', filter.project as string))
        .$if(filter.states !== undefined, (rest) => rest.where('state', 'in', filter.states as JobState[]))
        .$if(before !== undefined, (rest) => rest.where('number', '<', before as number))
        .orderBy('number', 'desc')
        .limit(limit)
        .execute(),

    /** In the order in which they begin, those that wait for their time too. */
    inLine: (limit: number) =>
      db.selectFrom('jobs').selectAll().where('state', '=', 'queued').orderBy('priority', 'desc').orderBy('number').limit(limit).execute(),

    /** The one job that may start agents on a task at a time. */
    openOf: (task: string) =>
      db
        .selectFrom('jobs')
        .selectAll()
        .where('task_id', '=', task)
        .where('state', 'in', ['queued', 'running'])
        .where('action', 'in', ['start_agent', 'resume_agent', 'run_checks'])
        .executeTakeFirst(),

    latest: async (tasks: string[]) =>
      tasks.length === 1 ? latestOfOne.all(tx, { task: tasks[0] as string }) : tasks.length ? latestOf(db, tasks).execute() : [],

    /** Jobs that wait because a provider gives no more, by harness and model. */
    waitingForQuota: async (now: number) => {
      const rows = await db
        .selectFrom('jobs as j')
        .innerJoin('runs as r', 'r.id', 'j.run_id')
        .select(['r.harness', 'r.model'])
        .select([
          sql<number>`MAX(j.not_before)`.as('resets_at'),
          sql<number>`COUNT(*)`.as('jobs'),
          sql<string>`MAX(r.failure)`.as('message'),
        ])
        .where('j.state', '=', 'queued')
        .where('j.not_before', '>', now)
        .where('r.resets_at', 'is not', null)
        .groupBy(['r.harness', 'r.model'])
        .orderBy('r.harness')
        .execute()
      return rows.map((row) => ({ ...row, resets_at: Number(row.resets_at), jobs: Number(row.jobs) }))
    },
  }
}
