import type { EffectTables } from '../../db/effect-store.ts'
import { tables } from '../../db/tables.ts'
import { EFFECT_STATES, type EffectState } from '../../kernel/effect.ts'
import type { Tx } from '../../kernel/storage.ts'

export function effectList(view: Tx) {
  const db = tables<EffectTables>(view)
  return {
    find: (id: string) => db.selectFrom('effects').selectAll().where('id', '=', id).executeTakeFirst(),
    counts: async () => {
      const open = { waiting: 0, running: 0, dead: 0, unknown: 0 }
      const states = Object.keys(open) as (keyof typeof open)[]
      const found = await db
        .selectFrom('effects')
        .select((eb) => ['state', eb.fn.countAll<number>().as('n')])
        .where('state', 'in', states)
        .groupBy('state')
        .execute()
      for (const { state, n } of found) open[state as keyof typeof open] = Number(n)
      return open
    },
    /** Oldest first, by when they were given up. */
    stuckFrom: ({ since, id }: { since: number; id: string }, limit: number) =>
      db
        .selectFrom('effects')
        .selectAll()
        .where('state', 'in', ['dead', 'unknown'])
        .where((eb) => eb.or([eb('finished_at', '>', since), eb.and([eb('finished_at', '=', since), eb('id', '>', id)])]))
        .orderBy('finished_at')
        .orderBy('id')
        .limit(limit)
        .execute(),
    /** Also those in a state that nobody knows: no other list has them. */
    list: (states: EffectState[], before: string | undefined, limit: number) => {
      const newest = db
        .selectFrom('effects')
        .selectAll()
        .where((eb) => eb.or([eb('state', 'in', states), eb('state', 'not in', [...EFFECT_STATES])]))
        .orderBy('id', 'desc')
        .limit(limit)
      return (before ? newest.where('id', '<', before) : newest).execute()
    },
  }
}
