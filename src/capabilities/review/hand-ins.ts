import { Refusal, refuse } from '../../kernel/error.ts'
import type { Reading, RunContext } from '../../kernel/tool.ts'
import type { HandIn } from '../job/index.ts'
import { handleOf, type TaskRow } from '../task/index.ts'
import { beingMerged, isBeingMerged } from './rules.ts'
import { reviewStore } from './store.ts'
import { requestReview } from './tools.ts'

// What those who start and end agents ask about rounds.

export async function handInsOf({ view }: Reading, task: string): Promise<HandIn[]> {
  return reviewStore(view).ofTask(task)
}

export async function handInFor(ctx: RunContext, task: TaskRow, what: { summary: string; requested_by: string }): Promise<boolean> {
  return !((await requestReview(ctx, task, what)) instanceof Refusal)
}

export async function whyWaiting({ view }: Reading, task: TaskRow): Promise<Refusal> {
  const [last] = await reviewStore(view).latest([task.id])
  if (isBeingMerged(last)) return beingMerged(task)
  return refuse('INVALID_TRANSITION', `${handleOf(task)} waits for review.`, {
    hint: 'Approve it or send it back with review_decide: sent back, its agent goes on with it. To begin anew, give it up with review_abandon first.',
    next_tool: 'review_decide',
    next_arguments: { task_id: handleOf(task), decision: 'request_changes', feedback: '…' },
  })
}
