import { defineCapability, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { belongings } from '../project/index.ts'
import { whereabouts } from '../task/index.ts'
import { workInRepo } from './belongings.ts'
import { removeWork, undoWork } from './effects.ts'
import { migrations } from './migrations.ts'
import { failed, made, removed, restored } from './reports.ts'
import { Strategy, WORK_STATES, workFailed, workMade, workRemoved, workRescued, workRestored } from './schema.ts'
import { workStore } from './store.ts'
import { collect, diff, get, list, listRescues, readFile, undo } from './tools.ts'

export const work = defineCapability({
  name: 'work',
  tools: [diff, readFile, get, list, listRescues, undo, collect, made, removed, restored, failed],
  migrations,
  values: { works: { state: WORK_STATES, strategy: Strategy.options } },
  events: [workMade, workRemoved, workRescued, workRestored, workFailed],
  effects: [removeWork, undoWork],
  answers: [answer(belongings, workInRepo, 'work')],
  settings: {
    'general.worktree_base_ref_strategy': setting(
      Strategy,
      'local_if_ahead',
      'Where work begins: at the branch of the remote as last fetched, at the local one, or at the local one when it has all of the remote one',
    ),
  },
  things: [
    {
      kind: 'work',
      async find(tx, ref) {
        const row = await workStore(tx).find(ref)
        return row && { id: row.id, within: await whereabouts(tx, row) }
      },
    },
  ],
})

export { makeWorktree, takeAway } from './effects.ts'
export { handedIn } from './handed-in.ts'
export { lineBegins, lineHead } from './line.ts'
export { isOurs, nameOf } from './names.ts'
export {
  aimAt,
  beginsAt,
  Elsewhere,
  madeElsewhere,
  placeOf,
  planWork,
  requireRepoThere,
  wasWorkedIn,
  workOf,
  workPlan,
  worksOf,
  worktreePath,
} from './plan.ts'
export { workPullRequests } from './pull-requests.ts'
export { checkMayReadFiles, inUse, type KeepReason, removal, requireFree } from './rules.ts'
export { WorkPlan, workFailed, workMade, workRemoved } from './schema.ts'
export { type WorkRow, workStore } from './store.ts'
