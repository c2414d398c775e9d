import { defineCapability } from '../../kernel/capability.ts'
import { EFFECT_STATES } from '../../kernel/effect.ts'
import { answer } from '../../kernel/point.ts'
import { needs } from '../need/index.ts'
import { migrations } from './migrations.ts'
import { stuckEffects } from './needs.ts'
import { effectList } from './store.ts'
import { drop, effectDecided, effectStuck, list, retry } from './tools.ts'

/** The rows belong to whatever runs effects; this is how people see and decide about those that are stuck. */
export const effect = defineCapability({
  name: 'effect',
  tools: [list, retry, drop],
  migrations,
  values: { effects: { state: EFFECT_STATES } },
  events: [effectDecided, effectStuck],
  answers: [answer(needs, stuckEffects)],
  things: [
    {
      kind: 'effect',
      async find(tx, ref) {
        const row = await effectList(tx).find(ref)
        return row && { id: row.id, within: {} }
      },
    },
  ],
})

export { effectStuck }
