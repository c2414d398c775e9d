import { z } from 'zod'
import { Refusal, refuse } from '../../kernel/error.ts'
import { mention } from '../../kernel/id.ts'
import type { Principal } from '../../kernel/policy.ts'
import { CursorText, EventView, eventView, iso, isoOrNull, PageSize, PageToken, TimeoutSeconds, text } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import { defineTool, type LookContext, type RunContext } from '../../kernel/tool.ts'
import { nextNumber } from '../handle.ts'
import { JobId, ProjectId, RepoId, TaskId } from '../ids.ts'
import { projectStore } from '../project/index.ts'
import { handleOf, requireTask, requireUnblocked, type TaskRow } from '../task/index.ts'
import { planWork, workOf } from '../work/index.ts'
import { admit, cancelJob, over } from './admission.ts'
import { allowance, allowanceOf, shownLimits, unmetered } from './budget.ts'
import { aboutJob, aboutRun, askToStop, type JobArguments, jobHandle, notAuto } from './rules.ts'
import {
  ACTIONS,
  Action,
  type ActionName,
  JOB_STATES,
  JobView,
  jobEnded,
  jobStarted,
  jobSubmitted,
  Limits,
  OPEN_STATES,
  RunView,
  runInput,
} from './schema.ts'
import { budgetStore, type JobRow, jobStore, type RunRow, runStore } from './store.ts'
import '../../ports/harness.ts'

/** All that any harness takes; each refuses what it does not know. */
const Options = z.strictObject({
  command: z
    .array(z.string().max(10_000))
    .min(1)
    .max(200)
    .optional()
    .describe('`command`: the program and its arguments; no shell reads them'),
  script: z.string().min(1).max(200_000).optional().describe('`scripted`: what it does'),
  file: text(1_000).optional().describe('`scripted`: where the script is in the repository'),
})

/** Each belongs to some of the actions: ACTION_FACTS says which. */
const Arguments = z.strictObject({
  harness: text(40).optional().describe('How the agent program is driven; default: the setting runs.default_harness'),
  model: text(100).optional(),
  repo_id: mention(RepoId).optional().describe('Needed when the project has several'),
  limits: Limits.optional().describe('What this job may use'),
  options: Options.optional().describe('What this harness takes'),
  message: text(20_000).optional().describe('What the agent is told'),
})

interface ActionFacts {
  title: string
  description: string
  takes: (keyof z.output<typeof Arguments>)[]
  needs?: (keyof z.output<typeof Arguments>)[]
}

const START = ['harness', 'model', 'repo_id', 'limits', 'options', 'message'] as const

const ACTION_FACTS: Record<ActionName, ActionFacts> = {
  start_agent: {
    title: 'Start an agent',
    description: 'An agent works on the task in its own worktree, until it asks for review.',
    takes: [...START],
  },
  resume_agent: {
    title: 'Resume the agent',
    description: 'The agent goes on in the same worktree, in its own session where the program can.',
    takes: ['limits', 'message'],
  },
  stop_agent: { title: 'Stop the agent', description: 'End the agent and everything that it started. What it did is kept.', takes: [] },
  message_agent: {
    title: 'Write to the agent',
    description: 'Tell the agent something while it works.',
    takes: ['message'],
    needs: ['message'],
  },
  run_checks: { title: 'Run the checks', description: "Run the repository's checks command in the task's worktree.", takes: [] },
}

export const actions = defineTool({
  name: 'job_actions',
  title: 'List what jobs can do',
  description: 'The actions of job_submit with what each takes, and the harnesses that are there.',
  input: z.strictObject({}),
  output: z.strictObject({
    actions: z.array(
      z.strictObject({
        action: Action,
        title: z.string(),
        description: z.string(),
        takes: z.array(z.string()),
        needs: z.array(z.string()),
      }),
    ),
    harnesses: z.array(
      z.strictObject({
        name: z.string(),
        title: z.string(),
        available: z.boolean(),
        version: z.string().nullable(),
        install: z.string().nullable().describe('How to get it when it is not there'),
        meters: z.array(z.string()),
        can: z.array(z.string()),
      }),
    ),
  }),
  example: {},
  impact: 'read',
  profile: 'viewer',
  async look(ctx) {
    const listed = ACTIONS.map((action) => {
      const { title, description, takes, needs = [] } = ACTION_FACTS[action]
      return { action, title, description, takes, needs }
    })
    const { harnesses } = ctx.ports
    const found = await Promise.all(
      harnesses.names().map(async (name) => {
        const harness = harnesses.get(name)
        if (!harness) throw new Error(`the harness ${name} is not there`)
        const probed = await harness.probe()
        return {
          name,
          title: harness.title,
          available: probed.found,
          version: probed.found ? probed.version : null,
          install: probed.found ? null : probed.install,
          meters: Object.keys(harness.meters),
          can: Object.entries(harness.can).flatMap(([what, can]) => (can ? [what] : [])),
        }
      }),
    )
    return { actions: listed, harnesses: found }
  },
})

