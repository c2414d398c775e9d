import type { EffectContext } from '../../kernel/effect.ts'
import { definePoint } from '../../kernel/point.ts'
import type { ReactorContext } from '../../kernel/reactor.ts'
import type { Reading, RunContext } from '../../kernel/tool.ts'
import type { RunRow } from './store.ts'

/**
 * A run has an owner: a job, or whatever else starts agents. Each point is answered by it for its own runs alone (`ofOwner`), and by
 * nobody for others.
 */
export function ofOwner<C, R extends { owner_kind: string }, Q extends unknown[], A>(
  kind: string,
  answering: (ctx: C, run: R, ...question: Q) => Promise<A>,
) {
  return async (ctx: C, run: R, ...question: Q): Promise<A | undefined> =>
    run.owner_kind === kind ? answering(ctx, run, ...question) : undefined
}

export interface Place {
  cwd: string
  /** The repository whose objects it writes to; null: none. */
  repo: string | null
  env: Record<string, string>
  /** Why a script in the description of its task must not be run. */
  noScript: string | null
  /** What its agent is told. Asked once it is clear that it begins. */
  brief(): Promise<string>
}

/** Where it takes place. `later`: its owner asks for it again (`launching`). A problem is the end of the run. */
export const runPlace = definePoint.first<(ctx: EffectContext, run: RunRow) => Promise<Place | 'later' | { problem: string } | undefined>>(
  'run.place',
  async () => undefined,
)

export interface Message {
  id: string
  kind: 'message' | 'interrupt'
  text: string
  /** The program takes none, or none now. */
  unheard(reason: string): Promise<void>
}

/** What it is to be told, oldest first. */
export const runMessages = definePoint.first<(ctx: ReactorContext, run: RunRow) => Promise<Message[] | undefined>>(
  'run.messages',
  async () => [],
)
export const messageArrived = definePoint.all<(ctx: RunContext, run: RunRow, message: string) => Promise<void>>('run.message_arrived')

/** Its turn was interrupted, or goes on. */
export const runPauses = definePoint.all<(ctx: RunContext, run: RunRow) => Promise<void>>('run.pauses')
/** Nothing of it lives any more. Its owner decides what comes next. */
export const runEnds = definePoint.all<(ctx: RunContext, run: RunRow) => Promise<void>>('run.ends')

/** What others have to do in the transaction in which an agent begins to run, or has become idle. */
export const presenceChanges = definePoint.all<(ctx: RunContext, agent: string) => Promise<void>>('run.presence')

export async function presenceChanged(ctx: RunContext, { agent_id }: Pick<RunRow, 'agent_id'>): Promise<void> {
  if (agent_id !== null) await ctx.ask(presenceChanges, agent_id)
}

export interface QuotaWait {
  harness: string
  model: string | null
  resets_at: number
  jobs: number
  message: string | null
}

/** Who waits because a provider gives no more. */
export const quotaWaits = definePoint.all<(ctx: Reading, now: number) => Promise<QuotaWait[]>>('run.quota_waits')
