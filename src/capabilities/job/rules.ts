import type { z } from 'zod'
import { type Refusal, refuse } from '../../kernel/error.ts'
import type { RunContext } from '../../kernel/tool.ts'
import type { Approvals } from '../../ports/harness.ts'
import { type Limits, type RunRow, rememberReported, runStore } from '../run/index.ts'
import { handleOf, type TaskRow, taskStore, transition } from '../task/index.ts'
import { lingered } from './effects.ts'
import type { JobRow } from './store.ts'

/** As stored: checked when it was submitted. */
export interface JobArguments {
  harness?: string
  model?: string
  repo_id?: string
  limits?: z.output<typeof Limits>
  options?: Record<string, unknown> & { approvals?: Approvals }
  message?: string
  session?: string
}

/** Goes through a run that is there, and is over when it has arrived. */
export function isSaid({ action }: JobRow): boolean {
  return action === 'message_agent' || action === 'interrupt_agent'
}

/** As the owner of runs. */
export const JOB = 'job'

/** Runs of jobs have one. */
export function taskOf({ id, task_id }: Pick<RunRow, 'id' | 'task_id'>): string {
  if (task_id === null) throw new Error(`${id} has no task`)
  return task_id
}

export function jobHandle(job: { number: number }): string {
  return `J-${job.number}`
}

export function aboutJob(job: JobRow) {
  return { subject: job.id, project: job.project_id, task: job.task_id }
}

/** What Signalbox does by itself is for AUTO tasks that are open and wait for nobody. */
export function notAuto(task: TaskRow): Refusal | undefined {
  if (task.status === 'DONE')
    return refuse('INVALID_TRANSITION', `${handleOf(task)} is done.`, {
      hint: 'Reopen it first.',
      next_tool: 'task_move',
      next_arguments: { task_id: handleOf(task), status: 'BACKLOG' },
    })
  if (task.task_type === 'AUTO') return undefined
  return refuse(
    'INVALID_INPUT',
    `${handleOf(task)} is a PAIR task: a person works on it with an agent in a terminal. Jobs are for AUTO tasks.`,
    {
      hint: 'Make it an AUTO task, then submit the job again.',
      next_tool: 'task_update',
      next_arguments: { task_id: handleOf(task), task_type: 'AUTO' },
    },
  )
}

/** Whoever is at work on the task has done all that it had to: it gets a moment to end by itself; then it is ended. Once for each round. */
export async function letEnd(ctx: RunContext, taskId: string, round = 1): Promise<void> {
  const run = await runStore(ctx.tx).livingOf(taskId)
  if (run?.kind !== 'agent' || run.reported >= round) return
  await rememberReported(ctx, run, round)
  ctx.enqueue(lingered({ run_id: run.id, round }, { delayMs: ctx.setting<number>('runs.linger_seconds') * 1_000 }))
}

/** What a worker is told that goes on with work which came back from review. */
export function sentBack(task: TaskRow): string {
  return `Your work on ${handleOf(task)} was sent back. The newest note on it says why (task_get), and so do your letters (mail_inbox). Mend it, commit, and ask for review again.`
}

/** A task that nobody works on any more is back on the board, with the reason. */
export async function putBack(ctx: RunContext, taskId: string, reason: string): Promise<void> {
  const task = await taskStore(ctx.tx).find(taskId)
  if (task?.status === 'IN_PROGRESS' && task.deleted_at === null) await transition(ctx, task, 'BACKLOG', reason.slice(0, 500))
}
