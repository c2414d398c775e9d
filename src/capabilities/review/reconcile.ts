import { z } from 'zod'
import { Refusal } from '../../kernel/error.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { agentStore, callFor, HUMAN, sendLetter } from '../agent/index.ts'
import { takeTurn } from '../handle.ts'
import { TaskId } from '../ids.ts'
import { jobStore } from '../job/index.ts'
import { openSession } from '../session/index.ts'
import { epicOf, handleOf, type TaskRow, taskStore } from '../task/index.ts'
import { takeAway, workOf } from '../work/index.ts'
import { abandon } from './abandon.ts'
import { tally } from './limit.ts'
import { endReviewers, readerProgram, startReviewer } from './reviewer.ts'
import { feedbackStore, type ReviewRow, reviewStore } from './store.ts'

export const reconcileReview = defineTool({
  name: 'review_reconcile',
  title: 'Compare what a review wants with what is',
  description: 'Starts and ends reviewers, gives up what leads nowhere, and takes away what that left. No model decides about it.',
  input: z.strictObject({ task_id: TaskId }),
  output: z.strictObject({}),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async prepare(ctx, { task_id }) {
    const last = (await reviewStore(ctx.view).ofTask(task_id)).at(-1)
    const program = last?.reader === 'agent' && last.reviewer_task_id === null ? await readerProgram(ctx) : undefined
    return { asked: program && !(program instanceof Refusal) ? program.name : undefined }
  },
  async run(ctx, { task_id }, { asked }) {
    await takeTurn(ctx.tx, `review:${task_id}`)
    const found = await look(ctx, task_id)
    const [task, rounds] = (await giveUp(ctx, ...found)) ? await look(ctx, task_id) : found
    const last = rounds.at(-1)
    if (!task || !last) return {}
    await endReviewers(ctx, task, rounds)
    const isToRead = task.status === 'REVIEW' && task.deleted_at === null && last.decision === null
    if (isToRead && last.reviewer_task_id === null) await startReviewer(ctx, task, last, last.reader === 'agent' ? asked : undefined)
    if (last.abandoned_at !== null && last.cleaned_at === null) await cleanUp(ctx, task, last)
    return {}
  },
})

async function look(ctx: RunContext, id: string): Promise<[TaskRow | undefined, ReviewRow[]]> {
  return [await taskStore(ctx.tx).find(id), await reviewStore(ctx.tx).ofTask(id)]
}

/** What is on its way is let arrive first. True when it was given up now. */
async function giveUp(ctx: RunContext, task: TaskRow | undefined, rounds: ReviewRow[]): Promise<boolean> {
  const last = rounds.at(-1)
  const { failed, refused } = tally(rounds)
  const most = ctx.setting<number>('review.auto_abandon_after')
  if (!task || task.deleted_at !== null || !last || failed + refused < most) return false
  if (await feedbackStore(ctx.tx).sendingOf(task.id)) return false
  const reason = `${failed} failed rounds and ${refused} refused requests for another: that is as often as it may.`
  if (await abandon(ctx, task, last, reason)) return false
  const { project_id, epic_id } = task
  const to = (await epicOf(ctx, task))?.supervisor_id ?? HUMAN
  const worker = task.assignee_id ? await agentStore(ctx.tx).agent(task.assignee_id) : undefined
  const start = worker ? callFor(to, 'agent_start', worker.handle) : callFor(to, 'job_submit', handleOf(task), 'start_agent')
  await sendLetter(ctx, {
    from: 'system',
    to,
    subject: `Given up: ${handleOf(task)}`,
    body: `The work on ${handleOf(task)} (${task.title}) was given up. ${reason} Its branch is kept. Change the task and start its worker again (${start}), or close it (${callFor(to, 'task_close', handleOf(task), '"…"')}).`,
    importance: 'high',
    about: { project_id, epic_id, task_id: task.id },
  })
  return true
}

/** Once, when nobody is in it any more and what the last one left was looked at; never from under somebody who was started on it anew. */
async function cleanUp(ctx: RunContext, task: TaskRow, last: ReviewRow): Promise<void> {
  const again = task.status !== 'BACKLOG'
  if (!again && ((await jobStore(ctx.tx).openOf(task.id)) || (await openSession(ctx, { task_id: task.id })))) return
  await reviewStore(ctx.tx).update(last.id, { cleaned_at: ctx.now })
  const work = await workOf(ctx.tx, task.id)
  if (!again && work?.state === 'made') await takeAway(ctx, work)
}
