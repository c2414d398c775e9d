import { type SelectQueryBuilder, sql } from 'kysely'
import type { Cursor, EventFilter } from '../kernel/event.ts'
import type { Ledger } from '../kernel/log.ts'
import type { Tx } from '../kernel/storage.ts'
import { decodeCursor } from './engine.ts'
import { type CommitOrder, commonHistory, createLedger, inTheFuture, notOfThisLog, restores } from './ledger.ts'
import type { Place, PlacedRow, RowOrder } from './row-order.ts'
import { tables } from './tables.ts'

/** Where a row stands in the order of commits. Sequence numbers alone would not do: they are given out before the commit. */
interface Position {
  generation: number
  xid: bigint
  seq: number
}

interface Watermark {
  /** No transaction below this one is still under way. */
  settled: bigint
  /** What the next transaction would be called. */
  next: bigint
}

/** On PostgreSQL the order of commits is (transaction, sequence number) below the oldest open transaction. */
export function postgresLedger(generation: number): Ledger {
  return createLedger(postgresOrder(generation))
}

function postgresOrder(generation: number): CommitOrder {
  const start = encode({ generation: 1, xid: 0n, seq: 0 })
  const placeOf = async (view: Tx, cursor: Cursor, next: bigint, atMost = (shared: number) => shared): Promise<Place> => {
    const found = await located(view, cursor, atMost)
    if (!found) throw notOfThisLog(cursor)
    // Of this generation no row lacks a transaction: that cursor belongs to a SQLite database that was never copied here.
    const foreign = found.xid === 0n && found.seq > 0
    if (found.generation > generation || (found.generation === generation && (foreign || found.xid >= next))) throw inTheFuture()
    return { ...found, xid: String(found.xid) }
  }
  return {
    start,
    cursorOf: (row) => encode({ generation: Number(row.generation), xid: BigInt(row.xid as string), seq: row.seq }),
    isAfter(a, b) {
      const [left, right] = [decode(a), decode(b)]
      return left !== undefined && right !== undefined && compare(left, right) > 0
    },
    async head(view) {
      const { settled } = await watermark(view)
      const found = await sql<{ generation: number; xid: string; seq: number }>`
        SELECT generation, xid, seq FROM events WHERE generation < ${generation} OR xid < ${String(settled)}::xid8
        ORDER BY generation DESC, xid DESC, seq DESC LIMIT 1`.execute(tables(view))
      const [row] = found.rows
      return row ? encode({ ...row, xid: BigInt(row.xid) }) : start
    },
    async following(view, query, after, filter) {
      const { settled, next } = await watermark(view)
      const from = await placeOf(view, after, next)
      return {
        query: inCommitOrder(query).where(behindWithin(filter, from)).where(isSettled(generation, settled)),
        heldBack: async () => settled < next && (await anyFrom(view, generation, settled)),
      }
    },
    async preceding(view, query, before) {
      const { settled, next } = await watermark(view)
      const older = before === undefined ? query : query.where(ahead(await placeOf(view, before, next, (shared) => shared + 1)))
      return { query: inCommitOrder(older, 'desc').where(isSettled(generation, settled)) }
    },
  }
}

/** The same order for the log and the audit, also of rows that are not settled yet. */
export function postgresRows(generation: number): RowOrder {
  return {
    async placeOf(view, table, seq) {
      const found = await sql<Place>`SELECT generation, xid, seq FROM ${sql.table(table)} WHERE seq = ${seq}`.execute(tables(view))
      return found.rows[0]
    },
    async following(view, table, place, limit, which) {
      const bounds = [behind(place)]
      if (which === 'settled') bounds.push(isSettled(generation, (await watermark(view)).settled))
      const found = await sql<PlacedRow>`SELECT * FROM ${sql.table(table)} WHERE ${sql.join(bounds, sql` AND `)}
        ORDER BY generation, xid, seq LIMIT ${limit}`.execute(tables(view))
      return found.rows
    },
    async count(view, table, after) {
      const found = await sql<{ n: number }>`SELECT count(*) AS n FROM ${sql.table(table)} WHERE ${behind(after)}`.execute(tables(view))
      return Number(found.rows[0]?.n)
    },
  }
}

function behind(place: Place | undefined) {
  if (!place) return sql<boolean>`TRUE`
  return sql<boolean>`(generation, xid, seq) > (${place.generation}::bigint, ${place.xid}::xid8, ${place.seq}::bigint)`
}

/**
 * By the index of the one task or subject. Of a cursor near the end the planner believes that hardly anything follows it: by
 * the index of commits it would go through all that everybody else has written since.
 */
function behindWithin({ task, subject }: EventFilter, place: Place) {
  if (task === undefined && subject === undefined) return behind(place)
  const column = sql.ref(task === undefined ? 'subject' : 'task_id')
  return sql<boolean>`(${column}, generation, xid, seq)
    > (${task ?? subject}::text, ${place.generation}::bigint, ${place.xid}::xid8, ${place.seq}::bigint)`
}