export const submit = defineTool({
  name: 'job_submit',
  title: 'Submit a job',
  description: 'Do something with the agent of an AUTO task. Returns at once; job_wait waits for its end.',
  input: z.strictObject({ task_id: TaskId, action: Action, ...Arguments.shape }),
  output: z.strictObject({ job_id: JobId, handle: z.string(), job: JobView }),
  example: { task_id: 'T-1', action: 'start_agent', harness: 'scripted' },
  impact: 'write',
  profile: 'operator',
  async prepare(ctx, input) {
    const { task_id, action, ...given } = input
    const wrong = misplaced(action, given) ?? notForAgents(ctx.principal, given)
    if (wrong) return wrong
    if (action === 'message_agent') return (await takesMessages(ctx, task_id)) ?? {}
    return action === 'start_agent' ? lookAtHarness(ctx, task_id, given) : {}
  },
  async run(ctx, { task_id, action, ...given }, _looked: object) {
    const task = await requireTask(ctx, task_id)
    const refusal = notAuto(task)
    if (refusal) return refusal
    const job = newJob(ctx, task, action, given, await nextNumber(ctx.tx, 'job'))
    const begun = await BEGIN[action](ctx, task, job)
    if (begun instanceof Refusal) return begun
    const now = (await jobStore(ctx.tx).find(job.id)) as JobRow
    return { job_id: job.id, handle: jobHandle(job), job: await jobView(ctx.tx, now, ctx.now) }
  },
})

type Begin = (ctx: RunContext, task: TaskRow, job: JobRow) => Promise<Refusal | undefined>

const BEGIN: Record<ActionName, Begin> = {
  async start_agent(ctx, task, job) {
    const busy = await isBusy(ctx, task)
    if (busy) return busy
    if (task.status === 'BACKLOG') await requireUnblocked(ctx, task)
    return queue(ctx, task, job)
  },

  async resume_agent(ctx, task, job) {
    const busy = await isBusy(ctx, task)
    if (busy) return busy
    const last = (await runStore(ctx.tx).ofTask(task.id, undefined, 50)).find((run) => run.kind === 'agent')
    if (!last) {
      return refuse('INVALID_AGENT_STATE', `No agent has worked on ${handleOf(task)} yet.`, {
        next_tool: 'job_submit',
        next_arguments: { task_id: handleOf(task), action: 'start_agent' },
      })
    }
    if (task.status === 'BACKLOG') await requireUnblocked(ctx, task)
    const before = JSON.parse((await jobStore(ctx.tx).find(last.job_id))?.arguments ?? '{}') as JobArguments
    const given = JSON.parse(job.arguments) as JobArguments
    const session = last.session ?? undefined
    return queue(ctx, task, {
      ...job,
      arguments: JSON.stringify({ ...before, message: undefined, ...given, harness: last.harness, session }),
    })
  },

  async run_checks(ctx, task, job) {
    const work = await workOf(ctx.tx, task.id)
    const repo = work && (await projectStore(ctx.tx).repo(work.repo_id))
    if (!work || !repo)
      return refuse('INVALID_AGENT_STATE', `${handleOf(task)} has no worktree yet: there is nothing to check.`, {
        next_tool: 'job_submit',
        next_arguments: { task_id: handleOf(task), action: 'start_agent' },
      })
    if (!repo.checks)
      return refuse('INVALID_INPUT', `${repo.handle} has no checks.`, {
        hint: 'A person gives it a command with repo_update.',
        next_tool: 'repo_update',
      })
    const busy = await isBusy(ctx, task)
    if (busy) return busy
    // From the registration, never from the branch: an agent must not choose what it is checked by.
    return queue(ctx, task, { ...job, arguments: JSON.stringify({ options: { command: ['/bin/sh', '-c', repo.checks] } }) })
  },

  async stop_agent(ctx, task, job) {
    const run = await runStore(ctx.tx).livingOf(task.id)
    const waiting = await jobStore(ctx.tx).openOf(task.id)
    if (!run && !waiting) return nobodyThere(task)
    await jobStore(ctx.tx).insert({ ...job, state: 'running', run_id: run?.id ?? null, started_at: ctx.now })
    ctx.emit(jobSubmitted(aboutJob(job), { handle: jobHandle(job), action: job.action, state: 'running' }))
    if (run) await askToStop(ctx, run, 'stopped')
    if (waiting) await cancelJob(ctx, waiting, 'It was stopped.')
    if (!run) await over(ctx, job, 'succeeded', null, null)
    return undefined
  },

  async message_agent(ctx, task, job) {
    const run = await runStore(ctx.tx).livingOf(task.id)
    if (run?.kind !== 'agent') return nobodyThere(task)
    await jobStore(ctx.tx).insert({ ...job, state: 'running', run_id: run.id, started_at: ctx.now })
    ctx.emit(jobSubmitted(aboutJob(job), { handle: jobHandle(job), action: job.action, state: 'running' }))
    ctx.emit(runInput(aboutRun(run), { job_id: job.id, from: ctx.principal.id }))
    return undefined
  },
}

