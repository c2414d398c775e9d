import type { RunContext } from '../../kernel/tool.ts'
import { type AgentRow, agentStore } from './store.ts'

type Ctx = Pick<RunContext, 'tx' | 'now'>

/** Whether Signalbox is to keep it at work. */
export async function wantAgent({ tx, now }: Ctx, agent: string, desired: AgentRow['desired']): Promise<void> {
  await agentStore(tx).want(agent, desired, now)
}

/** Where it may act from now on: on this task, in its project and epic. */
export async function bindToTask(
  { tx, now }: Ctx,
  agent: string,
  to: { project_id: string; task_id: string; epic_id: string | null },
): Promise<void> {
  await agentStore(tx).bind(agent, to, now)
}

/** Whoever has this task has none from now on. */
export async function freeFromTask({ tx, now }: Ctx, task: string): Promise<void> {
  await agentStore(tx).unbindTask(task, now)
}

/** The epic that it leads or works in from now on; null: none. */
export async function bindToEpic(
  { tx, now }: Ctx,
  agent: string,
  to: { project_id: string | null; epic_id: string | null },
): Promise<void> {
  await agentStore(tx).bindEpic(agent, to, now)
}
