import type { AttentionSource } from '../task/index.ts'
import { mergeStore } from './store.ts'

/** Of work in a line: that it is being merged, or why nothing lands there. */
export const lineAttention: AttentionSource = async ({ view }, tasks) => {
  const told: Awaited<ReturnType<AttentionSource>> = new Map()
  const store = mergeStore(view)
  const approved = tasks.filter(({ status }) => status === 'REVIEW').map(({ id }) => id)
  for (const { task_id, repo_id, target } of await store.openOf(approved)) {
    const held = (await store.line(repo_id, target))?.held
    told.set(task_id, held ? { attention: 'human', detail: held } : { attention: 'merge', detail: null })
  }
  return told
}
