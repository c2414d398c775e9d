import { z } from 'zod'
import { Refusal, refuse } from '../../kernel/error.ts'
import { mention } from '../../kernel/id.ts'
import type { Principal } from '../../kernel/policy.ts'
import { text } from '../../kernel/schema.ts'
import { defineTool, type LookContext, type RunContext } from '../../kernel/tool.ts'
import { APPROVALS } from '../../ports/harness.ts'
import { nextNumber } from '../handle.ts'
import { JobId, RepoId, TaskId } from '../ids.ts'
import { defaultProgram, programFor, unnamedProgram } from '../programs.ts'
import { projectStore } from '../project/index.ts'
import {
  aboutRun,
  admit,
  allowance,
  allowanceOf,
  approvalsFor,
  askToStop,
  budgetStore,
  cannotAsk,
  Limits,
  type RunRow,
  runInput,
  runStore,
  unmetered,
} from '../run/index.ts'
import { handleOf, requireTask, requireUnblocked, type TaskRow } from '../task/index.ts'
import { planWork, requireRepoThere, workOf } from '../work/index.ts'
import { cancelJob, over } from './admission.ts'
import { isInReview } from './handed-in.ts'
import { aboutJob, type JobArguments, jobHandle, notAuto, taskOf } from './rules.ts'
import { ACTIONS, Action, type ActionName, JobView, jobSubmitted } from './schema.ts'
import { type JobRow, jobStore } from './store.ts'
import { jobView } from './view.ts'

/** All that any harness takes; each refuses what it does not know. */
const Options = z.strictObject({
  command: z
    .array(z.string().max(10_000))
    .min(1)
    .max(200)
    .optional()
    .describe('`command`: the program and its arguments; no shell reads them'),
  env: z.array(text(200)).max(100).optional().describe('`codex`: names of variables that it gets from the environment of the daemon'),
  script: z.string().min(1).max(200_000).optional().describe('`scripted`: what it does'),
  approvals: z
    .enum(APPROVALS)
    .optional()
    .describe('What becomes of what the program asks permission for; default: the setting runs.approvals'),
  file: text(1_000).optional().describe('`scripted`: where the script is in the repository'),
})

