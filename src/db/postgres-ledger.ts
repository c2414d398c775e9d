import { sql } from 'kysely'
import type { Cursor } from '../kernel/event.ts'
import type { Ledger } from '../kernel/log.ts'
import type { Tx } from '../kernel/storage.ts'
import { decodeCursor } from './engine.ts'
import { type CommitOrder, createLedger, inTheFuture, notOfThisLog } from './ledger.ts'
import { tables } from './tables.ts'

/** How our writers are known among the server's connections. */
export const APPLICATION = 'signalbox'

interface Position {
  generation: number
  xid: bigint
  seq: number
}

/**
 * Transactions that are still under way could commit below a newer one: nothing at or above the oldest of them is read yet.
 * The snapshot's own xmin would do, but it is that of the whole server: a long transaction in somebody else's database
 * would hold our log back. So only our own writers are asked for, in a statement before the one that reads: whoever is
 * not in the list by then is seen by it.
 */
async function watermark(view: Tx): Promise<string> {
  const { rows } = await sql<{ next: string; open: string[] | null }>`
    WITH snapshot AS MATERIALIZED (SELECT pg_snapshot_xmax(pg_current_snapshot()) AS next)
    SELECT next::text, (SELECT array_agg(backend_xid::text) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = ${APPLICATION} AND backend_xid IS NOT NULL) AS open
    FROM snapshot`.execute(tables(view))
  const next = BigInt(rows[0]?.next ?? 0)
  return String((rows[0]?.open ?? []).map((xid) => widened(BigInt(xid), next)).reduce((a, b) => (a < b ? a : b), next))
}

/** The list has the lower 32 bits only; an open transaction is never newer than the next one. */
function widened(xid: bigint, next: bigint): bigint {
  const wide = ((next >> 32n) << 32n) + xid
  return wide > next ? wide - (1n << 32n) : wide
}

/** On PostgreSQL the order of commits is (transaction, sequence number) below the oldest open transaction. */
export function postgresLedger(generation: number): Ledger {
  return createLedger(postgresOrder(generation))
}

function postgresOrder(generation: number): CommitOrder {
  const start = encode({ generation, xid: 0n, seq: 0 })
  return {
    start,
    cursorOf: (row) => encode({ generation, xid: BigInt(row.xid ?? 0), seq: row.seq }),
    async head(view) {
      const found = await sql<{
        xid: string
        seq: number
      }>`SELECT xid, seq FROM events WHERE xid < ${await watermark(view)}::xid8 ORDER BY xid DESC, seq DESC LIMIT 1`.execute(tables(view))
      const [row] = found.rows
      return row ? encode({ generation, xid: BigInt(row.xid), seq: row.seq }) : start
    },
    isAfter(a, b) {
      const [left, right] = [decode(a), decode(b)]
      if (!left || !right) return false
      return left.xid === right.xid ? left.seq > right.seq : left.xid > right.xid
    },
    async settled(view) {
      const held = await sql`SELECT 1 FROM events WHERE xid >= ${await watermark(view)}::xid8 LIMIT 1`.execute(tables(view))
      return held.rows.length === 0
    },
    async following(view, query, after) {
      const { xid, seq } = await position(view, after, generation)
      const limit = await watermark(view)
      return query
        .where(sql<boolean>`(xid, seq) > (${String(xid)}::xid8, ${seq}::bigint)`)
        .where(sql<boolean>`xid < ${limit}::xid8`)
        .orderBy(sql`xid`)
        .orderBy('seq')
    },
  }
}

async function position(view: Tx, cursor: Cursor, generation: number): Promise<Position> {
  const found = decode(cursor)
  if (found?.generation === generation) {
    if (found.xid > 0n && (await isFuture(view, found.xid))) throw inTheFuture()
    return found
  }
  const old = found ?? decodeCursor(cursor)
  if (!old) throw notOfThisLog(cursor)
  if (old.generation >= generation) throw inTheFuture()
  // Issued by the database that this one was copied or restored from: its events kept their sequence numbers.
  const rows = await sql<{ xid: string }>`SELECT xid FROM events WHERE seq <= ${old.seq} ORDER BY seq DESC LIMIT 1`.execute(tables(view))
  return { generation, xid: BigInt(rows.rows[0]?.xid ?? 0), seq: old.seq }
}

async function isFuture(view: Tx, xid: bigint): Promise<boolean> {
  const answer = await sql<{ future: boolean }>`SELECT ${String(xid)}::xid8 >= pg_snapshot_xmax(pg_current_snapshot()) AS future`.execute(
    tables(view),
  )
  return answer.rows[0]?.future ?? false
}

function encode({ generation, xid, seq }: Position): Cursor {
  return `${generation.toString(36)}.${xid.toString(36)}.${seq.toString(36)}`
}

function decode(cursor: Cursor): Position | undefined {
  const match = /^([0-9a-z]{1,8})\.([0-9a-z]{1,13})\.([0-9a-z]{1,11})$/.exec(cursor)
  if (!match) return undefined
  const [, generation = '', xid = '', seq = ''] = match
  return { generation: Number.parseInt(generation, 36), xid: fromBase36(xid), seq: Number.parseInt(seq, 36) }
}

function fromBase36(text: string): bigint {
  return [...text].reduce((sum, digit) => sum * 36n + BigInt(Number.parseInt(digit, 36)), 0n)
}
