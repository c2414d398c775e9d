import type { Tx } from '../kernel/storage.ts'
import type { Place, RowOrder } from './row-order.ts'
import { marks, type Seal, type SealedTable } from './seal.ts'
import { tables } from './tables.ts'

/** A number so high was not reached by counting. It must not stop the sealer, which could not count on from it. */
export const NONE_OF_OURS = 9_000_000_000_000_000

export function sealStore(tx: Tx) {
  const db = tables<{ seals: Seal }>(tx)
  return {
    head: () => db.selectFrom('seals').selectAll().where('number', '<', NONE_OF_OURS).orderBy('number', 'desc').limit(1).executeTakeFirst(),

    /** Whether somebody put seals behind all that could ever be ours. */
    hasForeign: async () =>
      (await db.selectFrom('seals').select('at').where('number', '>=', NONE_OF_OURS).limit(1).executeTakeFirst()) !== undefined,

    find: (number: number) => db.selectFrom('seals').selectAll().where('number', '=', number).executeTakeFirst(),

    /** From the very first, also one that should not be there. */
    page: (after: number | undefined, upTo: number, limit: number) => {
      const query = db.selectFrom('seals').selectAll().where('number', '<=', upTo).orderBy('number').limit(limit)
      return (after === undefined ? query : query.where('number', '>', after)).execute()
    },

    /** The newest one below that seals rows of this table. */
    newestOf: (table: SealedTable, below: number) =>
      db
        .selectFrom('seals')
        .select(['number', table])
        .where(table, '<>', '[]')
        .where('number', '<', Math.min(below, NONE_OF_OURS))
        .orderBy('number', 'desc')
        .limit(1)
        .executeTakeFirst() as Promise<(Pick<Seal, 'number'> & Record<SealedTable, string>) | undefined>,

    /** Reads every list: only to say what exactly is wrong. */
    seals: async (table: SealedTable, seq: number) =>
      (await db.selectFrom('seals').select('number').where(table, 'like', `%[${seq},"%`).limit(1).executeTakeFirst()) !== undefined,

    /**
     * Whether it became the next link. The number is the lock: of two sealers on one database the second waits here for the
     * first, and then finds the number taken.
     */
    append: async (seal: Seal): Promise<boolean> => {
      const { numInsertedOrUpdatedRows } = await db
        .insertInto('seals')
        .values(seal)
        .onConflict((oc) => oc.column('number').doNothing())
        .executeTakeFirst()
      return numInsertedOrUpdatedRows === 1n
    },
  }
}

/** Of the seals below that number: the newest sealed row that is still there. Should somebody have removed the last ones, sealing goes on. */
export async function lastSealed(view: Tx, order: RowOrder, table: SealedTable, below: number): Promise<Place | undefined> {
  const store = sealStore(view)
  for (let seal = await store.newestOf(table, below); seal; seal = await store.newestOf(table, seal.number)) {
    for (const [seq] of marks(seal[table]).reverse()) {
      const place = await order.placeOf(view, table, seq)
      if (place) return place
    }
  }
  return undefined
}
