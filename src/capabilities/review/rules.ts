import { type Refusal, refuse } from '../../kernel/error.ts'
import { handleOf, type TaskRow } from '../task/index.ts'
import type { ReviewRow } from './store.ts'

/** Approved, and neither landed nor sent back yet. */
export function isBeingMerged(round: ReviewRow | undefined): boolean {
  return round?.decision === 'approve' && round.outcome === null
}

export function beingMerged(task: TaskRow): Refusal {
  return refuse('CONFLICT', `${handleOf(task)} was approved, and is being merged.`, {
    hint: 'Take it out of the merge line first, or write another task for what is missing.',
    next_tool: 'merge_cancel',
    next_arguments: { task_id: handleOf(task) },
  })
}
