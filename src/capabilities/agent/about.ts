import type { z } from 'zod'
import type { Tx } from '../../kernel/storage.ts'
import type { AgentState } from './schema.ts'
import type { AgentRow } from './store.ts'

/** What those who run agents know of one. */
export interface AgentFacts {
  /** Undefined when it follows from its tokens alone. */
  state: z.output<typeof AgentState> | undefined
  managed: boolean
  worktree: string | null
  branch: string | null
}

type AgentSource = (view: Tx, agents: AgentRow[]) => Promise<Map<string, AgentFacts>>

let source: AgentSource | undefined

/** Said once, where the capabilities are put together: an identity knows nobody who runs it. */
export function askAboutAgents(who: AgentSource): void {
  source = who
}

const NOTHING: AgentFacts = { state: undefined, managed: false, worktree: null, branch: null }

export async function factsOf(view: Tx, agents: AgentRow[]): Promise<(agent: AgentRow) => AgentFacts> {
  const known = await source?.(view, agents)
  return ({ id }) => known?.get(id) ?? NOTHING
}
