import { Refusal } from '../../kernel/error.ts'
import type { LookContext, RunContext } from '../../kernel/tool.ts'
import type { Harness } from '../../ports/harness.ts'
import { createAgent } from '../agent/index.ts'
import { beginWork, cancelJob, jobStore, letEnd } from '../job/index.ts'
import { programFor } from '../programs.ts'
import { runStore } from '../run/index.ts'
import { about, createTask, giveTo, handleOf, type TaskRow, taskStore, transition } from '../task/index.ts'
import { takeAway, type WorkRow, workOf } from '../work/index.ts'
import { reviewerEnded, reviewerStarted } from './schema.ts'
import { feedbackStore, type ReviewRow, reviewStore } from './store.ts'

const LONGEST_TITLE = 200
const OVER = 'The review is over.'

/** Where none is set for reviews, a reviewer that somebody asks for is as every other agent. */
export function readerProgram(ctx: LookContext): Promise<Harness | Refusal> {
  return programFor(ctx, ctx.setting<string>('review.harness') || undefined)
}

/** Its run needs a task, as that of an epic's supervisor does: one on no list, that begins at what was handed in and ends with the round. */
export async function startReviewer(ctx: RunContext, task: TaskRow, round: ReviewRow, asked: string | undefined): Promise<void> {
  const harness = ctx.setting<string>('review.harness') || asked
  const work = await workOf(ctx.tx, task.id)
  // What nobody has made a worktree of cannot be forked.
  if (!harness || round.reader === 'human' || !work?.base_commit || (await feedbackStore(ctx.tx).sendingOf(task.id))) return
  const reviewer = await createAgent(ctx, { role: 'reviewer', project_id: task.project_id })
  const hidden = await createTask(ctx, task.project_id, {
    title: `Review ${handleOf(task)}: ${task.title}`.slice(0, LONGEST_TITLE),
    description: descriptionOf(task, round, work),
    task_type: 'AUTO',
    priority: 'high',
    acceptance_criteria: JSON.parse(task.acceptance_criteria) as string[],
    blocked_by: [],
    base_branch: round.handed_in ?? `refs/heads/${work.branch}`,
    reviews_task_id: task.id,
  })
  const given = await giveTo(ctx, hidden, reviewer)
  await reviewStore(ctx.tx).update(round.id, { reviewer_task_id: hidden.id })
  const model = ctx.setting<string>('review.model') || undefined
  const begun = await beginWork(ctx, given, { harness, repo_id: work.repo_id, ...(model ? { model } : {}) })
  if (begun instanceof Refusal) return end(ctx, task, round, given, begun.body.message)
  const told = { handle: handleOf(task), round: round.round, agent_id: reviewer.id, reviewer: reviewer.handle, reviewer_task_id: hidden.id }
  ctx.emit(reviewerStarted({ ...about(task), subject: round.id }, told))
}

/** Those whose round is over. One that has just answered gets a moment to end by itself. */
export async function endReviewers(ctx: RunContext, task: TaskRow, rounds: ReviewRow[]): Promise<void> {
  const last = rounds.at(-1)
  const reads = task.status === 'REVIEW' && task.deleted_at === null && last?.decision === null ? last.reviewer_task_id : undefined
  for (const hidden of await taskStore(ctx.tx).reviewersOf(task.id)) {
    if (hidden.id === reads || hidden.status === 'DONE' || hidden.deleted_at !== null) continue
    const round = rounds.find(({ reviewer_task_id }) => reviewer_task_id === hidden.id)
    const job = await jobStore(ctx.tx).openOf(hidden.id)
    const run = await runStore(ctx.tx).livingOf(hidden.id)
    // It waits for what becomes of its own approval.
    if (run && last?.decision === 'approve' && last.outcome === null && last.decided_by === hidden.assignee_id) continue
    if (run) await letEnd(ctx, hidden.id)
    else if (job?.state === 'queued') await cancelJob(ctx, job, OVER)
    else if (!job && round) await end(ctx, task, round, hidden, OVER)
  }
}

async function end(ctx: RunContext, task: TaskRow, round: ReviewRow, hidden: TaskRow, reason: string): Promise<void> {
  const now = (await taskStore(ctx.tx).find(hidden.id)) as TaskRow
  await transition(ctx, now, 'DONE', reason)
  const work = await workOf(ctx.tx, hidden.id)
  if (work?.state === 'made') await takeAway(ctx, work)
  const told = { handle: handleOf(task), round: round.round, reviewer_task_id: hidden.id, reason }
  ctx.emit(reviewerEnded({ ...about(task), subject: round.id }, told))
}

/** All of it was written by others, and is fenced where its reviewer is told of it. */
function descriptionOf(task: TaskRow, round: ReviewRow, work: WorkRow): string {
  const asked = round.reviewer_prompt ? [`Its worker asks you to look at this in particular:\n\n${round.reviewer_prompt}`] : []
  const told = [
    `Round ${round.round} of ${handleOf(task)}, on the branch ${work.branch}, to be merged into ${work.base_branch}.`,
    ...asked,
    `What its worker says of it:\n\n${round.summary}`,
    `What the task was: ${task.title}`,
    task.description,
  ]
  // A script is a program: that of the worker is not for its reviewer, and least of all one that the worker wrote itself.
  const plain = told
    .filter(Boolean)
    .join('\n\n')
    .replaceAll(/^```signalbox/gm, '``` signalbox')
  return [scriptOf(task, round), plain].filter(Boolean).join('\n\n')
}

/** Of the scripted agent, which has no model: the task says what its reviewers do, one block for each round. */
function scriptOf({ description }: TaskRow, { round }: ReviewRow): string | undefined {
  const blocks = [...description.matchAll(/^```signalbox-review[ \t]*\r?\n([\s\S]*?)^```/gm)].map(([, script]) => script)
  const script = blocks[Math.min(round, blocks.length) - 1]
  return script === undefined ? undefined : `\`\`\`signalbox\n${script}\`\`\``
}
