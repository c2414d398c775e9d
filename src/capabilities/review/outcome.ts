import type { Refusal } from '../../kernel/error.ts'
import type { Reading, RunContext } from '../../kernel/tool.ts'
import { lineRef, type MergeRow, type MovedMerge, placesOf, printed } from '../merge/index.ts'
import { handleOf, type TaskRow } from '../task/index.ts'
import { back, checkMayDecide } from './rules.ts'
import { type ReviewRow, reviewStore } from './store.ts'

/** What became of an approval, told by its merge. */
export async function outcomeOf(ctx: RunContext, { merge, task }: MovedMerge): Promise<void> {
  await reviewStore(ctx.tx).update(merge.review_id, changesOf(merge))
  if (merge.state === 'conflict') await back(ctx, task, conflicted(merge, task))
  if (merge.state === 'red') await back(ctx, task, failed(merge, task))
}

function changesOf({ state, reason, built }: MergeRow): Partial<ReviewRow> {
  if (state === 'landed') return { outcome: 'merged', merge_commit: built, reason }
  if (state === 'conflict' || state === 'red') return { outcome: state, reason }
  if (state === 'stuck' || state === 'withdrawn') return { outcome: 'failed', reason }
  return { outcome: null, reason: null }
}

function conflicted({ target, files }: MergeRow, task: TaskRow) {
  const places = placesOf(JSON.parse(files) as string[])
  const body = `It was approved, but ${target} has changed the same places meanwhile: ${places}. Merge ${lineRef(target)} into your branch, resolve these files, commit, and ask for review again.`
  return { from: 'system', subject: `Conflict: ${handleOf(task)}`, body }
}

function failed({ target, reason, log }: MergeRow, task: TaskRow) {
  const body = `It was approved, but merged with ${target} the checks fail. ${reason} Merge ${lineRef(target)} into your branch, mend it, commit, and ask for review again. ${printed(log ?? '')}`
  return { from: 'system', subject: `Checks failed: ${handleOf(task)}`, body }
}

/** Another round has begun since. */
export async function hasNewerRound({ view }: Reading, { task_id, review_id }: MergeRow): Promise<boolean> {
  return (await reviewStore(view).latest([task_id]))[0]?.id !== review_id
}

export async function mayDecideAbout(ctx: RunContext, task: TaskRow, { review_id }: MergeRow): Promise<Refusal | undefined> {
  return checkMayDecide(ctx.principal, task, await reviewStore(ctx.tx).find(review_id))
}
