import { z } from 'zod'
import type { Refusal } from '../../kernel/error.ts'
import type { EventType } from '../../kernel/event.ts'
import { definePoint } from '../../kernel/point.ts'
import type { LookContext, Reading, WatchContext } from '../../kernel/tool.ts'
import type { Harness } from '../../ports/harness.ts'
import { programFor } from '../programs.ts'
import { watchUntil } from '../until.ts'
import { workOf, workPlan, worktreePath } from '../work/index.ts'
import { reviewTimedOut } from './schema.ts'
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

export type ReviewerFacts = Omit<z.output<typeof ReviewerView>, 'worktree_path'>
type Source = (ctx: Reading, round: ReviewRow) => Promise<ReviewerFacts | undefined>

/** Whoever starts reviewers knows them; handing in does not. */
export const roundReviewer = definePoint.one<Source>('review.reviewer', async () => undefined)

/** After any of these a reviewer may be there, or is not coming any more. */
export const reviewerNews = definePoint.all<() => Promise<EventType[]>>('review.reviewer_news')

/** Where none is set for reviews, a reviewer that somebody asks for is as every other agent. */
export function readerProgram(ctx: LookContext): Promise<Harness | Refusal> {
  return programFor(ctx, ctx.setting<string>('review.harness') || undefined)
}

export async function reviewerThere(ctx: WatchContext, round: ReviewRow): Promise<z.output<typeof ReviewerView> | null> {
  let reviewer: ReviewerFacts | undefined
  const look = async () => {
    reviewer = await ctx.ask(roundReviewer, round)
    const undecided = (await reviewStore(ctx.view).find(round.id))?.decision === null
    return undecided && (!reviewer || reviewer.state === 'starting') ? undefined : true
  }
  const news = (await ctx.ask(reviewerNews)).flat()
  const types = [...news, reviewTimedOut]
  await watchUntil(ctx, { about: { project: round.project_id }, types, withinMs: STARTING_MS, look })
  return reviewer ? { ...reviewer, worktree_path: await pathOf(ctx, reviewer.task_id) } : null
}

async function pathOf(ctx: WatchContext, task: string): Promise<string> {
  const work = await workOf(ctx.view, task)
  if (!work) throw new Error(`the reviewer on ${task} has no work`)
  return worktreePath(ctx.ports.git, await workPlan(ctx, work))
}
