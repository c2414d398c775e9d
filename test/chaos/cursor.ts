import type { Cursor } from '../../src/kernel/event.ts'

/** The number of the row that a cursor stands at: on either engine its last part. */
export function seqOf(cursor: Cursor): number {
  return Number.parseInt(cursor.split('.').at(-1) ?? '', 36)
}
