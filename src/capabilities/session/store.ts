import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { PromptState, SessionState } from './schema.ts'

export interface SessionRow {
  id: string
  task_id: string
  project_id: string
  agent_id: string
  token_id: string | null
  program: string
  /** What the terminal is called. */
  name: string
  /** The daemon on whose machine it is. */
  host: string | null
  state: SessionState
  reason: string | null
  prompt: PromptState
  prompt_detail: string | null
  /** What its agent is told besides the task. */
  message: string | null
  /** The argv that attaches to it, as JSON. */
  attach: string | null
  last_screen: string | null
  opened_by: string
  close_asked_at: number | null
  opened_at: number
  closed_at: number | null
}

interface Tables {
  sessions: SessionRow
}

const LIVING = ['opening', 'open'] as const

export function sessionStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    find: (id: string) => db.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirst(),
    insert: (row: SessionRow) => db.insertInto('sessions').values(row).execute(),
    update: (id: string, changes: Partial<SessionRow>) => db.updateTable('sessions').set(changes).where('id', '=', id).execute(),

    /** The newest, whatever became of it. */
    lastOf: (task: string) =>
      db.selectFrom('sessions').selectAll().where('task_id', '=', task).orderBy('id', 'desc').limit(1).executeTakeFirst(),

    ofAgent: (agent: string) =>
      db.selectFrom('sessions').selectAll().where('agent_id', '=', agent).where('state', 'in', LIVING).orderBy('id').executeTakeFirst(),

    livingOf: (task: string) =>
      db.selectFrom('sessions').selectAll().where('task_id', '=', task).where('state', 'in', LIVING).orderBy('id').executeTakeFirst(),

    living: () => db.selectFrom('sessions').selectAll().where('state', 'in', LIVING).orderBy('id').execute(),

    openOn: (host: string) =>
      db.selectFrom('sessions').selectAll().where('state', '=', 'open').where('host', '=', host).orderBy('id').execute(),

    /** The newest of each. */
    latest: (tasks: string[]) =>
      tasks.length === 0
        ? Promise.resolve([])
        : db
            .selectFrom('sessions as s')
            .selectAll()
            .where('s.task_id', 'in', tasks)
            .where('s.id', '=', (eb) =>
              eb
                .selectFrom('sessions as newest')
                .select((of) => of.fn.max('newest.id').as('id'))
                .whereRef('newest.task_id', '=', 's.task_id'),
            )
            .execute(),
  }
}
