import { defineCapability } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { mergeMoves, overtaken } from '../merge/index.ts'
import { givenUp, roundBegins } from '../review/index.ts'
import { taskEnds } from '../task/index.ts'
import { workPullRequests } from '../work/index.ts'
import { createPr } from './create.ts'
import { askToRebase } from './overtaken.ts'
import { closePr, mergePr, openPr, pullRequestsOf } from './pull-requests.ts'
import { PrView, prClosed, prMerged, prOpened } from './schema.ts'
import { prStore } from './store.ts'
import { getPr } from './tools.ts'

/** The records of work that is to be merged: of a task, with its rounds; of an epic, when it is handed in. */
export const pr = defineCapability({
  name: 'pr',
  tools: [getPr, createPr],
  values: { pull_requests: { state: PrView.shape.state.options } },
  events: [prOpened, prMerged, prClosed],
  answers: [
    answer(roundBegins, async (ctx, task, round) => void (await openPr(ctx, task, round))),
    answer(givenUp, closePr),
    answer(taskEnds, (ctx, task) => closePr(ctx, task, task.closed_reason ?? 'Its task is gone.')),
    answer(mergeMoves, mergePr),
    answer(overtaken, askToRebase),
    answer(workPullRequests, pullRequestsOf),
  ],
  things: [
    {
      kind: 'pr',
      async find(tx, ref) {
        const row = await prStore(tx).find(ref)
        if (!row) return undefined
        const { id, project_id, task_id, epic_id } = row
        return { id, within: { project: project_id, ...(task_id ? { task: task_id } : {}), ...(epic_id ? { epic: epic_id } : {}) } }
      },
    },
  ],
})

export { endEpicPr, lastMergedInto, openEpicPr, prOfEpic, prUrl } from './pull-requests.ts'
export type { PrRow } from './store.ts'
