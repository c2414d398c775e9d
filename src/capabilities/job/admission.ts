import { Refusal } from '../../kernel/error.ts'
import { iso } from '../../kernel/schema.ts'
import type { RunContext } from '../../kernel/tool.ts'
import { agentStore, createAgent, wantAgent } from '../agent/index.ts'
import { defaultProgram, unnamedProgram } from '../programs.ts'
import { admitNow, allowance, allowanceOf, askToStop, beginRun, leftOf, type RunRow, runStore, type Waiting } from '../run/index.ts'
import { giveTo, isDuty, type TaskRow, taskStore, transition } from '../task/index.ts'
import { planWork } from '../work/index.ts'
import { aboutJob, isSaid, JOB, type JobArguments, jobHandle, putBack } from './rules.ts'
import { type JobState, jobCancelling, jobEnded, jobQueued, jobStarted } from './schema.ts'
import { type JobRow, jobStore } from './store.ts'

export async function jobsInLine({ tx }: RunContext, limit: number): Promise<Waiting[]> {
  return (await jobStore(tx).inLine(limit)).map(({ id, project_id, priority, created_at, not_before }) => ({
    owner: { kind: JOB, id },
    project_id,
    priority,
    created_at,
    not_before,
  }))
}

/** False when it cannot begin, now or ever. */
export async function begin(ctx: RunContext, id: string): Promise<boolean> {
  const job = await jobStore(ctx.tx).held(id)
  if (job?.state !== 'queued') return false
  const task = await taskStore(ctx.tx).find(job.task_id)
  if (!task || task.status === 'DONE' || task.deleted_at !== null) return over(ctx, job, 'cancelled', null, 'The task is over.')
  const given = JSON.parse(job.arguments) as JobArguments
  const checks = job.action === 'run_checks'
  if (!checks && task.status === 'REVIEW') return over(ctx, job, 'cancelled', null, 'The task waits for review.')
  const own = leftOf(allowanceOf(given.limits), await runStore(ctx.tx).ofOwner(JOB, job.id), ctx.now)
  if (Object.values(own).some((left) => left <= 0)) return fail(ctx, job, 'BUDGET_EXHAUSTED', 'Its lives have used what this job may use.')
  const allowed = checks ? {} : await allowance(ctx, { task: task.id, project: task.project_id }, own)
  if (allowed instanceof Refusal) return fail(ctx, job, allowed.body.code, allowed.body.message)
  const work = await planWork(ctx, task, given.repo_id)
  if (work instanceof Refusal) return fail(ctx, job, work.body.code, work.body.message)
  const last = await lastRun(ctx, job)
  const before = job.run_id ? last?.harness : undefined
  // The program of the life before: its session means nothing to another, and a job of an older version does not name it.
  const harness = checks ? 'command' : (given.harness ?? before ?? defaultProgram(ctx))
  if (!harness) return fail(ctx, job, 'INVALID_INPUT', unnamedProgram().body.message)
  const agent = checks ? null : await workerFor(ctx, task, last)
  // A life may have found that there is no such session.
  const session = (job.run_id ? last?.session : given.session) ?? null
  const { approvals, ...options } = given.options ?? {}
  const run = await beginRun(ctx, {
    owner: { kind: JOB, id: job.id },
    task_id: job.task_id,
    project_id: job.project_id,
    agent_id: agent,
    harness,
    model: given.model ?? null,
    options,
    approvals,
    allowed,
    session,
    life: job.lives + 1,
  })
  const started = {
    state: 'running',
    run_id: run.id,
    lives: job.lives + 1,
    code: null,
    reason: null,
    started_at: job.started_at ?? ctx.now,
  } as const
  await jobStore(ctx.tx).update(job.id, started)
  if (!checks && task.status !== 'IN_PROGRESS') await transition(ctx, await reread(ctx, task), 'IN_PROGRESS', null)
  ctx.emit(jobStarted(aboutJob(job), { handle: jobHandle(job), action: job.action, run_id: run.id }))
  return true
}

/** One that had lives before has left its task IN_PROGRESS. */
async function fail(ctx: RunContext, job: JobRow, code: string, reason: string): Promise<false> {
  await over(ctx, job, 'failed', code, reason)
  if (job.lives > 0) await putBack(ctx, job.task_id, `${jobHandle(job)}: ${reason}`)
  return false
}

async function reread(ctx: RunContext, task: TaskRow): Promise<TaskRow> {
  return (await taskStore(ctx.tx).find(task.id)) as TaskRow
}

/** The life before this one in the same job; for a new job the last one on the task, whose agent goes on, but not its session. */
async function lastRun(ctx: RunContext, job: JobRow): Promise<RunRow | undefined> {
  if (job.run_id) return runStore(ctx.tx).find(job.run_id)
  const last = (await runStore(ctx.tx).ofTask(job.task_id, undefined, 50)).find((run) => run.kind === 'agent')
  return last && { ...last, session: null }
}

/** The same identity in every life of a task; its token is a new one each time. */
async function workerFor(ctx: RunContext, task: TaskRow, last: RunRow | undefined): Promise<string> {
  const before = isDuty(task) ? task.assignee_id : last?.agent_id
  const known = before ? await agentStore(ctx.tx).agent(before) : undefined
  const agent = known ?? (await createAgent(ctx, { role: 'worker', project_id: task.project_id }))
  // Whoever starts one that was stopped wants it to go on, also after the next review.
  if (agent.desired === 'stopped') await wantAgent(ctx, agent.id, 'running')
  if (task.assignee_id !== agent.id) await giveTo(ctx, task, agent)
  return agent.id
}

/** The end of a job. Always false, so that a job that could not begin is said in one line. */
export async function over(ctx: RunContext, job: JobRow, state: JobState, code: string | null, reason: string | null): Promise<false> {
  await jobStore(ctx.tx).update(job.id, { state, code, reason, ended_at: ctx.now })
  ctx.emit(jobEnded(aboutJob(job), { handle: jobHandle(job), action: job.action, state, code, reason }))
  return false
}

/** Of a job that has a run, the end comes with the run's; any other is over at once. */
export async function cancelJob(ctx: RunContext, { id }: JobRow, reason: string): Promise<void> {
  const job = await jobStore(ctx.tx).held(id)
  if (!job || job.ended_at !== null) return
  const run = job.run_id ? await runStore(ctx.tx).find(job.run_id) : undefined
  if (job.state === 'queued' || isSaid(job) || !run || run.state === 'ended') {
    await over(ctx, job, 'cancelled', null, reason)
    // One that had died and waited for its next life.
    if (job.lives > 0) await putBack(ctx, job.task_id, `${jobHandle(job)}: ${reason}`)
    return
  }
  await jobStore(ctx.tx).update(job.id, { cancel_asked_at: job.cancel_asked_at ?? ctx.now })
  await askToStop(ctx, run, 'stopped')
  if (job.cancel_asked_at === null) ctx.emit(jobCancelling(aboutJob(job), { handle: jobHandle(job), action: job.action }))
}

/** Back in line, not before its time. */
export async function again(ctx: RunContext, job: JobRow, at: number, code: string | null, reason: string): Promise<void> {
  await jobStore(ctx.tx).update(job.id, { state: 'queued', not_before: at, code, reason })
  ctx.later(admitNow, {}, { delayMs: Math.max(0, at - ctx.now) + 1 })
  ctx.emit(jobQueued(aboutJob(job), { handle: jobHandle(job), action: job.action, reason, not_before: iso(at) }))
}
