import { sql } from 'kysely'
import { insertion } from '../../db/statement.ts'
import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { EntryKind } from './schema.ts'

export interface EntryRow {
  run_id: string
  /** From 1, without a gap: the order in which it happened. */
  number: number
  task_id: string
  turn: number
  kind: EntryKind
  /** Of a tool, or null. */
  name: string | null
  body: string
  at: number
}

interface Tables {
  transcript_entries: EntryRow
}

const insertEntries = insertion<EntryRow>('transcript_entries')

/** Runs are numbered by their ids, which sort by time, and entries within them. */
export interface Place {
  run: string
  number: number
}

export function transcriptStore(tx: Tx) {
  const entries = () => tables<Tables>(tx).selectFrom('transcript_entries').selectAll()
  return {
    insert: (rows: EntryRow[]) => insertEntries(tx, rows),
    size: async (run: string) => {
      const row = await tables<Tables>(tx)
        .selectFrom('transcript_entries')
        .select((eb) => eb.fn.max('number').as('last'))
        .where('run_id', '=', run)
        .executeTakeFirst()
      return Number(row?.last ?? 0)
    },

    /** Oldest first behind the place, or newest first before it. */
    page: (task: string | undefined, run: string | undefined, order: 'oldest' | 'newest', from: Place | undefined, limit: number) => {
      const direction = order === 'oldest' ? 'asc' : 'desc'
      const beyond = order === 'oldest' ? '>' : '<'
      return entries()
        .$if(task !== undefined, (rest) => rest.where('task_id', '=', task as string))
        .$if(run !== undefined, (rest) => rest.where('run_id', '=', run as string))
        .$if(from !== undefined, (rest) =>
          rest.where((eb) =>
            eb.or([
              eb('run_id', beyond, from?.run ?? ''),
              eb.and([eb('run_id', '=', from?.run ?? ''), eb('number', beyond, from?.number ?? 0)]),
            ]),
          ),
        )
        .orderBy('run_id', direction)
        .orderBy('number', direction)
        .limit(limit)
        .execute()
    },

    /** Of one task, newest first. `words` are matched as they are: `%` and `_` mean themselves. */
    search: (task: string, words: string, from: Place | undefined, limit: number) =>
      entries()
        .where('task_id', '=', task)
        .where(sql<boolean>`lower(body) LIKE ${`%${words.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`} ESCAPE '\\'`)
        .$if(from !== undefined, (rest) =>
          rest.where((eb) =>
            eb.or([eb('run_id', '<', from?.run ?? ''), eb.and([eb('run_id', '=', from?.run ?? ''), eb('number', '<', from?.number ?? 0)])]),
          ),
        )
        .orderBy('run_id', 'desc')
        .orderBy('number', 'desc')
        .limit(limit)
        .execute(),
  }
}
