import { z } from 'zod'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { TaskId } from '../ids.ts'
import { admit, askToStop, launching, presenceChanged, type RunRow, rememberLeft, runStore } from '../run/index.ts'
import { withdraw } from '../setup/index.ts'
import { isDuty, type TaskRow, taskStore } from '../task/index.ts'
import { again, cancelJob, over } from './admission.ts'
import { settleRun } from './effects.ts'
import { handIn, handIns } from './handed-in.ts'
import { aboutJob, isSaid, JOB, type JobArguments, jobHandle, letEnd, putBack, sentBack, taskOf } from './rules.ts'
import { jobPaused, OPEN_STATES } from './schema.ts'
import { type Next, whatNext } from './settle.ts'
import { type JobRow, jobStore } from './store.ts'

/** What the daemon tells of jobs. Each is one transaction, and says the same when it is said again. */
const internal = { impact: 'write', profile: 'maintainer', internal: true, output: z.strictObject({}) } as const
const Told = z.strictObject({ run_id: z.string() })
export const unheard = defineTool({
  ...internal,
  name: 'run_unheard',
  title: 'A message cannot be delivered',
  description: 'The program takes none, or none now.',
  input: z.strictObject({ job_id: z.string(), reason: z.string() }),
  async run(ctx, { job_id, reason }) {
    const job = await jobStore(ctx.tx).find(job_id)
    if (job?.state === 'running') await over(ctx, job, 'failed', 'INVALID_AGENT_STATE', reason)
    return {}
  },
})

export const settled = defineTool({
  ...internal,
  name: 'run_settled',
  title: 'What a run has left is known',
  description: 'Decides what comes next for its job and its task.',
  input: Told.extend({ task_id: TaskId, ahead: z.int(), dirty: z.int(), fingerprint: z.string(), problem: z.string().nullable() }),
  async run(ctx, { run_id, task_id: _, ...work }) {
    const run = await requireRun(ctx, run_id)
    const job = run.owner_kind === JOB ? await jobStore(ctx.tx).held(run.owner_id) : undefined
    if (job?.state !== 'running' || job.run_id !== run.id) return {}
    await rememberLeft(ctx, run, work.fingerprint)
    if (run.kind === 'checks') await settleChecks(ctx, job, run)
    else await follow(ctx, job, run, await nextOf(ctx, job, run, work))
    await stopsAreOver(ctx, run)
    await admit(ctx)
    await presenceChanged(ctx, run)
    return {}
  },
})

export const reported = defineTool({
  ...internal,
  name: 'run_reported',
  title: 'An agent has handed in its work',
  description: 'It gets a moment to end by itself; then it is ended.',
  input: z.strictObject({ task_id: TaskId }),
  async run(ctx, { task_id }) {
    const run = await runStore(ctx.tx).livingOf(task_id)
    const last = (await ctx.ask(handIns, task_id)).at(-1)
    // Told late, it must not end who was started since, for work that came back meanwhile.
    if (run && last && last.requested_at >= run.created_at) await letEnd(ctx, task_id, last.round)
    return {}
  },
})

export const lingeredOn = defineTool({
  ...internal,
  name: 'run_lingered',
  title: 'An agent had its time to end by itself',
  description: 'It is ended, unless its work was sent back to it meanwhile and it could be told: then it goes on.',
  // Held: the agent may be asking for review again at this moment.
  input: Told.extend({ task_id: TaskId, round: z.int(), hears: z.boolean() }),
  async run(ctx, { run_id, round, hears }) {
    const run = await requireRun(ctx, run_id)
    // One that has asked again since has its time from then on. One that takes no messages does not know of the feedback: ended, it is
    // started again with it.
    if (run.reported !== round || (hears && isBackAt(run, await taskStore(ctx.tx).find(taskOf(run))))) return {}
    await askToStop(ctx, run, 'stopped')
    return {}
  },
})

export const taskOver = defineTool({
  ...internal,
  name: 'job_task_over',
  title: 'A task is over',
  description: 'Whatever still works on it, or waits to, ends.',
  input: z.strictObject({ task_id: TaskId }),
  async run(ctx, { task_id }) {
    const task = await taskStore(ctx.tx).find(task_id)
    const over = !task || task.status === 'DONE' || task.deleted_at !== null
    // Whoever takes a task back from its agent wants that to end; what waits in line for its first start is meant to be in BACKLOG.
    const takenBack = task?.status === 'BACKLOG'
    const states = over ? OPEN_STATES : takenBack ? (['running'] as const) : []
    if (!states.length) return {}
    for (const job of await jobStore(ctx.tx).list({ task: task_id, states: [...states] }, undefined, 200))
      await cancelJob(ctx, job, over ? 'The task is over.' : 'The task was taken back.')
    return {}
  },
})

/** Among so many the last one of another job is found: no job has more lives. */
const EARLIER_RUNS = 200

type Left = { ahead: number; dirty: number; fingerprint: string; problem: string | null }

