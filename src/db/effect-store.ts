import { type RawBuilder, sql } from 'kysely'
import { backOffMs, type EffectState, type EffectToStore, type Outcome } from '../kernel/effect.ts'
import { redactText } from '../kernel/redact.ts'
import type { Tx } from '../kernel/storage.ts'
import type { EngineFacts } from './engine.ts'
import { FORGOTTEN_AT_ONCE } from './ledger.ts'
import { tables } from './tables.ts'

export interface EffectRow {
  id: string
  type: string
  payload: string
  queue: string | null
  state: EffectState
  attempts: number
  max_attempts: number
  /** By the clock of the engine, like every time here. 0 when it waits for no time. */
  run_at: number
  owner: string | null
  /** Grows with every claim: a late writer with an older one is refused. */
  epoch: number
  lease_until: number
  /** 1 while nobody knows whether an attempt that was cut off was done. */
  cut_off: number
  /** Daemons for which it is not: a list as JSON. */
  refused_by: string | null
  error: string | null
  call_id: string
  created_at: number
  finished_at: number | null
}

export interface EffectTables {
  effects: EffectRow
  daemons: { id: string; host: string | null; workers: string; seen_at: number }
}

/**
 * Whether the effect `e` has to wait because something of its queue runs, or stands before it in the line. One that was cut off is
 * held by nothing: it is what holds the others.
 */
export function heldInLine({ nowMs }: EngineFacts): RawBuilder<boolean> {
  return sql<boolean>`(e.state = 'waiting' AND EXISTS (SELECT 1 FROM effects AS o WHERE o.queue = e.queue AND o.id <> e.id
    AND (o.state = 'running' OR (o.state = 'waiting' AND (o.attempts > 0 OR o.run_at <= ${nowMs()})
      AND (o.created_at, o.id) < (e.created_at, e.id)))))`
}

