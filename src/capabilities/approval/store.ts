import type { ExpressionBuilder } from 'kysely'
import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { ApprovalState } from './schema.ts'

/** How far an answer has come: written down to be sent, then taken by the program's runner. */
export const ON_ITS_WAY = 1
export const ARRIVED = 2

export interface ApprovalRow {
  id: string
  number: number
  project_id: string
  task_id: string
  run_id: string
  agent_id: string | null
  kind: 'agent_tool'
  /** By what the program itself knows the question. */
  request: string
  name: string
  /** Without secrets, and cut. */
  input: string
  /** Of all of it, as the program printed it. */
  input_hash: string
  state: ApprovalState
  message: string | null
  /** 0, ON_ITS_WAY or ARRIVED. */
  delivered: number
  asked_at: number
  expires_at: number
  decided_by: string | null
  decided_at: number | null
}

export interface ApprovalFilter {
  task?: string
  project?: string
  states: ApprovalState[]
}

/** Those of which the program could still get an answer. */
const OPEN: ApprovalState[] = ['pending', 'allowed', 'denied', 'expired']

export function approvalStore(tx: Tx) {
  const db = tables<{ approvals: ApprovalRow }>(tx)
  const open = (run: string) =>
    db.selectFrom('approvals').selectAll().where('run_id', '=', run).where('delivered', '=', 0).where('state', 'in', OPEN).orderBy('number')
  return {
    find: (ref: string) =>
      db
        .selectFrom('approvals')
        .selectAll()
        .where(ref.startsWith('A-') ? 'number' : 'id', '=', ref.startsWith('A-') ? Number(ref.slice(2)) : ref)
        .executeTakeFirst(),
    insert: (row: ApprovalRow) => db.insertInto('approvals').values(row).execute(),

    /** False when it is not, or no longer, as the row says: somebody else was first. */
    change: async (row: ApprovalRow, changes: Partial<ApprovalRow>) => {
      const result = await db
        .updateTable('approvals')
        .set(changes)
        .where('id', '=', row.id)
        .where('state', '=', row.state)
        .where('delivered', '=', row.delivered)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },

    list: (filter: ApprovalFilter, before: number | undefined, limit: number) =>
      db
        .selectFrom('approvals')
        .selectAll()
        .where('state', 'in', filter.states)
        .$if(filter.task !== undefined, (rest) => rest.where('task_id', '=', filter.task as string))
        .$if(filter.project !== undefined, (rest) => rest.where('project_id', '=', filter.project as string))
        .$if(before !== undefined, (rest) => rest.where('number', '<', before as number))
        .orderBy('number', 'desc')
        .limit(limit)
        .execute(),

    /** Oldest first. */
    pendingFrom: (
      { task, project }: Pick<ApprovalFilter, 'task' | 'project'>,
      { since, id }: { since: number; id: string },
      limit: number,
    ) =>
      db
        .selectFrom('approvals')
        .selectAll()
        .where(pendingOnly({ task, project }))
        .where((eb) => eb.or([eb('asked_at', '>', since), eb.and([eb('asked_at', '=', since), eb('id', '>', id)])]))
        .orderBy('asked_at')
        .orderBy('id')
        .limit(limit)
        .execute(),
    countPending: async (filter: Pick<ApprovalFilter, 'task' | 'project'>) =>
      Number(
        (
          await db
            .selectFrom('approvals')
            .select((eb) => eb.fn.countAll().as('n'))
            .where(pendingOnly(filter))
            .executeTakeFirstOrThrow()
        ).n,
      ),

    /** Pending, or decided and not yet passed on. */
    openOf: (run: string) => open(run).execute(),
    decidedOf: (run: string) => open(run).where('state', '!=', 'pending').execute(),

    /** Of each task the one that has waited longest. */
    pendingOf: async (tasks: string[]) =>
      tasks.length
        ? db
            .selectFrom('approvals as a')
            .select(['a.task_id', 'a.number', 'a.name', 'a.input'])
            .where('a.state', '=', 'pending')
            .where('a.task_id', 'in', tasks)
            .where('a.number', '=', (eb) =>
              eb
                .selectFrom('approvals as first')
                .select((of) => of.fn.min('first.number').as('number'))
                .where('first.state', '=', 'pending')
                .whereRef('first.task_id', '=', 'a.task_id'),
            )
            .execute()
        : [],
  }
}

const pendingOnly =
  ({ task, project }: Pick<ApprovalFilter, 'task' | 'project'>) =>
  (eb: ExpressionBuilder<{ approvals: ApprovalRow }, 'approvals'>) =>
    eb.and([eb('state', '=', 'pending'), ...(task ? [eb('task_id', '=', task)] : []), ...(project ? [eb('project_id', '=', project)] : [])])
