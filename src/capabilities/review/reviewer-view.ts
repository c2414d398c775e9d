import { z } from 'zod'
import type { Tx } from '../../kernel/storage.ts'
import type { WatchContext } from '../../kernel/tool.ts'
import { agentStore } from '../agent/index.ts'
import { jobEnded, jobStore } from '../job/index.ts'
import { runStarted } from '../run/index.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { watchUntil } from '../until.ts'
import { workOf, workPlan, worktreePath } from '../work/index.ts'
import { reviewAbandoned, reviewDecided, reviewerEnded, reviewerStarted, reviewTimedOut } from './schema.ts'
import { type ReviewRow, reviewStore } from './store.ts'
import '../../ports/git.ts'

/** Shorter than an agent that has asked for review gets to end by itself: it is to hear the answer. */
const STARTING_MS = 15_000

/**
 * | state    | means                                                             |
 * |----------|-------------------------------------------------------------------|
 * | starting | its worktree and process are being made, or it waits for a place  |
 * | running  | it reads                                                          |
 * | ended    | it is over: `reason` says why, where it could not begin           |
 */
const REVIEWER_STATES = ['starting', 'running', 'ended'] as const

export const ReviewerView = z.strictObject({
  agent_id: z.string(),
  handle: z.string(),
  task_id: z.string(),
  session_name: z.string().describe('What `signalbox attach` shows of it'),
  worktree_path: z.string().describe('Where it reads; while it is starting, where it will'),
  harness: z.string().nullable().describe('The agent program that reads; null before it is there'),
  state: z.enum(REVIEWER_STATES),
  reason: z.string().nullable(),
})

type ReviewerFacts = Omit<z.output<typeof ReviewerView>, 'worktree_path'>

/** After any of these a reviewer may be there, or is not coming any more. */
const NEWS = [reviewerStarted, reviewerEnded, reviewAbandoned, reviewDecided, reviewTimedOut, runStarted, jobEnded]

export async function reviewerThere(ctx: WatchContext, round: ReviewRow): Promise<z.output<typeof ReviewerView> | null> {
  let reviewer: ReviewerFacts | undefined
  const look = async () => {
    const now = await reviewStore(ctx.view).find(round.id)
    reviewer = now && (await factsOf(ctx.view, now))
    const undecided = now?.decision === null
    return undecided && (!reviewer || reviewer.state === 'starting') ? undefined : true
  }
  await watchUntil(ctx, { about: { project: round.project_id }, types: NEWS, withinMs: STARTING_MS, look })
  return reviewer ? { ...reviewer, worktree_path: await pathOf(ctx, reviewer.task_id) } : null
}

/** Who reads the round; undefined before anybody was named for it. */
async function factsOf(view: Tx, { reviewer_task_id }: ReviewRow): Promise<ReviewerFacts | undefined> {
  const hidden = reviewer_task_id ? await taskStore(view).find(reviewer_task_id) : undefined
  if (!hidden) return undefined
  const [job] = await jobStore(view).latest([hidden.id])
  // One that is over has the task no more.
  const agentId = hidden.assignee_id ?? job?.agent_id
  const agent = agentId ? await agentStore(view).agent(agentId) : undefined
  if (!agent) return undefined
  const over = hidden.status === 'DONE' || (job?.ended_at ?? null) !== null
  const state = over ? 'ended' : job?.run_state === 'running' ? 'running' : 'starting'
  const reason = state === 'running' ? null : (job?.reason ?? hidden.closed_reason)
  return {
    agent_id: agent.id,
    handle: agent.handle,
    task_id: hidden.id,
    session_name: handleOf(hidden),
    harness: job?.harness ?? null,
    state,
    reason,
  }
}

async function pathOf(ctx: WatchContext, task: string): Promise<string> {
  const work = await workOf(ctx.view, task)
  if (!work) throw new Error(`the reviewer on ${task} has no work`)
  return worktreePath(ctx.ports.git, await workPlan(ctx, work))
}
