import type { AttentionSource } from '../task/index.ts'
import { stateOf } from './queue.ts'
import { isCurrent } from './rules.ts'
import { reviewStore } from './store.ts'

/** Of work that was approved and could not be merged. */
export const reviewAttention: AttentionSource = async ({ view }, tasks) => {
  const told: Awaited<ReturnType<AttentionSource>> = new Map()
  const handedIn = tasks.filter(({ status, lead }) => status === 'REVIEW' && !lead)
  for (const round of await reviewStore(view).latest(handedIn.map(({ id }) => id)))
    if (isCurrent(round) && stateOf(round) === 'stuck')
      told.set(round.task_id, { attention: 'human', detail: `It was approved, but not merged: ${round.reason}` })
  return told
}
