import { definePoint } from '../../kernel/point.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { RunContext } from '../../kernel/tool.ts'
import { isLiving } from './schema.ts'
import { jobStore, type RunRow, runStore } from './store.ts'

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
  return { presence: (await jobStore(view).openOf(run.task_id)) ? 'coming' : 'idle', run }
}

/** What others have to do in the transaction in which an agent begins to run, or has become idle. */
export const presenceChanges = definePoint.all<(ctx: RunContext, agent: string) => Promise<void>>('job.presence')

export async function presenceChanged(ctx: RunContext, { agent_id }: RunRow): Promise<void> {
  if (agent_id !== null) await ctx.ask(presenceChanges, agent_id)
}
