import type { Kysely } from 'kysely'
import type { Tx } from '../kernel/storage.ts'

/** A store's view of a handle: Kysely over just the tables that it names. */
export function tables<T>(tx: Tx): Kysely<T> {
  return tx as unknown as Kysely<T>
}

export function asTx(db: Kysely<unknown>): Tx {
  return db as unknown as Tx
}
