import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { CursorText, EventView, eventView, PageSize, PageToken, TimeoutSeconds } from '../../kernel/schema.ts'
import { defineTool } from '../../kernel/tool.ts'
import { JobId, ProjectId, TaskId } from '../ids.ts'
import { RUN_EVENTS, RunView, runStore, runView } from '../run/index.ts'
import { watchUntil } from '../until.ts'
import { cancelJob } from './admission.ts'
import { JOB, jobHandle } from './rules.ts'
import { JOB_STATES, JobView, jobEnded, jobStarted, OPEN_STATES } from './schema.ts'
import { jobStore } from './store.ts'
import { jobView, requireJob } from './view.ts'

export const get = defineTool({
  name: 'job_get',
  title: 'Read a job',
  description: 'One job with its state, its place in the line and its runs.',
  input: z.strictObject({ job_id: JobId }),
  output: z.strictObject({ job: JobView, runs: z.array(RunView) }),
  example: { job_id: 'J-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const job = await requireJob(ctx.view, input.job_id)
    const runs = await runStore(ctx.view).ofOwner(JOB, job.id)
    return { job: await jobView(ctx.view, job, ctx.now), runs: runs.map((run) => runView(ctx, run)) }
  },
})

export const list = defineTool({
  name: 'job_list',
  title: 'List jobs',
  description: 'Jobs of a task, of a project or of all, newest first.',
  input: z.strictObject({
    task_id: TaskId.optional(),
    project_id: ProjectId.optional(),
    states: z.array(z.enum(JOB_STATES)).min(1).max(5).optional(),
    limit: PageSize,
    before: PageToken.regex(/^[0-9]{1,15}$/, 'not a page of job_list').optional(),
  }),
  output: z.strictObject({ jobs: z.array(JobView), next: z.string().nullable() }),
  example: { states: ['queued', 'running'] },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const filter = { task: input.task_id, project: input.project_id, states: input.states }
    const rows = await jobStore(ctx.view).list(filter, input.before === undefined ? undefined : Number(input.before), input.limit)
    const jobs = []
    for (const row of rows) jobs.push(await jobView(ctx.view, row, ctx.now))
    return { jobs, next: rows.length === input.limit ? String(rows.at(-1)?.number) : null }
  },
})

export const wait = defineTool({
  name: 'job_wait',
  title: 'Wait for a job',
  description: 'Return when a job is over, or has started. On WAIT_TIMEOUT with resume: true call again with the cursor.',
  input: z.strictObject({
    job_id: JobId,
    until: z.enum(['ended', 'started']).default('ended'),
    timeout_seconds: TimeoutSeconds.optional(),
    cursor: CursorText.optional(),
  }),
  output: z.strictObject({
    job: JobView,
    code: z.enum(['JOB_ENDED', 'JOB_STARTED', 'WAIT_TIMEOUT', 'WAIT_INTERRUPTED']),
    timed_out: z.boolean(),
    resume: z.boolean(),
    cursor: z.string(),
  }),
  example: { job_id: 'J-1' },
  impact: 'read',
  profile: 'viewer',
  async watch(ctx, input) {
    const longest = ctx.setting<number>('runs.wait_max_seconds')
    let job = await requireJob(ctx.view, input.job_id)
    const seen = await watchUntil(ctx, {
      about: { subject: job.id },
      types: [jobEnded, jobStarted],
      withinMs: Math.min(input.timeout_seconds ?? longest, longest) * 1_000,
      from: input.cursor,
      async look() {
        job = await requireJob(ctx.view, input.job_id)
        if (!OPEN_STATES.includes(job.state)) return 'JOB_ENDED' as const
        return input.until === 'started' && job.state === 'running' ? ('JOB_STARTED' as const) : undefined
      },
    })
    const ended = seen.found ? undefined : seen.ended
    const code = seen.found ?? (ended === 'interrupted' ? ('WAIT_INTERRUPTED' as const) : ('WAIT_TIMEOUT' as const))
    return {
      job: await jobView(ctx.view, job, ctx.now),
      code,
      timed_out: code === 'WAIT_TIMEOUT',
      resume: ended === 'hold' || ended === 'interrupted',
      cursor: seen.cursor,
    }
  },
})

export const events = defineTool({
  name: 'job_events',
  title: 'Read the events of a job',
  description: 'What happened to a job and its runs, oldest first.',
  input: z.strictObject({ job_id: JobId, cursor: CursorText.optional(), limit: PageSize }),
  output: z.strictObject({ events: z.array(EventView), cursor: z.string(), more: z.boolean() }),
  example: { job_id: 'J-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const end = await ctx.cursor()
    const job = await requireJob(ctx.view, input.job_id)
    const page = await ctx.tail(input.cursor, { task: job.task_id, types: ['job.*', ...RUN_EVENTS.map(({ type }) => type)] }, input.limit)
    const own = page.filter((event) => event.subject === job.id || event.data.job_id === job.id)
    const more = page.length === input.limit
    return { events: own.map(eventView), cursor: more ? (page.at(-1)?.cursor ?? end) : end, more }
  },
})

export const cancel = defineTool({
  name: 'job_cancel',
  title: 'Cancel a job',
  description: 'End a job: one in the line at once, one that runs with everything that it started. Its work is kept.',
  input: z.strictObject({ job_id: JobId }),
  output: z.strictObject({ job: JobView }),
  example: { job_id: 'J-1' },
  impact: 'destructive',
  profile: 'operator',
  async run(ctx, input) {
    const job = await requireJob(ctx.tx, input.job_id)
    if (!OPEN_STATES.includes(job.state)) return refuse('CONFLICT', `${jobHandle(job)} is already ${job.state}.`)
    if (job.action === 'stop_agent') return refuse('CONFLICT', 'What is being stopped cannot be kept alive.')
    await cancelJob(ctx, job, 'It was cancelled.')
    return { job: await jobView(ctx.tx, await requireJob(ctx.tx, job.id), ctx.now) }
  },
})
