import { type Kysely, sql } from 'kysely'
import { statement } from '../db/statement.ts'
import type { Tx } from '../kernel/storage.ts'

interface Counters {
  counters: { name: string; value: number }
}

const MAX_SLUG = 32

/** Lower-case words joined by `-`; never empty, never starting with a digit. */
export function slug(name: string, fallback: string): string {
  const words = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_SLUG)
    .replace(/^[-0-9]+|-+$/g, '')
  return words || fallback
}

/** The slug itself, or with the next free number behind it. */
export async function uniqueHandle(base: string, taken: (handle: string) => Promise<boolean>): Promise<string> {
  for (let n = 1; ; n++) {
    const handle = n === 1 ? base : `${base}-${n}`
    if (!(await taken(handle))) return handle
  }
}

const count = statement((db: Kysely<Counters>, { name }: { name: string }) =>
  db
    .insertInto('counters')
    .values({ name, value: 1 })
    .onConflict((oc) => oc.column('name').doUpdateSet({ value: sql`counters.value + 1` }))
    .returning('value'),
)

/** Numbers that people read (T-1, T-2, …). They may skip after a rollback, they never repeat. */
export async function nextNumber(tx: Tx, name: string): Promise<number> {
  const row = await count.first(tx, { name })
  if (!row) throw new Error(`the counter ${name} gave no number`)
  return row.value
}

/**
 * From here on, transactions that take the same turn run one after the other. For rules that hold over several rows: two
 * at once could each see a state that the other is about to change. (The lock is the counter's row.)
 */
export async function takeTurn(tx: Tx, what: string): Promise<void> {
  await nextNumber(tx, `turn:${what}`)
}
