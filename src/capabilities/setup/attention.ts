import type { AttentionSource } from '../task/index.ts'
import { setupStore } from './store.ts'

/** What keeps an agent from beginning. */
export const setupAttention: AttentionSource = async ({ view }, tasks) => {
  const running = await setupStore(view).running(tasks.filter(({ status }) => status === 'IN_PROGRESS').map(({ id }) => id))
  return new Map(
    running.map(({ task_id, command }) => [
      task_id,
      {
        attention: 'running' as const,
        detail: command ? `Its worktree is being set up: ${command}` : 'Files are copied into its worktree.',
      },
    ]),
  )
}
