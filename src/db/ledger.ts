import { type ExpressionBuilder, type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import { Collision, refuse } from '../kernel/error.ts'
import { type Audience, type Cursor, type EventFilter, type LoggedEvent, sides } from '../kernel/event.ts'
import type { Ledger } from '../kernel/log.ts'
import type { Tx } from '../kernel/storage.ts'
import type { CoreTables } from './core.ts'
import { decodeCursor, encodeCursor, generationStart } from './engine.ts'
import { insertion, statement } from './statement.ts'
import { tables } from './tables.ts'

/** Of a filter that fits few rows, more in one piece would keep everybody else waiting. */
const LOOKED_AT_ONCE = 10_000
const KEY_LIFE_MS = 24 * 3_600_000
/** One transaction must stay short: a long backlog at once would be taken back for ever. */
export const FORGOTTEN_AT_ONCE = 500

/** How an engine numbers commits: the one thing in which their logs differ. */
export interface CommitOrder {
  start: Cursor
  cursorOf(row: EventRow): Cursor
  head(view: Tx): Promise<Cursor>
  isAfter(a: Cursor, b: Cursor): boolean
  /** Rows strictly after the cursor, in commit order, and none that a commit still under way could come before. */
  following(view: Tx, query: EventQuery, after: Cursor, filter: EventFilter): Promise<Following>
  /** The same rows backwards: strictly before the cursor, the newest first; without one, from the end. */
  preceding(view: Tx, query: EventQuery, before: Cursor | undefined, how: 'by index' | 'by looking'): Promise<Preceding>
}

/** On PostgreSQL alone: the database's generation and the transaction that wrote the row. */
export type EventRow = CoreTables['events'] & { generation?: number; xid?: string }
export type EventQuery = SelectQueryBuilder<CoreTables, 'events', EventRow>

interface Preceding {
  query: EventQuery
  /** Where those begin that it does not look at. */
  older?: Cursor
}

interface Following {
  query: EventQuery
  /** Whether there are committed rows that are not among them yet. Ask after reading. */
  heldBack(): Promise<boolean>
}

export function notOfThisLog(cursor: Cursor) {
  return refuse('INVALID_CURSOR', `"${cursor.slice(0, 40)}" is not a cursor of this log.`, {
    hint: 'Use one that an earlier answer gave you, or none.',
  })
}

export function inTheFuture() {
  return refuse('INVALID_CURSOR', 'That cursor lies in the future of this log; it belongs to another database.', {
    hint: 'Start again without a cursor.',
  })
}

const insertEvents = insertion('events')
const insertCalls = insertion('calls')
const insertMissingCalls = insertion('calls', { orNothing: 'id' })
const newestEvent = statement((db: Kysely<CoreTables>) => db.selectFrom('events').select((eb) => eb.fn.max('seq').as('seq')))

/** On SQLite there is one writer, so the sequence number is the commit order. */
export function sqliteOrder(generation: number): CommitOrder {
  const cursor = (seq: number) => encodeCursor(generation, seq)
  const lastSeq = async (view: Tx) => Number((await newestEvent.first(view, {}))?.seq ?? 0)
  /** `shared` is the last row that a cursor of an older generation has in common with this log. */
  const seqOf = async (view: Tx, cursor: Cursor, atMost: (shared: number) => number) => {
    const decoded = decodeCursor(cursor)
    if (!decoded) throw notOfThisLog(cursor)
    const head = await lastSeq(view)
    if (decoded.generation > generation || (decoded.generation === generation && decoded.seq > head)) throw inTheFuture()
    if (decoded.generation === generation) return decoded.seq
    return Math.min(decoded.seq, atMost(commonHistory(await restores(view), decoded.generation)))
  }
  return {
    start: cursor(0),
    cursorOf: (row) => cursor(row.seq),
    head: async (view) => cursor(await lastSeq(view)),
    isAfter,
    async following(view, query, after) {
      return { query: query.where('seq', '>', await seqOf(view, after, (shared) => shared)).orderBy('seq'), heldBack: async () => false }
    },
    async preceding(view, query, before, how) {
      const end = before === undefined ? (await lastSeq(view)) + 1 : await seqOf(view, before, (shared) => shared + 1)
      const start = how === 'by index' ? 0 : end - LOOKED_AT_ONCE
      const rows = query.where('seq', '<', end).where('seq', '>=', start).orderBy('seq', 'desc')
      return start > 1 ? { query: rows, older: cursor(start) } : { query: rows }
    },
  }
}

export function createLedger(order: CommitOrder): Ledger {
  const eventsOf = (rows: EventRow[]) => rows.map((row) => eventOf(row, order.cursorOf(row)))
  return {
    async append(tx, events, call) {
      if (!events.length) return
      const rows = events.map((event) => ({
        at: call.at,
        type: event.type,
        subject: event.subject,
        actor: call.actor,
        project_id: event.project ?? null,
        task_id: event.task ?? null,
        audience: audienceText(event.audience),
        call_id: call.id,
        data: JSON.stringify(event.data),
      }))
      await insertEvents(tx, rows)
    },

    async audit(tx, calls, how) {
      const rows = calls.map(({ by, ...call }) => ({ ...call, acting_person: by }))
      await (how === 'perhaps again' ? insertMissingCalls : insertCalls)(tx, rows)
    },

    async committed(view, callId) {
      return (await core(view).selectFrom('calls').select('id').where('id', '=', callId).executeTakeFirst()) !== undefined
    },

    async tail(view, after, filter, limit) {
      const { query } = await order.following(view, filtered(view, filter) as EventQuery, after, filter)
      return eventsOf(await query.limit(limit).execute())
    },

    async recent(view, before, filter, limit) {
      const how = filter.task === undefined && filter.subject === undefined ? 'by looking' : 'by index'
      const found: LoggedEvent[] = []
      for (let from = before; ; ) {
        const { query, older } = await order.preceding(view, filtered(view, filter) as EventQuery, from, how)
        found.push(...eventsOf(await query.limit(limit - found.length).execute()))
        if (found.length === limit || older === undefined) return found
        from = older
        await new Promise((resolve) => setImmediate(resolve))
      }
    },

    async news(view, after, limit) {
      const { query, heldBack } = await order.following(view, filtered(view, {}) as EventQuery, after, {})
      return { events: eventsOf(await query.limit(limit).execute()), heldBack: await heldBack() }
    },

    head: order.head,
    start: async () => order.start,
    isAfter: order.isAfter,

    async remembered(tx, principal, tool, key, now) {
      return core(tx)
        .selectFrom('idempotency')
        .select(['input_hash', 'answer'])
        .where('principal', '=', principal)
        .where('tool', '=', tool)
        .where('key', '=', key)
        .where('at', '>', now - KEY_LIFE_MS)
        .executeTakeFirst()
    },

    async remember(tx, principal, tool, key, stored, now, instead) {
      const expired = now - KEY_LIFE_MS
      const result = await core(tx)
        .insertInto('idempotency')
        .values({ principal, tool, key, ...stored, at: now })
        .onConflict((oc) =>
          oc
            .columns(['principal', 'tool', 'key'])
            .doUpdateSet({ ...stored, at: now })
            .where(({ eb, or }) => or([eb('idempotency.at', '<=', expired), eb('idempotency.answer', '=', instead?.answer ?? '')])),
        )
        .executeTakeFirst()
      // Another call with this key committed while this one ran: run again, it is a replay now.
      if (result.numInsertedOrUpdatedRows === 0n) throw new Collision(`the key ${key} was taken meanwhile`)
    },

    async countRefusals(tx, counts) {
      for (const { source, reason, count, at } of counts) {
        await core(tx)
          .insertInto('refusals')
          .values({ source, reason, count, first_at: at, last_at: at })
          .onConflict((oc) => oc.columns(['source', 'reason']).doUpdateSet({ count: sql`refusals.count + ${count}`, last_at: at }))
          .execute()
      }
    },

    async forget(tx, now) {
      const old = sql`SELECT principal, tool, key FROM idempotency WHERE at <= ${now - KEY_LIFE_MS} LIMIT ${FORGOTTEN_AT_ONCE}`
      const done = await sql`DELETE FROM idempotency WHERE (principal, tool, key) IN (${old})`.execute(core(tx))
      return Number(done.numAffectedRows) === FORGOTTEN_AT_ONCE
    },
  }
}

/** What this log tells is newer than any cursor from before its restore, whatever their numbers. */
function isAfter(a: Cursor, b: Cursor): boolean {
  const [left, right] = [decodeCursor(a), decodeCursor(b)]
  if (!left || !right) return false
  return left.generation === right.generation ? left.seq > right.seq : left.generation > right.generation
}

/** Each began a generation of a SQLite file, behind the last event of the backup. */
interface Restore {
  generation: number
  start: number
}

export async function restores(view: Tx): Promise<Restore[]> {
  const starts = await core(view).selectFrom('meta').selectAll().where('name', 'like', generationStart('%')).execute()
  return starts.map((row) => ({ generation: Number(row.name.split('.')[1]), start: Number(row.value) }))
}

/**
 * Up to where a cursor of an older generation can have read the same log. The end of the log would not do: it moves, and
 * what was written since the restore would be skipped.
 */
export function commonHistory(all: Restore[], generation: number): number {
  return Math.min(...all.filter((restore) => restore.generation >= generation).map((restore) => restore.start))
}

function core(tx: Tx) {
  return tables<CoreTables>(tx)
}

function filtered(view: Tx, filter: EventFilter) {
  let query = core(view).selectFrom('events').selectAll()
  if (filter.subject !== undefined) query = query.where('subject', '=', filter.subject)
  if (filter.project !== undefined) query = query.where('project_id', '=', filter.project)
  if (filter.task !== undefined) query = query.where('task_id', '=', filter.task)
  const { wanted, unwanted } = sides(filter)
  if (wanted.length) query = query.where((eb) => eb.or(wanted.map((type) => isType(eb, type))))
  if (unwanted.length) query = query.where((eb) => eb.not(eb.or(unwanted.map((type) => isType(eb, type)))))
  return query
}

function isType(eb: ExpressionBuilder<CoreTables, 'events'>, type: string) {
  return type.endsWith('.*') ? eb.between('type', type.slice(0, -1), `${type.slice(0, -1)}\uffff`) : eb('type', '=', type)
}

function eventOf(row: CoreTables['events'], cursor: Cursor): LoggedEvent {
  return {
    cursor,
    at: row.at,
    type: row.type,
    subject: row.subject,
    actor: row.actor,
    project: row.project_id,
    task: row.task_id,
    audience: audienceOf(row.audience),
    call_id: row.call_id,
    data: JSON.parse(row.data) as Record<string, unknown>,
  }
}

function audienceText(audience: Audience = 'everyone'): string {
  return typeof audience === 'object' ? audience.only : audience
}

function audienceOf(text: string): Audience {
  return text === 'everyone' || text === 'people' ? text : { only: text }
}