async function nextOf(ctx: RunContext, job: JobRow, run: RunRow, work: Left): Promise<Next> {
  const task = await taskStore(ctx.tx).find(job.task_id)
  const rounds = await ctx.ask(handIns, job.task_id)
  const handedIn = (life: RunRow) =>
    rounds.some(({ requested_by, requested_at }) => requested_by === life.agent_id && requested_at >= life.created_at)
  // A quota is no death; and whoever handed in has got somewhere: deaths count from then on.
  const lives = (await runStore(ctx.tx).ofOwner(JOB, job.id)).filter((life) => life.resets_at === null && !handedIn(life))
  const ofOthers = (await runStore(ctx.tx).ofTask(job.task_id, run.id, EARLIER_RUNS)).find(
    // Also a life of this job whose work was sent back: to leave it as it was is to ignore the feedback.
    (life) => (life.owner_id !== job.id || handedIn(life)) && life.fingerprint,
  )
  // Whoever only reviews or leads, and was ended because that is over, is not started for it again.
  const letGo = task !== undefined && isDuty(task) && run.reported > 0
  return whatNext({
    run,
    work,
    foundAs: ofOthers?.fingerprint ?? undefined,
    before: lives.filter((life) => life.id < run.id).at(-1),
    lives: Math.max(1, lives.length),
    mostLives: ctx.setting('runs.max_lives'),
    backOffMs: ctx.setting<number>('runs.back_off_seconds') * 1_000,
    duty: task !== undefined && isDuty(task),
    cancelAsked: job.cancel_asked_at !== null,
    movedTo: task && task.status !== 'IN_PROGRESS' ? task.status : undefined,
    reported: letGo || handedIn(run),
    // By the same look at the task as all the rest: on PostgreSQL it may have come back since.
    sentBack: handedIn(run) && isBackAt(run, task),
    taskOpen: task !== undefined && task.deleted_at === null && task.status !== 'DONE',
    now: ctx.now,
  })
}

/** The task is IN_PROGRESS under the very agent that handed it in. */
function isBackAt({ agent_id }: RunRow, task: TaskRow | undefined): boolean {
  return task?.status === 'IN_PROGRESS' && task.deleted_at === null && !isDuty(task) && task.assignee_id === agent_id
}

async function follow(ctx: RunContext, job: JobRow, run: RunRow, next: Next): Promise<void> {
  if (next.next === 'recalled') return recall(ctx, job)
  if (next.next === 'again') {
    const reason = run.started_at === null ? `It could not be started: ${next.reason}` : `It died: ${next.reason}`
    return again(ctx, job, next.at, 'START_PENDING', reason)
  }
  if (next.next === 'parked') return again(ctx, job, next.at, 'START_PENDING', next.reason)
  const reason = next.next === 'succeeded' ? null : next.reason
  const handedIn = next.next !== 'cancelled' && next.review !== undefined && (await handInLeft(ctx, run, next.review))
  await over(ctx, job, next.next, next.next === 'failed' ? next.code : null, reason)
  if (!handedIn && reason !== null) await putBack(ctx, job.task_id, `${jobHandle(job)}: ${reason}`)
}

async function recall(ctx: RunContext, job: JobRow): Promise<void> {
  const task = (await taskStore(ctx.tx).find(job.task_id)) as TaskRow
  const given = { ...(JSON.parse(job.arguments) as JobArguments), message: sentBack(task) }
  await jobStore(ctx.tx).update(job.id, { arguments: JSON.stringify(given) })
  await again(ctx, job, ctx.now, 'START_PENDING', 'Its work was sent back before it had ended.')
}

async function handInLeft(ctx: RunContext, run: RunRow, summary: string): Promise<boolean> {
  const task = await taskStore(ctx.tx).find(taskOf(run))
  if (task?.status !== 'IN_PROGRESS') return false
  return ctx.ask(handIn, task, { summary, requested_by: run.agent_id ?? ctx.principal.id })
}

async function settleChecks(ctx: RunContext, job: JobRow, run: RunRow): Promise<void> {
  if (job.cancel_asked_at !== null) await over(ctx, job, 'cancelled', null, 'It was stopped.')
  else if (run.ok === 1) await over(ctx, job, 'succeeded', null, null)
  else await over(ctx, job, 'failed', null, run.failure ?? run.exit_detail ?? 'The checks failed.')
}

/** Whoever asked for the stop hears of it when it is true. */
async function stopsAreOver(ctx: RunContext, run: RunRow): Promise<void> {
  const open = await jobStore(ctx.tx).list({ task: taskOf(run), states: ['running'] }, undefined, 200)
  for (const job of open) if (job.action === 'stop_agent') await over(ctx, job, 'succeeded', null, null)
}

/** Messages that have not arrived, whether they were on their way or not. */
async function nobodyHears(ctx: RunContext, run: RunRow): Promise<void> {
  const open = await jobStore(ctx.tx).list({ task: taskOf(run), states: ['running'] }, undefined, 200)
  for (const job of open.filter((job) => isSaid(job) && job.run_id === run.id))
    await over(ctx, job, 'failed', 'INVALID_AGENT_STATE', 'The run ended before it arrived.')
}

/** What moves the task next is another thing now: boards and pages must hear of it. */
export async function tellPaused(ctx: RunContext, { owner_id, paused }: RunRow): Promise<void> {
  const job = await jobStore(ctx.tx).find(owner_id)
  if (job) ctx.emit(jobPaused(aboutJob(job), { handle: jobHandle(job), action: job.action, paused: paused === 1 }))
}

/** What its owner does at the end of a run: it is looked at what it has left, which decides what comes next. */
export async function toSettle(ctx: RunContext, run: RunRow): Promise<void> {
  await withdraw(ctx, taskOf(run), launching(run.id))
  await nobodyHears(ctx, run)
  ctx.enqueue(settleRun({ run_id: run.id }, { queue: run.id }))
}

export async function heard(ctx: RunContext, _run: RunRow, id: string): Promise<void> {
  const job = await jobStore(ctx.tx).find(id)
  if (job?.state === 'running') await over(ctx, job, 'succeeded', null, null)
}

async function requireRun(ctx: RunContext, id: string): Promise<RunRow> {
  const run = await runStore(ctx.tx).find(id)
  if (!run) throw new Error(`the run ${id} is not there`)
  return run
}
