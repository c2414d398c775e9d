import type { Tx } from '../../kernel/storage.ts'
import { reviewStore } from '../review/index.ts'
import { type AttentionSource, epicOf } from '../task/index.ts'
import { stateOf } from './queue.ts'
import { isCurrent } from './rules.ts'
import { mergeStore } from './store.ts'

/** Of work that was handed in: who decides about it, or that it is being merged, or why not. */
export const reviewAttention: AttentionSource = async (ctx, tasks) => {
  const { view } = ctx
  const told: Awaited<ReturnType<AttentionSource>> = new Map()
  const handedIn = tasks.filter(({ status, lead }) => status === 'REVIEW' && !lead)
  const rounds = await reviewStore(view).latest(handedIn.map(({ id }) => id))
  for (const task of handedIn) {
    const last = rounds.find(({ task_id }) => task_id === task.id)
    const round = isCurrent(last) ? last : undefined
    const state = stateOf(round)
    if (state === 'merging') told.set(task.id, await merging(view, task.id))
    else if (state === 'stuck') told.set(task.id, { attention: 'human', detail: `It was approved, but not merged: ${round?.reason}` })
    else if ((await epicOf(ctx, task))?.supervisor_id) told.set(task.id, { attention: 'reviewer', detail: null })
  }
  return told
}

async function merging(view: Tx, task: string) {
  const store = mergeStore(view)
  const merge = await store.lastOf(task)
  const held = merge && (await store.line(merge.repo_id, merge.target))?.held
  return held ? { attention: 'human' as const, detail: held } : { attention: 'merge' as const, detail: null }
}