/** Each belongs to some of the actions: ACTION_FACTS says which. */
const Arguments = z.strictObject({
  harness: text(40)
    .optional()
    .describe('Which agent program; default: the setting runs.default_harness, else the only one that is installed and logged in'),
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

const ACTION_FACTS: Record<ActionName, ActionFacts> = {
  start_agent: {
    title: 'Start an agent',
    description: 'An agent works on the task in its own worktree, until it asks for review.',
    takes: Arguments.keyof().options,
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
  interrupt_agent: {
    title: 'Interrupt the agent',
    description: 'End what the agent does now; it waits to be told how to go on.',
    takes: [],
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
        signed_in: z
          .boolean()
          .nullable()
          .describe('Whether somebody is logged in to it here; null: nobody does, it is started only by its name'),
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
        const [probed, account] = await Promise.all([harness.probe(), harness.account?.()])
        return {
          name,
          title: harness.title,
          available: probed.found,
          version: probed.found ? probed.version : null,
          install: probed.found ? null : probed.install,
          signed_in: account?.signedIn ?? null,
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
    if (action === 'message_agent' || action === 'interrupt_agent') return (await hears(ctx, task_id, action)) ?? {}
    const starts = action === 'start_agent'
    const looked = starts ? ((await isInReview(ctx, await requireTask(ctx, task_id))) ?? (await lookAtHarness(ctx, task_id, given))) : {}
    if (!(looked instanceof Refusal) && action !== 'stop_agent') await requireRepoThere(ctx, task_id, given.repo_id)
    return looked
  },
  async run(ctx, { task_id, action, ...given }, looked: { harness?: string }) {
    const task = await requireTask(ctx, task_id)
    const refusal = notAuto(task)
    if (refusal) return refusal
    const job = newJob(ctx, task, action, { ...given, ...looked }, await nextNumber(ctx.tx, 'job'))
    const begun = await BEGIN[action](ctx, task, job)
    if (begun instanceof Refusal) return begun
    const now = (await jobStore(ctx.tx).find(job.id)) as JobRow
    return { job_id: job.id, handle: jobHandle(job), job: await jobView(ctx.tx, now, ctx.now) }
  },
})

type Begin = (ctx: RunContext, task: TaskRow, job: JobRow) => Promise<Refusal | undefined>

const BEGIN: Record<ActionName, Begin> = {
  async start_agent(ctx, task, job) {
    const notNow = (await isBusy(ctx, task)) ?? (await isInReview(ctx, task))
    if (notNow) return notNow
    const given = JSON.parse(job.arguments) as JobArguments
    const harness = given.harness ?? defaultProgram(ctx)
    if (!harness) return unnamedProgram()
    if (task.status === 'BACKLOG') await requireUnblocked(ctx, task)
    return queue(ctx, task, { ...job, arguments: JSON.stringify({ ...given, harness }) })
  },

  async resume_agent(ctx, task, job) {
    const notNow = (await isBusy(ctx, task)) ?? (await isInReview(ctx, task))
    if (notNow) return notNow
    const last = (await runStore(ctx.tx).ofTask(task.id, undefined, 50)).find((run) => run.kind === 'agent')
    if (!last) {
      return refuse('INVALID_AGENT_STATE', `No agent has worked on ${handleOf(task)} yet.`, {
        next_tool: 'job_submit',
        next_arguments: { task_id: handleOf(task), action: 'start_agent' },
      })
    }
    if (task.status === 'BACKLOG') await requireUnblocked(ctx, task)
    const before = JSON.parse((await jobStore(ctx.tx).find(last.owner_id))?.arguments ?? '{}') as JobArguments
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
    if (!run && !waiting) return nobodyThere(ctx, task, 'stop')
    await insert(ctx, { ...job, state: 'running', run_id: run?.id ?? null, started_at: ctx.now })
    if (run) await askToStop(ctx, run, 'stopped')
    if (waiting) await cancelJob(ctx, waiting, 'It was stopped.')
    if (!run) await over(ctx, job, 'succeeded', null, null)
    return undefined
  },

  message_agent: say,
  interrupt_agent: say,
}

/** What Signalbox itself has to say to an agent that runs, in the way of message_agent. */
export async function tellAgent(ctx: RunContext, run: RunRow, message: string): Promise<void> {
  const task = await requireTask(ctx, taskOf(run))
  await deliver(ctx, newJob(ctx, task, 'message_agent', { message }, await nextNumber(ctx.tx, 'job')), run)
}

/** As start_agent, or resume_agent where somebody has been at work: for those who decide by themselves that work is to be done. */
export async function beginWork(
  ctx: RunContext,
  task: TaskRow,
  given: Pick<JobArguments, 'harness' | 'model' | 'message' | 'repo_id'>,
): Promise<JobRow | Refusal> {
  const resumes = (await runStore(ctx.tx).ofTask(task.id, undefined, 50)).some((run) => run.kind === 'agent')
  const action = resumes ? 'resume_agent' : 'start_agent'
  const taken = resumes ? { message: given.message } : given
  const refusal = notAuto(task)
  if (refusal) return refusal
  const job = newJob(ctx, task, action, taken, await nextNumber(ctx.tx, 'job'))
  return (await BEGIN[action](ctx, task, job)) ?? ((await jobStore(ctx.tx).find(job.id)) as JobRow)
}

async function say(ctx: RunContext, task: TaskRow, job: JobRow): Promise<Refusal | undefined> {
  const run = await runStore(ctx.tx).livingOf(task.id)
  if (run?.kind !== 'agent') return nobodyThere(ctx, task, 'tell')
  await deliver(ctx, job, run)
  return undefined
}

async function deliver(ctx: RunContext, job: JobRow, run: RunRow): Promise<void> {
  await insert(ctx, { ...job, state: 'running', run_id: run.id, started_at: ctx.now })
  ctx.emit(runInput(aboutRun(run), { job_id: job.id, from: ctx.principal.id }))
}

async function queue(ctx: RunContext, task: TaskRow, job: JobRow): Promise<Refusal | undefined> {
  const { limits, repo_id } = JSON.parse(job.arguments) as JobArguments
  const about = { task: task.id, project: task.project_id }
  const left = job.action === 'run_checks' ? undefined : await allowance(ctx, about, allowanceOf(limits))
  if (left instanceof Refusal) return left
  const work = await planWork(ctx, task, repo_id)
  if (work instanceof Refusal) return work
  await insert(ctx, job)
  await admit(ctx)
  return undefined
}

async function insert(ctx: RunContext, job: JobRow): Promise<void> {
  await jobStore(ctx.tx).insert(job)
  ctx.emit(jobSubmitted(aboutJob(job), { handle: jobHandle(job), action: job.action, state: job.state }))
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

/** What to do instead depends on where the task is; to start an agent in order to stop it helps nobody. */
async function nobodyThere(ctx: RunContext, task: TaskRow, wanted: 'stop' | 'tell'): Promise<Refusal> {
  const said = `No agent works on ${handleOf(task)}.`
  const { hint, next_tool, next_arguments } = (await isInReview(ctx, task))?.body ?? {}
  if (next_tool) return refuse('INVALID_AGENT_STATE', said, { hint, next_tool, next_arguments })
  if (wanted === 'stop') return refuse('INVALID_AGENT_STATE', said, { hint: 'There is nothing to stop.' })
  return refuse('INVALID_AGENT_STATE', said, {
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

async function hears(ctx: LookContext, taskId: string, action: 'message_agent' | 'interrupt_agent'): Promise<Refusal | undefined> {
  const run = await runStore(ctx.view).livingOf(taskId)
  const harness = run && ctx.ports.harnesses.get(run.harness)
  if (!harness || (action === 'message_agent' ? harness.can.message : harness.can.interrupt)) return undefined
  const what = action === 'message_agent' ? 'messages' : 'interruption'
  return refuse('INVALID_AGENT_STATE', `${harness.title} takes no ${what} while it works.`, {
    hint: 'Stop it, and say it with resume_agent or start_agent.',
  })
}

/** What cannot work is said now, and not when its turn comes. */
async function lookAtHarness(ctx: LookContext, taskId: string, given: z.output<typeof Arguments>): Promise<Refusal | { harness: string }> {
  const { approvals, ...own } = given.options ?? {}
  const harness = await programFor(ctx, given.harness, own)
  if (harness instanceof Refusal) return harness
  const { name } = harness
  const options = harness.options.safeParse(own)
  if (!options.success) {
    const [issue] = options.error.issues
    const wrong = issue?.message.endsWith('received undefined') ? 'is missing' : issue?.message
    return refuse('INVALID_INPUT', `options of ${name}: ${issue?.path.join('.')} ${wrong}`, { next_tool: 'job_actions' })
  }
  const unasked = cannotAsk(harness, approvalsFor(ctx, name, approvals))
  if (unasked) return unasked
  const task = await requireTask(ctx, taskId)
  const budgets = [await budgetStore(ctx.view).of(task.id), await budgetStore(ctx.view).of(task.project_id)]
  return unmetered(harness, Object.assign(allowanceOf(given.limits), ...budgets)) ?? { harness: name }
}