function ahead(place: Place) {
  return sql<boolean>`(generation, xid, seq) < (${place.generation}::bigint, ${place.xid}::xid8, ${place.seq}::bigint)`
}

function isSettled(generation: number, settled: bigint) {
  return sql<boolean>`(generation < ${generation}::bigint OR xid < ${String(settled)}::xid8)`
}

async function anyFrom(view: Tx, generation: number, xid: bigint): Promise<boolean> {
  const found = await sql`SELECT 1 FROM events WHERE generation = ${generation} AND xid >= ${String(xid)}::xid8 LIMIT 1`.execute(
    tables(view),
  )
  return found.rows.length > 0
}

function inCommitOrder<DB, T extends keyof DB, O>(query: SelectQueryBuilder<DB, T, O>, way: 'asc' | 'desc' = 'asc') {
  return query.orderBy(sql`generation`, way).orderBy(sql`xid`, way).orderBy(sql`seq`, way)
}

/**
 * Transactions that are still under way could commit below a newer one: nothing at or above the oldest of them is read yet.
 * The snapshot's own xmin would do, but it is that of the whole server: a long transaction in somebody else's database
 * would hold our log back. So only those of this database are asked for, in a statement before the one that reads:
 * whoever is not in the list by then is seen by it. Sessions of a role that we may not look at leave only xmin.
 */
async function watermark(view: Tx): Promise<Watermark> {
  const { rows } = await sql<{ xmin: string; next: string; hidden: number; open: string[] | null }>`
    WITH snapshot AS MATERIALIZED (SELECT pg_snapshot_xmin(s) AS xmin, pg_snapshot_xmax(s) AS next FROM pg_current_snapshot() AS s),
      sessions AS MATERIALIZED (SELECT backend_xid, query FROM pg_stat_activity WHERE datname = current_database())
    SELECT xmin::text, next::text, (SELECT count(*) FROM sessions WHERE query = '<insufficient privilege>') AS hidden,
      (SELECT array_agg(backend_xid::text) FROM sessions WHERE backend_xid IS NOT NULL) AS open
    FROM snapshot`.execute(tables(view))
  const [row] = rows
  if (!row) throw new Error('PostgreSQL told nothing about its transactions')
  const next = BigInt(row.next)
  if (row.hidden > 0) return { settled: BigInt(row.xmin), next }
  const open = (row.open ?? []).map((xid) => widened(BigInt(xid), next))
  const [oldest = next] = [...open, next].sort((a, b) => Number(a - b))
  return { settled: oldest, next }
}

/** The list has the lower 32 bits only. One that is open now may be somewhat newer than the snapshot, never by half the range. */
function widened(xid: bigint, next: bigint): bigint {
  const wide = ((next >> 32n) << 32n) + xid
  if (wide > next + HALF_RANGE) return wide - (1n << 32n)
  return wide < next - HALF_RANGE ? wide + (1n << 32n) : wide
}

const HALF_RANGE = 1n << 31n

function compare(a: Position, b: Position): number {
  if (a.generation !== b.generation) return a.generation - b.generation
  if (a.xid !== b.xid) return a.xid < b.xid ? -1 : 1
  return a.seq - b.seq
}

function encode({ generation, xid, seq }: Position): Cursor {
  return `${generation.toString(36)}.${xid.toString(36)}.${seq.toString(36)}`
}

function decode(cursor: Cursor): Position | undefined {
  const match = /^([0-9a-z]{1,8})\.([0-9a-z]{1,13})\.([0-9a-z]{1,11})$/.exec(cursor)
  if (!match) return copied(cursor)
  const [, generation = '', xid = '', seq = ''] = match
  const position = { generation: Number.parseInt(generation, 36), xid: fromBase36(xid), seq: Number.parseInt(seq, 36) }
  return position.generation > 0 && position.xid < 1n << 63n && Number.isSafeInteger(position.seq) ? position : undefined
}

/**
 * A cursor of the SQLite file that this database was copied from means the same place as in that file. Its rows came over
 * with the generation that the file had last; one of an earlier generation, from any restore before, shares only a part.
 */
async function located(view: Tx, cursor: Cursor, atMost: (shared: number) => number): Promise<Position | undefined> {
  const found = copied(cursor)
  if (!found) return decode(cursor)
  const all = await restores(view)
  const last = Math.max(1, ...all.map((restore) => restore.generation))
  if (found.generation >= last) return found
  return { ...found, generation: last, seq: Math.min(found.seq, atMost(commonHistory(all, found.generation))) }
}

/** Issued by the SQLite database that this one was copied from: its rows came over without a transaction's number. */
function copied(cursor: Cursor): Position | undefined {
  const found = decodeCursor(cursor)
  return found && { ...found, xid: 0n }
}

function fromBase36(text: string): bigint {
  return [...text].reduce((sum, digit) => sum * 36n + BigInt(Number.parseInt(digit, 36)), 0n)
}