async function queue(ctx: RunContext, task: TaskRow, job: JobRow): Promise<Refusal | undefined> {
  if (job.action !== 'run_checks') {
    const given = JSON.parse(job.arguments) as JobArguments
    const left = await allowance(ctx, { task: task.id, project: task.project_id }, allowanceOf(given.limits))
    if (left instanceof Refusal) return left
  }
  const work = await planWork(ctx, task, (JSON.parse(job.arguments) as JobArguments).repo_id)
  if (work instanceof Refusal) return work
  await jobStore(ctx.tx).insert(job)
  ctx.emit(jobSubmitted(aboutJob(job), { handle: jobHandle(job), action: job.action, state: 'queued' }))
  await admit(ctx)
  return undefined
}

function newJob(ctx: RunContext, task: TaskRow, action: ActionName, given: object, number: number): JobRow {
  return {
    id: ctx.id('job'),
    number,
    task_id: task.id,
    project_id: task.project_id,
    action,
    arguments: JSON.stringify(given),
    state: 'queued',
    code: null,
    reason: null,
    priority: task.priority,
    submitted_by: ctx.principal.id,
    lives: 0,
    run_id: null,
    not_before: 0,
    cancel_asked_at: null,
    created_at: ctx.now,
    started_at: null,
    ended_at: null,
  }
}

function nobodyThere(task: TaskRow): Refusal {
  return refuse('INVALID_AGENT_STATE', `No agent works on ${handleOf(task)}.`, {
    next_tool: 'job_submit',
    next_arguments: { task_id: handleOf(task), action: 'start_agent' },
  })
}

async function isBusy(ctx: RunContext, task: TaskRow): Promise<Refusal | undefined> {
  const open = await jobStore(ctx.tx).openOf(task.id)
  if (!open) return undefined
  return refuse('CONFLICT', `${jobHandle(open)} (${open.action}) is ${open.state} on ${handleOf(task)}.`, {
    hint: 'Wait for it, or cancel it.',
    next_tool: 'job_wait',
    next_arguments: { job_id: jobHandle(open) },
  })
}

function misplaced(action: ActionName, given: z.output<typeof Arguments>): Refusal | undefined {
  const { takes, needs = [] } = ACTION_FACTS[action]
  const foreign = Object.keys(given).find((key) => !takes.includes(key as never))
  if (foreign)
    return refuse('INVALID_INPUT', `${action} takes no ${foreign}.`, {
      hint: `It takes ${takes.join(', ') || 'nothing'}.`,
      suggestions: takes,
    })
  const missing = needs.find((key) => given[key] === undefined)
  return missing && refuse('INVALID_INPUT', `${action} needs ${missing}.`)
}

/** Which program runs on this machine is for people to say: an agent without a shell would get one by this. */
function notForAgents(principal: Principal, given: z.output<typeof Arguments>): Refusal | undefined {
  if (principal.kind !== 'agent' || given.options === undefined) return undefined
  return refuse('PERMISSION_DENIED', 'Only a person gives a harness its options: they say which program is run.')
}

async function takesMessages(ctx: LookContext, taskId: string): Promise<Refusal | undefined> {
  const run = await runStore(ctx.view).livingOf(taskId)
  const harness = run && ctx.ports.harnesses.get(run.harness)
  if (!harness || harness.can.message) return undefined
  return refuse('INVALID_AGENT_STATE', `${harness.title} takes no messages while it works.`, {
    hint: 'Stop it, and say it with resume_agent or start_agent.',
  })
}

/** What cannot work is said now, and not when its turn comes. */
async function lookAtHarness(ctx: LookContext, taskId: string, given: z.output<typeof Arguments>) {
  const { harnesses } = ctx.ports
  const name = given.harness ?? ctx.setting<string>('runs.default_harness')
  const harness = harnesses.get(name)
  if (!harness) return refuse('INVALID_INPUT', `There is no harness "${name}".`, { suggestions: harnesses.names() })
  const options = harness.options.safeParse(given.options ?? {})
  if (!options.success) {
    const [issue] = options.error.issues
    const wrong = issue?.message.endsWith('received undefined') ? 'is missing' : issue?.message
    return refuse('INVALID_INPUT', `options of ${name}: ${issue?.path.join('.')} ${wrong}`, { next_tool: 'job_actions' })
  }
  const found = await harness.probe()
  if (!found.found)
    return refuse('INVALID_INPUT', `${harness.title} cannot be used here: ${found.why}`, { hint: `Install it: ${found.install}` })
  const task = await requireTask(ctx, taskId)
  const budgets = [await budgetStore(ctx.view).of(task.id), await budgetStore(ctx.view).of(task.project_id)]
  return unmetered(harness, Object.assign(allowanceOf(given.limits), ...budgets)) ?? {}
}

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
    const runs = await runStore(ctx.view).ofJob(job.id)
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

