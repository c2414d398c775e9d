import type { Tx } from '../kernel/storage.ts'
import type { CoreTables } from './core.ts'
import type { SealedRow, SealedTable } from './seal.ts'
import { tables } from './tables.ts'

/** A row, or as much of one as says where it stands: on SQLite its number, on PostgreSQL also what its commit was called. */
export type Place = { seq: number; generation?: number; xid?: string }
export type PlacedRow = SealedRow & Place

/** The rows of the log and of the audit in the order of their commits. */
export interface RowOrder {
  placeOf(view: Tx, table: SealedTable, seq: number): Promise<Place | undefined>
  /** Oldest first, from the very first without a place. `settled`: none that a commit still under way could come before. */
  following(view: Tx, table: SealedTable, place: Place | undefined, limit: number, which?: 'settled'): Promise<PlacedRow[]>
  count(view: Tx, table: SealedTable, after: Place | undefined): Promise<number>
}

/** One writer: the order of the numbers. */
export const sqliteRows: RowOrder = {
  placeOf: (view, table, seq) => tables<CoreTables>(view).selectFrom(table).select('seq').where('seq', '=', seq).executeTakeFirst(),

  following(view, table, place, limit) {
    const query = tables<CoreTables>(view).selectFrom(table).selectAll().orderBy('seq').limit(limit)
    return (place ? query.where('seq', '>', place.seq) : query).execute() as Promise<PlacedRow[]>
  },

  async count(view, table, after) {
    const query = tables<CoreTables>(view)
      .selectFrom(table)
      .select((eb) => eb.fn.countAll<number>().as('n'))
    const row = await (after ? query.where('seq', '>', after.seq) : query).executeTakeFirstOrThrow()
    return Number(row.n)
  },
}
