import { type RawBuilder, sql } from 'kysely'
import { backOffMs, type EffectState, type EffectToStore, type Outcome } from '../kernel/effect.ts'
import type { Tx } from '../kernel/storage.ts'
import type { EngineFacts } from './engine.ts'
import { tables } from './tables.ts'

export interface EffectRow {
  id: string
  type: string
  payload: string
  queue: string | null
  state: EffectState
  attempts: number
  max_attempts: number
  /** Database time, like every time here: a daemon's clock may jump. */
  run_at: number
  owner: string | null
  /** Grows with every claim: a late writer with an older one is refused. */
  epoch: number
  lease_until: number
  error: string | null
  call_id: string
  created_at: number
  finished_at: number | null
}

export interface EffectTables {
  effects: EffectRow
}

/** The rows are the truth about every effect on either engine; drivers decide only when to look at them. */
export function effectStore(tx: Tx, facts: EngineFacts) {
  const db = tables<EffectTables>(tx)
  const now = sql.raw(facts.nowMs) as RawBuilder<number>
  const soon = (ms: number) => sql<number>`${now} + ${ms}`
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
            run_at: soon(effect.delayMs ?? 0),
            owner: null,
            epoch: 0,
            lease_until: 0,
            error: null,
            call_id: effect.callId,
            created_at: now,
            finished_at: null,
          })),
        )
        .execute(),

    find: (id: string) => db.selectFrom('effects').selectAll().where('id', '=', id).executeTakeFirst(),

    /** Takes it on lease, also from an owner that let its lease run out. Undefined when somebody else has it, or it is over. */
    claim: async (id: string, owner: string, leaseMs: number): Promise<{ row: EffectRow; cutOff: boolean } | undefined> => {
      const before = await db.selectFrom('effects').select(['state', 'epoch']).where('id', '=', id).executeTakeFirst()
      if (!before) return undefined
      const row = await db
        .updateTable('effects')
        .set((eb) => ({
          state: 'running',
          owner,
          epoch: eb('epoch', '+', 1),
          attempts: eb('attempts', '+', 1),
          lease_until: soon(leaseMs),
        }))
        .where('id', '=', id)
        .where('epoch', '=', before.epoch)
        .where((eb) => eb.or([eb('state', '=', 'waiting'), eb.and([eb('state', '=', 'running'), eb('lease_until', '<', now)])]))
        .returningAll()
        .executeTakeFirst()
      return row && { row, cutOff: before.state === 'running' }
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

    /** Writes down how an attempt ended, unless a newer one has begun. Returns the new state, or undefined. */
    finish: async (row: EffectRow, outcome: Outcome): Promise<EffectState | undefined> => {
      const again = outcome.state === 'failed' && row.attempts < row.max_attempts
      const state: EffectState = outcome.state === 'failed' ? (again ? 'waiting' : 'dead') : outcome.state
      const result = await db
        .updateTable('effects')
        .set({
          state,
          owner: null,
          error: 'error' in outcome ? outcome.error.slice(0, 2_000) : null,
          run_at: again ? soon(backOffMs(row.attempts)) : row.run_at,
          finished_at: again ? null : now,
        })
        .where('id', '=', row.id)
        .where('epoch', '=', row.epoch)
        .where('state', '=', 'running')
        .executeTakeFirst()
      return result.numUpdatedRows === 1n ? state : undefined
    },

    decide: async (id: string, decision: 'retry' | 'drop') => {
      const result = await db
        .updateTable('effects')
        .set({
          state: decision === 'retry' ? 'waiting' : 'dropped',
          attempts: 0,
          run_at: now,
          finished_at: decision === 'drop' ? now : null,
        })
        .where('id', '=', id)
        .where('state', 'in', ['dead', 'unknown'])
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },

    /** The leases of a process that is known to be gone. */
    expire: (owner: string | undefined) => {
      const running = db.updateTable('effects').set({ lease_until: 0 }).where('state', '=', 'running')
      return (owner === undefined ? running : running.where('owner', '=', owner)).execute()
    },

    /** What may be begun now, oldest first: nothing of a queue in which something is on lease. */
    due: async (limit: number) => {
      const found = await sql<{ id: string; queue: string | null }>`
        SELECT id, queue FROM effects AS e
        WHERE ((state = 'waiting' AND run_at <= ${now}) OR (state = 'running' AND lease_until < ${now}))
          AND (queue IS NULL OR NOT EXISTS (SELECT 1 FROM effects AS o WHERE o.queue = e.queue AND o.id <> e.id AND o.state = 'running' AND o.lease_until >= ${now}))
        ORDER BY run_at, id LIMIT ${limit}`.execute(db)
      return found.rows
    },

    /** How long until the next one is due; undefined when none waits. */
    nextInMs: async () => {
      const found = await sql<{
        ms: number | null
      }>`SELECT min(run_at) - ${now} AS ms FROM effects WHERE state = 'waiting' AND run_at > ${now}`.execute(db)
      return found.rows[0]?.ms ?? undefined
    },
  }
}
