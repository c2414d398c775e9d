import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { sendLetter } from '../mail/index.ts'
import { prMerged, prStore, type ReviewRow, reviewStore } from '../review/index.ts'
import { about, handleOf, type TaskRow, taskStore, transition } from '../task/index.ts'
import { back } from './rules.ts'
import { reviewConflicted, reviewMerged, reviewStuck } from './schema.ts'

/** What the effect tells of a merge. Each is one transaction, and says the same when it is said again. */
const internal = { impact: 'write', profile: 'maintainer', internal: true, output: z.strictObject({}) } as const
const Told = z.strictObject({ review_id: z.string(), into: z.string() })

export const merged = defineTool({
  ...internal,
  name: 'review_merged',
  title: 'Approved work was merged',
  description: 'It is on the branch of its epic: the task is done, and the others there are told.',
  input: Told.extend({ commit: z.string(), moved: z.boolean() }),
  async run(ctx, { review_id, into, commit, moved }) {
    const { review, task } = await pending(ctx, review_id)
    if (!review) return {}
    const reason = moved ? null : `There was nothing to merge: ${into} has all of it already.`
    await reviewStore(ctx.tx).update(review.id, { outcome: 'merged', merge_commit: commit, reason })
    await mergePr(ctx, task, commit)
    if (task.status !== 'DONE' && task.deleted_at === null) await transition(ctx, task, 'DONE', null)
    const rebase_requests = moved ? await askToRebase(ctx, task, into) : 0
    ctx.emit(reviewMerged(aboutRound(task, review), { ...named(task, review), commit, into, rebase_requests }))
    return {}
  },
})

export const conflict = defineTool({
  ...internal,
  name: 'review_conflict',
  title: 'Approved work does not fit',
  description: 'Both sides have changed these files: it goes back to its worker.',
  input: Told.extend({ files: z.array(z.string()) }),
  async run(ctx, { review_id, into, files }) {
    const { review, task } = await pending(ctx, review_id)
    if (!review) return {}
    const reason = `It was approved, but ${into} has changed the same places meanwhile: ${files.join(', ')}. Merge ${into} into your branch, resolve these files, commit, and ask for review again.`
    await reviewStore(ctx.tx).update(review.id, { outcome: 'conflict', reason: `Conflicts in ${files.join(', ')}` })
    await back(ctx, task, { from: 'system', subject: `Conflict: ${handleOf(task)}`, body: reason })
    ctx.emit(reviewConflicted(aboutRound(task, review), { ...named(task, review), into, files }))
    return {}
  },
})

export const stuck = defineTool({
  ...internal,
  name: 'review_stuck',
  title: 'Approved work cannot be merged',
  description: 'Git will not do it, however often: whoever decides sees why, and can decide again.',
  input: Told.extend({ reason: z.string() }),
  async run(ctx, { review_id, into, reason }) {
    const { review, task } = await pending(ctx, review_id)
    if (!review) return {}
    await reviewStore(ctx.tx).update(review.id, { outcome: 'failed', reason })
    ctx.emit(reviewStuck(aboutRound(task, review), { ...named(task, review), into, reason }))
    return {}
  },
})

/** No review when it was told before. */
async function pending(ctx: RunContext, id: string): Promise<{ review: ReviewRow | undefined; task: TaskRow }> {
  const review = await reviewStore(ctx.tx).find(id)
  const task = review && (await taskStore(ctx.tx).find(review.task_id))
  if (!review || !task) throw refuse('RESOURCE_NOT_FOUND', `There is no review "${id}".`)
  return { review: review.outcome === null ? review : undefined, task }
}

async function mergePr(ctx: RunContext, task: TaskRow, commit: string): Promise<void> {
  const pr = await prStore(ctx.tx).ofTask(task.id)
  if (!pr) return
  await prStore(ctx.tx).update(pr.id, { state: 'MERGED', merge_commit: commit, merged_at: ctx.now, updated_at: ctx.now })
  ctx.emit(prMerged({ subject: pr.id, project: pr.project_id, task: pr.task_id }, { number: pr.number, commit }))
}

/** Those who have begun at the branch as it was: whoever is at work, or has handed in. */
async function askToRebase(ctx: RunContext, landed: TaskRow, into: string): Promise<number> {
  const others = await taskStore(ctx.tx).list(
    { epic: landed.epic_id as string, statuses: ['IN_PROGRESS', 'REVIEW'], exclude: [landed.id] },
    'number',
    undefined,
    500,
  )
  let sent = 0
  for (const task of others) {
    if (!task.assignee_id) continue
    const body = `${handleOf(landed)} (${landed.title}) was merged into ${into}. Your work on ${handleOf(task)} began before that: merge or rebase onto ${into} before you go on, so that nothing of it conflicts.`
    await sendLetter(ctx, { from: 'system', to: task.assignee_id, subject: 'Rebase Required', body, about: whereOf(task) })
    sent++
  }
  return sent
}

function whereOf({ project_id, epic_id, id: task_id }: TaskRow) {
  return { project_id, epic_id, task_id }
}

function aboutRound(task: TaskRow, review: ReviewRow) {
  return { ...about(task), subject: review.id }
}

function named(task: TaskRow, { round }: ReviewRow) {
  return { handle: handleOf(task), round }
}
