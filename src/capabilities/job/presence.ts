import type { Tx } from '../../kernel/storage.ts'
import { isLiving, type RunRow, runStore } from '../run/index.ts'
import { jobStore } from './store.ts'

/**
 * | presence | means                                                        |
 * |----------|--------------------------------------------------------------|
 * | running  | its process is there                                         |
 * | coming   | its process is being made, or will be made again by its job  |
 * | idle     | it has run, and nothing will make it run again by itself     |
 *
 * An agent that has never run is somebody's own: it is not ours to start.
 */
export type Presence = 'running' | 'coming' | 'idle'

export async function presenceOf(view: Tx, agent: string): Promise<{ presence: Presence; run: RunRow } | undefined> {
  const run = await runStore(view).lastOfAgent(agent)
  if (!run) return undefined
  if (isLiving(run)) return { presence: run.state === 'running' ? 'running' : 'coming', run }
  const open = run.task_id === null ? undefined : await jobStore(view).openOf(run.task_id)
  return { presence: open ? 'coming' : 'idle', run }
}