/** The rows are the truth about every effect on either engine; drivers decide only when to look at them. */
export function effectStore(tx: Tx, facts: EngineFacts) {
  const db = tables<EffectTables>(tx)
  const now = facts.nowMs()
  const soon = (ms: number) => sql<number>`${now} + ${ms}`
  const ripe = sql<boolean>`((e.state = 'waiting' AND e.run_at <= ${now}) OR (e.state = 'running' AND e.lease_until < ${now}))`
  const held = heldInLine(facts)
  return {
    insert: (effects: EffectToStore[]) =>
      db
        .insertInto('effects')
        .values(
          effects.map((effect) => ({
            id: effect.id,
            type: effect.type,
            payload: JSON.stringify(effect.payload),
            queue: effect.queue ?? null,
            state: 'waiting' as const,
            attempts: 0,
            max_attempts: effect.attempts,
            run_at: effect.delayMs ? soon(effect.delayMs) : 0,
            owner: null,
            epoch: 0,
            lease_until: 0,
            cut_off: 0,
            refused_by: null,
            error: null,
            call_id: effect.callId,
            created_at: behindTheLast(effect.queue),
            finished_at: null,
          })),
        )
        .execute(),

    find: (id: string) => db.selectFrom('effects').selectAll().where('id', '=', id).executeTakeFirst(),

    /** Takes it on lease, also from an owner that let its lease run out. Undefined when it is not its turn, or it is over. */
    claim: async (id: string, owner: string, leaseMs: number): Promise<EffectRow | undefined> => {
      const claimed = await sql<EffectRow>`
        UPDATE effects AS e SET state = 'running', owner = ${owner}, epoch = epoch + 1, attempts = attempts + 1,
          cut_off = CASE WHEN state = 'running' THEN 1 ELSE cut_off END, lease_until = ${soon(leaseMs)}
        WHERE e.id = ${id} AND ${ripe} AND NOT ${held} RETURNING *`.execute(db)
      return claimed.rows[0]
    },

    /** False when the lease was lost meanwhile. */
    renew: async (id: string, epoch: number, leaseMs: number) => {
      const result = await db
        .updateTable('effects')
        .set({ lease_until: soon(leaseMs) })
        .where('id', '=', id)
        .where('epoch', '=', epoch)
        .where('state', '=', 'running')
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },

    /** Writes down how an attempt ended. Undefined when a newer one has begun: that one's end counts. */
    finish: async (row: EffectRow, outcome: Outcome, backOffBaseMs: number): Promise<EffectRow | undefined> =>
      db
        .updateTable('effects')
        .set({ owner: null, ...ending(row, outcome, backOffBaseMs), ...(await passedOn(row, outcome)) })
        .where('id', '=', row.id)
        .where('epoch', '=', row.epoch)
        .where('state', '=', 'running')
        .returningAll()
        .executeTakeFirst(),

    /** One that is unknown was judged by a person: it is not asked again whether it was done. */
    decide: async (id: string, decision: 'retry' | 'drop') => {
      const result = await db
        .updateTable('effects')
        .set({
          state: decision === 'retry' ? 'waiting' : 'dropped',
          attempts: 0,
          run_at: 0,
          refused_by: null,
          cut_off: sql<number>`CASE WHEN state = 'unknown' THEN 0 ELSE cut_off END`,
          finished_at: decision === 'drop' ? now : null,
        })
        .where('id', '=', id)
        .where('state', 'in', ['dead', 'unknown'])
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },

    /** Ends the leases of all but these owners: the others are known to be gone. */
    expireAllBut: (owners: string[]) => {
      const running = db.updateTable('effects').set({ lease_until: 0 }).where('state', '=', 'running')
      return (owners.length ? running.where('owner', 'not in', owners) : running).execute()
    },

    /** A daemon came or went: what the others could not do is offered to all of them. Returns what that is. */
    offerAgain: async () => {
      const offered = await db
        .updateTable('effects')
        .set({ refused_by: null, run_at: 0 })
        .where('state', '=', 'waiting')
        .where('refused_by', 'is not', null)
        .returning('id')
        .execute()
      return offered.map(({ id }) => id)
    },

    /** What may be begun now. */
    due: async (limit: number) => {
      const found = await sql<{ id: string }>`
        SELECT e.id FROM effects AS e WHERE e.state IN ('waiting', 'running') AND ${ripe} AND NOT ${held}
        ORDER BY e.created_at, e.id LIMIT ${limit}`.execute(db)
      return found.rows.map((row) => row.id)
    },

    /** Its time has come, but not its turn: whoever is before it in the line will hand on to it. */
    isHeld: async (id: string) => {
      const found = await sql`SELECT 1 FROM effects AS e WHERE e.id = ${id} AND ${ripe} AND ${held}`.execute(db)
      return found.rows.length > 0
    },

    /** Whose turn it is in the line, now or after its back-off. */
    nextOf: async (queue: string) => {
      const found = await sql<{ id: string }>`
        SELECT e.id FROM effects AS e WHERE e.queue = ${queue} AND e.state = 'waiting' AND (e.attempts > 0 OR e.run_at <= ${now})
        ORDER BY e.created_at, e.id LIMIT 1`.execute(db)
      return found.rows[0]?.id
    },

    /** How long until the next one is due; undefined when none waits. */
    nextInMs: async () => {
      const found = await sql<{
        ms: number | null
      }>`SELECT min(run_at) - ${now} AS ms FROM effects WHERE state = 'waiting' AND run_at > ${now}`.execute(db)
      return found.rows[0]?.ms ?? undefined
    },

    /** Some of what nobody has to decide about any more. True when there may be more. */
    forget: async (olderThanMs: number): Promise<boolean> => {
      const old = sql`SELECT id FROM effects WHERE state IN ('done', 'dropped') AND finished_at < ${now} - ${olderThanMs} LIMIT ${FORGOTTEN_AT_ONCE}`
      const done = await sql`DELETE FROM effects WHERE id IN (${old})`.execute(db)
      return Number(done.numAffectedRows) === FORGOTTEN_AT_ONCE
    },
  }

  /** The line is in the order of this time: a clock that went back must not let anybody jump the queue. */
  function behindTheLast(queue: string | undefined): RawBuilder<number> {
    if (queue === undefined) return now
    return sql<number>`(SELECT CASE WHEN max(o.created_at) >= ${now} THEN max(o.created_at) + 1 ELSE ${now} END
      FROM effects AS o WHERE o.queue = ${queue} AND o.state IN ('waiting', 'running'))`
  }

  /** Not for this daemon, it is no attempt as long as there is another one to be asked. */
  async function passedOn(row: EffectRow, outcome: Outcome) {
    if (outcome.state !== 'elsewhere' || !facts.shared) return {}
    const refusedBy = [...(JSON.parse(row.refused_by ?? '[]') as string[]), row.owner ?? '']
    const another = await db.selectFrom('daemons').select('id').where('id', 'not in', refusedBy).limit(1).executeTakeFirst()
    return {
      refused_by: JSON.stringify(refusedBy),
      ...(another && { state: 'waiting' as const, attempts: row.attempts - 1, run_at: 0, finished_at: null }),
    }
  }

  function ending(row: EffectRow, outcome: Outcome, backOffBaseMs: number) {
    if (outcome.state === 'done') return { state: 'done' as const, cut_off: 0, error: null, finished_at: now }
    // A message from outside may hold what no database stores, and a token that must not be shown.
    const error = redactText(outcome.error.slice(0, 2_000).toWellFormed().replaceAll('\0', '\ufffd'))
    if (!('cutOff' in outcome)) return { state: outcome.state, error, finished_at: now }
    const cut_off = outcome.cutOff ? 1 : 0
    // Told to stop, it did not fail: that was no attempt.
    if (outcome.state === 'stopped') return { state: 'waiting' as const, cut_off, attempts: row.attempts - 1, run_at: 0 }
    if (row.attempts >= row.max_attempts) return { state: 'dead' as const, cut_off, error, finished_at: now }
    return { state: 'waiting' as const, cut_off, error, run_at: soon(backOffMs(row.attempts, backOffBaseMs)) }
  }
}
