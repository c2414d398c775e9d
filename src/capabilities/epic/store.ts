import type { Kysely } from 'kysely'
import { statement } from '../../db/statement.ts'
import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { Status } from '../task/index.ts'
import type { EpicState } from './schema.ts'

export interface EpicRow {
  id: string
  number: number
  project_id: string
  /** Null until one is known: then nobody can be started. */
  repo_id: string | null
  title: string
  description: string
  state: EpicState
  branch: string
  base_branch: string
  supervisor_id: string | null
  lead_task_id: string | null
  /** JSON: how its supervisor, and its workers, are started. */
  supervisor_launch: string
  worker_launch: string
  max_workers: number
  version: number
  created_by: string
  created_at: number
  updated_at: number
  completed_at: number | null
}

interface Tables {
  epics: EpicRow
  epic_notices: { epic_id: string; what: string; at: number }
  tasks: { id: string; epic_id: string | null; status: Status; lead: number; deleted_at: number | null }
}

type Db = Kysely<Tables>

const byId = statement((db: Db, { id }: { id: string }) => db.selectFrom('epics').selectAll().where('id', '=', id))
const byNumber = statement((db: Db, { number }: { number: number }) => db.selectFrom('epics').selectAll().where('number', '=', number))

export function epicStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    find: (ref: string) => (ref.startsWith('E-') ? byNumber.first(tx, { number: Number(ref.slice(2)) }) : byId.first(tx, { id: ref })),
    insert: (row: EpicRow) => db.insertInto('epics').values(row).execute(),

    /** Compare and set on the version: false when somebody else was faster. */
    update: async (row: EpicRow, changes: Partial<EpicRow>) => {
      const result = await db
        .updateTable('epics')
        .set(changes)
        .where('id', '=', row.id)
        .where('version', '=', row.version)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },

    /** Newest first. */
    list: (filter: { project?: string; states?: EpicState[] }, before: number | undefined, limit: number) =>
      db
        .selectFrom('epics')
        .selectAll()
        .$if(filter.project !== undefined, (rest) => rest.where('project_id', '=', filter.project as string))
        .$if(filter.states !== undefined, (rest) => rest.where('state', 'in', filter.states as EpicState[]))
        .$if(before !== undefined, (rest) => rest.where('number', '<', before as number))
        .orderBy('number', 'desc')
        .limit(limit)
        .execute(),

    inProgress: () => db.selectFrom('epics').select('id').where('state', '=', 'IN_PROGRESS').orderBy('number').execute(),

    /** True the first time: whoever was told of it is not told again. */
    notice: async (epic_id: string, what: string, at: number) => {
      const result = await db
        .insertInto('epic_notices')
        .values({ epic_id, what, at })
        .onConflict((oc) => oc.columns(['epic_id', 'what']).doNothing())
        .executeTakeFirst()
      return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
    },

    /** How many of its tasks are where. */
    progress: async (ids: string[]) => {
      if (!ids.length) return []
      const rows = await db
        .selectFrom('tasks')
        .select(['epic_id', 'status', (eb) => eb.fn.countAll().as('n')])
        .where('epic_id', 'in', ids)
        .where('lead', '=', 0)
        .where('deleted_at', 'is', null)
        .groupBy(['epic_id', 'status'])
        .execute()
      return rows.map(({ epic_id, status, n }) => ({ epic: epic_id as string, status, count: Number(n) }))
    },
  }
}
