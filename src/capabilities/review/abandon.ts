import { z } from 'zod'
import { type Refusal, refuse } from '../../kernel/error.ts'
import { text } from '../../kernel/schema.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { wantAgent } from '../agent/index.ts'
import { TaskId } from '../ids.ts'
import { cancelJob, jobStore, OPEN_STATES } from '../job/index.ts'
import { withdraw } from '../merge/index.ts'
import { closeTerminal } from '../session/index.ts'
import { about, addNote, handleOf, isDuty, requireTask, type TaskRow, transition } from '../task/index.ts'
import { givenUp } from './points.ts'
import { checkMayDecide } from './rules.ts'
import { reviewAbandoned } from './schema.ts'
import { type ReviewRow, reviewStore } from './store.ts'

const MOST_JOBS = 200

export const abandonWork = defineTool({
  name: 'review_abandon',
  title: 'Give up work',
  description: 'End the work on a task that reviews do not get further: back to BACKLOG with the reason, its branch is kept.',
  input: z.strictObject({ task_id: TaskId, reason: text(500) }),
  output: z.strictObject({ task_id: TaskId, handle: z.string(), status: z.literal('BACKLOG'), message: z.string() }),
  example: { task_id: 'T-1', reason: 'Another way is tried first.' },
  impact: 'destructive',
  profile: 'operator',
  async run(ctx, { task_id, reason }) {
    const task = await requireTask(ctx, task_id)
    const rounds = await reviewStore(ctx.tx).ofTask(task.id)
    const last = rounds.at(-1)
    if (isDuty(task) || !last)
      return refuse('CONFLICT', `${handleOf(task)} was never handed in.`, {
        hint: 'End its agent with agent_stop, or move it with task_move.',
      })
    const denied = checkMayDecide(ctx.principal, task, last)
    if (denied) return denied
    const withdrawn = await withdraw(ctx, task, reason)
    const refused = await abandon(ctx, task, withdrawn ? { ...last, outcome: 'failed' } : last, reason)
    if (refused) return refused
    const message =
      'Whoever is at work on it is being ended; then its worktree is taken away. Its branch stays, and what was not committed.'
    return { task_id: task.id, handle: handleOf(task), status: 'BACKLOG' as const, message }
  },
})

/** What is still running is ended by what this sets off; its worktree goes when nobody is in it any more. */
export async function abandon(ctx: RunContext, task: TaskRow, last: ReviewRow, reason: string): Promise<Refusal | undefined> {
  if (task.status !== 'IN_PROGRESS' && task.status !== 'REVIEW')
    return refuse('INVALID_TRANSITION', `${handleOf(task)} is ${task.status}: nobody is at work on it.`)
  if (last.decision === 'approve' && last.outcome === null)
    return refuse('CONFLICT', `${handleOf(task)} was approved, and is being merged.`, { next_tool: 'merge_status', next_arguments: {} })
  const undecided = last.decision === null || last.decision === 'timed_out'
  const decided = { decision: 'abandoned', decided_by: ctx.principal.id, decided_at: ctx.now, reason } as const
  await reviewStore(ctx.tx).update(last.id, { abandoned_at: ctx.now, ...(undecided ? decided : {}) })
  // Kept as its worker, but stopped: nobody starts it by itself.
  if (task.assignee_id) await wantAgent(ctx, task.assignee_id, 'stopped')
  await transition(ctx, task, 'BACKLOG', reason)
  for (const job of await jobStore(ctx.tx).list({ task: task.id, states: [...OPEN_STATES] }, undefined, MOST_JOBS))
    await cancelJob(ctx, job, 'The work was given up.')
  await closeTerminal(ctx, task.id)
  await ctx.ask(givenUp, task, reason)
  await addNote(ctx, task, ctx.principal.id, `The work was given up after round ${last.round}: ${reason}`)
  const handle = handleOf(task)
  ctx.emit(reviewAbandoned({ ...about(task), subject: last.id }, { handle, round: last.round, reason, by: ctx.principal.id }))
  return undefined
}
