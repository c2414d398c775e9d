import { defineCapability } from '../../kernel/capability.ts'
import type { Tx } from '../../kernel/storage.ts'
import { migrations } from './migrations.ts'
import { getPr, prMerged, prOpened } from './pull-requests.ts'
import { prStore, reviewStore } from './store.ts'
import { list, request, reviewRequested } from './tools.ts'

export const review = defineCapability({
  name: 'review',
  tools: [request, list, getPr],
  migrations,
  events: [reviewRequested, prOpened, prMerged],
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

/** All rounds of a task, oldest first. */
export const reviewsOf = (tx: Tx, task: string) => reviewStore(tx).ofTask(task)

export { closePrOf, insertPr, PrView, prMerged, prUrl, prView, pullRequestOf } from './pull-requests.ts'
export { type PrRow, prStore, type ReviewRow, reviewStore } from './store.ts'
export { requestReview, reviewRequested, UNDECIDED } from './tools.ts'
