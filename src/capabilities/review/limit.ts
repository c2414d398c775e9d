import { type Refusal, refuse } from '../../kernel/error.ts'
import type { RunContext } from '../../kernel/tool.ts'
import { agentStore } from '../agent/index.ts'
import { handleOf, type TaskRow } from '../task/index.ts'
import { reviewRefused } from './schema.ts'
import { type ReviewRow, reviewStore } from './store.ts'

export interface Tally {
  /** Rounds that were used: sent back, timed out or never decided. One that was approved and came back is none of the reviewer's. */
  used: number
  /** Those of them that ended badly. */
  failed: number
  /** Further rounds that were asked for, and refused. */
  refused: number
}

/** Of a task, whoever worked on it. Work that was given up begins anew; what is for a person is none of the reviewers' rounds. */
export function tally(rounds: ReviewRow[]): Tally {
  const since = rounds.slice(rounds.findLastIndex(({ abandoned_at }) => abandoned_at !== null) + 1)
  const ofReviewers = since.filter(({ reader }) => reader !== 'human')
  return {
    used: ofReviewers.filter(({ decision }) => decision !== 'approve').length,
    failed: ofReviewers.filter(({ decision }) => decision === 'request_changes' || decision === 'timed_out').length,
    refused: since.reduce((sum, { refused }) => sum + refused, 0),
  }
}

/** What can be done when the rounds are used up, in the order in which it is offered. */
export const SUGGESTIONS = [
  'Create pull request with current work',
  'Abandon this approach and try different solution',
  'Manually review and fix issues before requesting review',
]

/** For whoever looks at it: null as long as there is another round. */
export function limitOf(ctx: { setting<T>(key: string): T }, rounds: ReviewRow[]) {
  const most = ctx.setting<number>('review.max_iterations')
  const { used, refused } = tally(rounds)
  return used < most ? null : { current_iteration: used, max_iterations: most, refused, suggestions: SUGGESTIONS }
}

export function isAtLimit(ctx: RunContext, rounds: ReviewRow[]): boolean {
  return limitOf(ctx, rounds) !== null
}

/** Counted where it is refused: returned, not thrown, so that the count stays. */
export async function overLimit(ctx: RunContext, task: TaskRow, rounds: ReviewRow[], by: string): Promise<Refusal | undefined> {
  const most = ctx.setting<number>('review.max_iterations')
  const { used, refused } = tally(rounds)
  const last = rounds.at(-1)
  if (!last || !isAtLimit(ctx, rounds)) return undefined
  await reviewStore(ctx.tx).update(last.id, { refused: last.refused + 1 })
  const about = { subject: last.id, project: task.project_id, task: task.id }
  ctx.emit(reviewRefused(about, { handle: handleOf(task), round: last.round, refused: refused + 1, requested_by: by }))
  const agent = (await agentStore(ctx.tx).agent(by))?.handle ?? ctx.principal.handle
  return refuse('REVIEW_LIMIT_EXCEEDED', `Maximum review iterations (${most}) reached for agent ${agent}`, {
    hint: 'Consider creating PR or abandoning.',
    suggestions: SUGGESTIONS,
    details: { current_iteration: used, max_iterations: most },
  })
}
