import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { wake as wakeAt } from '../mail/index.ts'
import { belongings } from '../project/index.ts'
import { attention, taskEpic } from '../task/index.ts'
import { epicAttention, handedInAttention } from './attention.ts'
import { finish } from './finish.ts'
import { migrations } from './migrations.ts'
import { watcher } from './reactor.ts'
import { reconcileEpic } from './reconcile.ts'
import { epicFacts } from './rules.ts'
import { EPIC_STATES, epicCreated, epicMoved, epicUpdated, workerStarted } from './schema.ts'
import { epicStore } from './store.ts'
import { create, epicsOf, get, list, update } from './tools.ts'
import { wake, wakeAgent, wakeUp } from './wake.ts'

export const epic = defineCapability({
  name: 'epic',
  tools: [list, get, create, update, finish, reconcileEpic, wakeUp],
  migrations,
  values: { epics: { state: EPIC_STATES, supervisor_launch: JSON_TEXT, worker_launch: JSON_TEXT } },
  events: [epicCreated, epicUpdated, epicMoved, workerStarted],
  effects: [wake],
  reactors: [watcher],
  answers: [
    answer(attention, handedInAttention, 'supervisor'),
    answer(attention, epicAttention, 'staffing'),
    answer(taskEpic, epicFacts),
    answer(belongings, epicsOf, 'epics'),
    answer(wakeAt, wakeAgent),
  ],
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