export const runs = defineTool({
  name: 'run_list',
  title: 'List runs',
  description: 'The lives of the agents of a task, newest first: what each used, and how it ended.',
  input: z.strictObject({ task_id: TaskId, limit: PageSize, before: PageToken.optional() }),
  output: z.strictObject({ runs: z.array(RunView), next: z.string().nullable() }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const rows = await runStore(ctx.view).ofTask(input.task_id, input.before, input.limit)
    return { runs: rows.map((run) => runView(ctx, run)), next: rows.length === input.limit ? (rows.at(-1)?.id ?? null) : null }
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
    let cursor = input.cursor ?? (await ctx.cursor())
    const longest = ctx.setting<number>('runs.wait_max_seconds')
    const until = performance.now() + Math.min(input.timeout_seconds ?? longest, longest) * 1_000
    for (;;) {
      const job = await requireJob(ctx.view, input.job_id)
      const over = !OPEN_STATES.includes(job.state)
      const answer = async (code: 'JOB_ENDED' | 'JOB_STARTED' | 'WAIT_TIMEOUT' | 'WAIT_INTERRUPTED', resume = false) => ({
        job: await jobView(ctx.view, job, ctx.now),
        code,
        timed_out: code === 'WAIT_TIMEOUT',
        resume,
        cursor,
      })
      if (over) return answer('JOB_ENDED')
      if (input.until === 'started' && job.state === 'running') return answer('JOB_STARTED')
      const filter = { subject: job.id, types: [jobEnded.type, jobStarted.type] }
      const { events, ended } = await ctx.waitFor(cursor, filter, Math.max(1, until - performance.now()))
      if (ended === 'timeout') return answer('WAIT_TIMEOUT')
      if (ended === 'hold') return answer('WAIT_TIMEOUT', true)
      if (ended === 'interrupted') return answer('WAIT_INTERRUPTED', true)
      cursor = events.at(-1)?.cursor ?? cursor
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
    const page = await ctx.tail(input.cursor, { task: job.task_id, types: ['job.*', 'run.*'] }, input.limit)
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

async function requireJob(view: Tx, id: string): Promise<JobRow> {
  const job = await jobStore(view).find(id)
  if (!job) throw refuse('RESOURCE_NOT_FOUND', `There is no job "${id}".`, { next_tool: 'job_list', next_arguments: {} })
  return job
}

async function jobView(view: Tx, job: JobRow, now: number): Promise<z.output<typeof JobView>> {
  const { id, task_id, action, state, run_id, lives, submitted_by } = job
  const pending = state === 'queued'
  return {
    id,
    handle: jobHandle(job),
    task_id,
    action,
    state,
    code: pending ? 'START_PENDING' : job.code,
    reason: pending ? (job.reason ?? 'It waits for a free place.') : job.reason,
    position: pending ? (await jobStore(view).inLine(1_000)).findIndex((other) => other.id === id) + 1 || null : null,
    run_id,
    lives,
    cancel_requested: job.cancel_asked_at !== null,
    submitted_by,
    not_before: pending && job.not_before > now ? iso(job.not_before) : null,
    created_at: iso(job.created_at),
    started_at: isoOrNull(job.started_at),
    ended_at: isoOrNull(job.ended_at),
  }
}

function runView(ctx: LookContext, run: RunRow): z.output<typeof RunView> {
  const { id, job_id, task_id, agent_id, kind, harness, model, state, life, host, pid, turns, input_tokens, output_tokens } = run
  return {
    id,
    job_id,
    task_id,
    agent_id,
    kind,
    harness,
    model,
    state,
    life,
    host,
    pid,
    turns,
    input_tokens,
    output_tokens,
    cost_usd: run.cost_micros / 1_000_000,
    estimated: run.estimated === 1,
    limits: shownLimits(JSON.parse(run.limits)),
    heard_at: iso(run.heard_at),
    can_message: state === 'running' && (ctx.ports.harnesses.get(harness)?.can.message ?? false),
    outcome: state === 'ended' ? (run.failure ?? run.exit_detail ?? run.exit_reason) : null,
    exit_code: run.exit_code,
    created_at: iso(run.created_at),
    started_at: isoOrNull(run.started_at),
    ended_at: isoOrNull(run.ended_at),
  }
}
