import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { finish } from './finish.ts'
import { migrations } from './migrations.ts'
import { watcher } from './reactor.ts'
import { reconcileEpic } from './reconcile.ts'
import { EPIC_STATES, epicCreated, epicMoved, epicUpdated, workerStarted } from './schema.ts'
import { epicStore } from './store.ts'
import { create, get, list, update } from './tools.ts'
import { wake, wakeUp } from './wake.ts'

export const epic = defineCapability({
  name: 'epic',
  tools: [list, get, create, update, finish, reconcileEpic, wakeUp],
  migrations,
  values: { epics: { state: EPIC_STATES, supervisor_launch: JSON_TEXT, worker_launch: JSON_TEXT } },
  events: [epicCreated, epicUpdated, epicMoved, workerStarted],
  effects: [wake],
  reactors: [watcher],
  settings: {
    'epics.max_workers': setting(z.int().min(1).max(100), 4, 'How many tasks of a new epic are worked on at a time'),
  },
  things: [
    {
      kind: 'epic',
      async find(tx, ref) {
        const row = await epicStore(tx).find(ref)
        return row && { id: row.id, within: { project: row.project_id, epic: row.id } }
      },
    },
  ],
  resources: [
    { uri: 'signalbox://epic/{id}', name: 'epic', description: 'One epic, by id or handle', tool: 'epic_get', argument: 'epic_id' },
  ],
})

export { epicAttention, leftAttention } from './attention.ts'
export { epicFacts } from './rules.ts'
export { epicsOf } from './tools.ts'
export { wakeAgent } from './wake.ts'
