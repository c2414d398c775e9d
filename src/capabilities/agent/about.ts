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
  /** What `signalbox attach` shows: a terminal of its own, or the view of its run. */
  session: string | null
}

type AgentSource = (view: Tx, agents: AgentRow[]) => Promise<Map<string, AgentFacts>>

type TerminalSource = (view: Tx, agent: string) => Promise<string | undefined>

let source: AgentSource | undefined
let terminals: TerminalSource | undefined

/** Said once, where the capabilities are put together: an identity knows nobody who runs it. */
export function askAboutAgents(who: AgentSource): void {
  source = who
}

export function askForTerminals(nameOf: TerminalSource): void {
  terminals = nameOf
}

/** Its own terminal comes first: that is where it can be typed to. */
export async function sessionOf(view: Tx, agent: AgentRow, facts: AgentFacts): Promise<string | null> {
  return (await terminals?.(view, agent.id)) ?? facts.session
}

const NOTHING: AgentFacts = { state: undefined, managed: false, worktree: null, branch: null, session: null }

export async function factsOf(view: Tx, agents: AgentRow[]): Promise<(agent: AgentRow) => AgentFacts> {
  const known = await source?.(view, agents)
  return ({ id }) => known?.get(id) ?? NOTHING
}
