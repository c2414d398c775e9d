import type { z } from 'zod'
import { definePoint } from '../../kernel/point.ts'
import type { Reading } from '../../kernel/tool.ts'
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

type AgentSource = (ctx: Reading, agents: AgentRow[]) => Promise<Map<string, AgentFacts>>
type TerminalSource = (ctx: Reading, agent: string) => Promise<string | undefined>

/** An identity knows nobody who runs it. */
export const agentFacts = definePoint.one<AgentSource>('agent.facts', async () => new Map())
export const agentTerminal = definePoint.one<TerminalSource>('agent.terminal', async () => undefined)

/** Its own terminal comes first: that is where it can be typed to. */
export async function sessionOf(ctx: Reading, agent: AgentRow, facts: AgentFacts): Promise<string | null> {
  return (await ctx.ask(agentTerminal, agent.id)) ?? facts.session
}

const NOTHING: AgentFacts = { state: undefined, managed: false, worktree: null, branch: null, session: null }

export async function factsOf(ctx: Reading, agents: AgentRow[]): Promise<(agent: AgentRow) => AgentFacts> {
  const known = await ctx.ask(agentFacts, agents)
  return ({ id }) => known.get(id) ?? NOTHING
}
