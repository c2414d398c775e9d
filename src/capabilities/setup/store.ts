import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { KeptUse, SetupState } from './schema.ts'

/** The setup of one checkout. */
export interface SetupRow {
  id: string
  work_id: string
  repo_id: string
  project_id: string
  task_id: string
  path: string
  /** Which checkout at that path: taken away and made again, it is another one. */
  checkout: string
  /** The commit that it has. */
  head: string
  /** What kept packages are to it. */
  kept: KeptUse
  host: string
  /** The run or the session that it was begun for. */
  asked_by: string
  /** As it was when it began; null: there were only files to copy. */
  command: string | null
  state: SetupState
  /** `kept`: its packages were copied from what an earlier one made. */
  how: 'made' | 'kept' | null
  /** Effects that are enqueued when it has ended. */
  waiting: string
  reason: string | null
  log: string | null
  created_at: number
  ended_at: number | null
}

/** It has passed, and was cleaned up since: whoever begins there tries again, as after one that failed. Nobody asked for what is left of it. */
export function isUndone({ state, asked_by }: Pick<SetupRow, 'state' | 'asked_by'>): boolean {
  return state === 'failed' && asked_by === ''
}

export function setupStore(tx: Tx) {
  const db = tables<{ setups: SetupRow }>(tx)
  return {
    find: (id: string) => db.selectFrom('setups').selectAll().where('id', '=', id).executeTakeFirst(),
    latest: (work: string, checkout: string) =>
      db
        .selectFrom('setups')
        .selectAll()
        .where('work_id', '=', work)
        // Of worktrees that are older than this record nobody knows which checkout it was.
        .where('checkout', 'in', [checkout, '*'])
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(1)
        .executeTakeFirst(),
    /** Of whichever checkout. */
    newest: (work: string) =>
      db
        .selectFrom('setups')
        .selectAll()
        .where('work_id', '=', work)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(1)
        .executeTakeFirst(),
    running: (tasks: string[]) =>
      tasks.length
        ? db.selectFrom('setups').selectAll().where('state', '=', 'running').where('task_id', 'in', tasks).orderBy('id').execute()
        : Promise.resolve([]),
    undo: (work: string, reason: string) =>
      db
        .updateTable('setups')
        .set({ state: 'failed', reason, asked_by: '' })
        .where('work_id', '=', work)
        .where('state', '=', 'ready')
        .execute(),
    insert: (row: SetupRow) => db.insertInto('setups').values(row).execute(),
    update: (id: string, changes: Partial<SetupRow>) => db.updateTable('setups').set(changes).where('id', '=', id).execute(),
  }
}
