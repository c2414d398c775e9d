import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { redactText } from '../../kernel/redact.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { HarnessEvent, type Step } from '../../ports/harness.ts'
import { EXIT_REASONS } from '../../ports/runner.ts'
import { admitToken, agentStore, endToken } from '../agent/index.ts'
import { type ApprovalRow, approvalHandle, arrived, ask, passOn, type Question, withdrawAll } from '../approval/index.ts'
import { TaskId } from '../ids.ts'
import { withdraw } from '../setup/index.ts'
import { isDuty, type TaskRow, taskStore } from '../task/index.ts'
import { record, type Said } from '../transcript/index.ts'
import { admit, again, cancelJob, over } from './admission.ts'
import { overBudget, overrun } from './budget.ts'
import { forgetRun, launching, settleRun } from './effects.ts'
import { handIn, handIns } from './handed-in.ts'
import { presenceChanged } from './presence.ts'
import { aboutJob, aboutRun, askToStop, endFor, isSaid, type JobArguments, jobHandle, letEnd, putBack, sentBack } from './rules.ts'
import { jobPaused, MICROS, OPEN_STATES, runEnded, runProgressed, runStarted } from './schema.ts'
import { type Next, whatNext } from './settle.ts'
import { type JobRow, jobStore, type RunRow, runStore, type TurnUsage, usageStore } from './store.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 3_600_000

/** What the daemon tells of runs. Each is one transaction, and says the same when it is said again. */
const internal = { impact: 'write', profile: 'maintainer', internal: true, output: z.strictObject({}) } as const
const Told = z.strictObject({ run_id: z.string() })
const Exit = z.strictObject({
  reason: z.enum(EXIT_REASONS),
  code: z.int().nullable(),
  signal: z.string().nullable(),
  detail: z.string(),
  at: z.number().optional(),
})

export const prepared = defineTool({
  ...internal,
  name: 'run_prepared',
  title: 'A run has its token',
  description: 'The secret lies in a file of the run; here its hash becomes a token of the agent.',
  input: Told.extend({ host: z.string(), token_hash: z.string().nullable() }),
  async run(ctx, { run_id, host, token_hash }) {
    const run = await requireRun(ctx, run_id)
    if (run.state === 'ended') return {}
    const token_id = token_hash && run.agent_id ? await admitToken(ctx, run.agent_id, token_hash) : null
    await runStore(ctx.tx).update(run.id, { host, token_id })
    return {}
  },
})

export const started = defineTool({
  ...internal,
  name: 'run_started',
  title: 'A run has its process',
  description: 'The runner has written down who it is.',
  input: Told.extend({ host: z.string(), pid: z.int(), started: z.string(), boot: z.string(), state: z.string() }),
  async run(ctx, { run_id, host, pid, started: process_started, boot, state: harness_state }) {
    const run = await requireRun(ctx, run_id)
    if (run.state !== 'starting') return {}
    const now = { state: 'running', host, pid, process_started, boot, harness_state, started_at: ctx.now, heard_at: ctx.now } as const
    await runStore(ctx.tx).update(run.id, now)
    ctx.emit(runStarted(aboutRun(run), { job_id: run.job_id, harness: run.harness, host }))
    await presenceChanged(ctx, run)
    return {}
  },
})

export const progressed = defineTool({
  ...internal,
  name: 'run_progressed',
  title: 'A run has printed something',
  description: 'What it means, how far it was read, and what the program is to be told.',
  input: Told.extend({
    step: z.int(),
    offset: z.int(),
    /** The harness's own, as JSON. */
    state: z.string(),
    events: z.array(HarnessEvent),
    send: z.array(z.string()),
    close: z.boolean().optional(),
    signal: z.enum(['SIGINT', 'SIGTERM']).optional(),
    /** The job that wanted it said. */
    job_id: z.string().optional(),
    /** The decision that it passes on. */
    approval_id: z.string().optional(),
  }),
  async run(ctx, input) {
    const run = await requireRun(ctx, input.run_id)
    if (run.state === 'ended') return {}
    if (run.step !== input.step) return refuse('CONFLICT', `That run is at step ${run.step}, not ${input.step}.`)
    const folded = fold(run, input.events, resetsOf(ctx))
    const { changes, said } = folded
    const inputs = inputsOf(input)
    const next = { ...run, ...changes, spool_offset: input.offset, harness_state: input.state, heard_at: ctx.now }
    next.inputs += inputs.length
    if (!(await runStore(ctx.tx).advance(run, next))) return refuse('CONFLICT', 'That run was taken a step further by somebody else.')
    for (const [i, { data, close, signal }] of inputs.entries()) {
      const isLast = i === inputs.length - 1
      const [job_id, approval_id] = [isLast ? (input.job_id ?? null) : null, isLast ? (input.approval_id ?? null) : null]
      await runStore(ctx.tx).addInput({ run_id: run.id, seq: run.inputs + i + 1, data, close, signal, job_id, approval_id, sent: 0 })
    }
    // Kept by the harness until its program takes it: there is nothing on its way that could arrive.
    const kept = input.job_id && !inputs.length ? await jobStore(ctx.tx).find(input.job_id) : undefined
    if (kept?.state === 'running') await over(ctx, kept, 'succeeded', null, null)
    if (input.approval_id) said.unshift(await answered(ctx, run, input.approval_id))
    if (input.approval_id && !inputs.length) await arrived(ctx, input.approval_id)
    said.push(...(await questions(ctx, run, folded)))
    await usageStore(ctx.tx).add(run.id, folded.used)
    await record(ctx, { run: run.id, task: run.task_id }, said)
    if (next.paused !== run.paused) await tellPaused(ctx, next)
    const reason = overrun(next, ctx.now) ?? (await overBudget(ctx, next))
    if (reason) await endFor(ctx, next, reason)
    if (said.length) ctx.emit(runProgressed(aboutRun(run), { job_id: run.job_id, turns: next.turns, entries: said.length }))
    return {}
  },
})

export const sent = defineTool({
  ...internal,
  name: 'run_sent',
  title: 'An input has arrived',
  description: 'The runner has it; a message or an answer that it belongs to is delivered.',
  input: Told.extend({ seq: z.int() }),
  async run(ctx, { run_id, seq }) {
    const store = runStore(ctx.tx)
    const input = await store.input(run_id, seq)
    await store.sent(run_id, seq)
    const job = input?.job_id ? await jobStore(ctx.tx).find(input.job_id) : undefined
    if (job?.state === 'running') await over(ctx, job, 'succeeded', null, null)
    if (input?.approval_id) await arrived(ctx, input.approval_id)
    return {}
  },
})

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

export const ended = defineTool({
  ...internal,
  name: 'run_ended',
  title: 'A run has ended',
  description: 'Nothing of it lives any more. Its token ends with it.',
  input: Told.extend({ exit: Exit, events: z.array(HarnessEvent) }),
  async run(ctx, { run_id, exit, events }) {
    const run = await requireRun(ctx, run_id)
    if (run.state === 'ended') return {}
    const { changes, said, used } = fold(run, events, resetsOf(ctx))
    const detail = redactText(exit.detail)
    const facts = { exit_reason: exit.reason, exit_code: exit.code, exit_signal: exit.signal, exit_detail: detail }
    await runStore(ctx.tx).update(run.id, { ...changes, ...facts, state: 'ended', ended_at: ctx.now, open_calls: 0 })
    const withdrawn = await withdrawAll(ctx, run.id, 'The run ended.')
    said.push(...withdrawn.map((row) => withdrawal(changes.turns ?? run.turns, row, 'the run ended')))
    await usageStore(ctx.tx).add(run.id, used)
    await record(ctx, { run: run.id, task: run.task_id }, said)
    if (run.token_id) await endToken(ctx, run.token_id, 'ended with its run')
    ctx.emit(runEnded(aboutRun(run), { job_id: run.job_id, reason: exit.reason, detail }))
    await withdraw(ctx, run.task_id, launching(run.id))
    await nobodyHears(ctx, run)
    ctx.enqueue(settleRun({ run_id }, { queue: run.id }))
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
    const job = await jobStore(ctx.tx).held(run.job_id)
    if (job?.state !== 'running' || job.run_id !== run.id) return {}
    await runStore(ctx.tx).update(run.id, { fingerprint: work.fingerprint })
    ctx.enqueue(forgetRun({ run_id }, { delayMs: ctx.setting<number>('runs.keep_days') * DAY_MS }))
    if (run.kind === 'checks') await settleChecks(ctx, job, run)
    else await follow(ctx, job, run, await nextOf(ctx, job, run, work))
    await stopsAreOver(ctx, run)
    await admit(ctx)
    await presenceChanged(ctx, run)
    return {}
  },
})

export const admitNow = defineTool({
  ...internal,
  name: 'job_admit',
  title: 'Look at the line again',
  description: 'Something that waited for its time, or for a place, may begin.',
  input: z.strictObject({}),
  later: 'job.admit',
  async run(ctx) {
    const later = await admit(ctx)
    // By the clock of the database it was time, by ours not quite.
    if (later !== undefined && later - ctx.now < MINUTE_MS) ctx.later(admitNow, {}, { delayMs: later - ctx.now + 1 })
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
    if (run.reported !== round || (hears && isBackAt(run, await taskStore(ctx.tx).find(run.task_id)))) return {}
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
  const lives = (await runStore(ctx.tx).ofJob(job.id)).filter((life) => life.resets_at === null && !handedIn(life))
  const ofOthers = (await runStore(ctx.tx).ofTask(job.task_id, run.id, EARLIER_RUNS)).find(
    // Also a life of this job whose work was sent back: to leave it as it was is to ignore the feedback.
    (life) => (life.job_id !== job.id || handedIn(life)) && life.fingerprint,
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
  const task = await taskStore(ctx.tx).find(run.task_id)
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
  const open = await jobStore(ctx.tx).list({ task: run.task_id, states: ['running'] }, undefined, 200)
  for (const job of open) if (job.action === 'stop_agent') await over(ctx, job, 'succeeded', null, null)
}

/** Messages that have not arrived, whether they were on their way or not. */
async function nobodyHears(ctx: RunContext, run: RunRow): Promise<void> {
  const open = await jobStore(ctx.tx).list({ task: run.task_id, states: ['running'] }, undefined, 200)
  for (const job of open.filter((job) => isSaid(job) && job.run_id === run.id))
    await over(ctx, job, 'failed', 'INVALID_AGENT_STATE', 'The run ended before it arrived.')
}

/** In this order: what it is told, that no more comes, a signal. */
function inputsOf({ send, close, signal }: Pick<Step, 'close' | 'signal'> & { send: string[] }) {
  const texts = send.map((data) => ({ data, close: 0, signal: null }))
  const end = close ? [{ data: null, close: 1, signal: null }] : []
  return [...texts, ...end, ...(signal ? [{ data: null, close: 0, signal }] : [])]
}

interface Resets {
  /** When a provider is asked again that does not say. */
  unknown: number
  /** One that names a time of the past would be asked without end. */
  soonest: number
}

function resetsOf(ctx: RunContext): Resets {
  return {
    unknown: ctx.now + ctx.setting<number>('runs.quota_retry_minutes') * MINUTE_MS,
    soonest: ctx.now + ctx.setting<number>('runs.quota_least_seconds') * 1_000,
  }
}

interface Folded {
  changes: Partial<RunRow>
  said: Said[]
  /** What it asks permission for, and still did at the end of these events. */
  asked: Question[]
  /** Of what it asked before, these are not asked any more; `all` at the end of a turn. */
  gone: Set<string> | 'all'
  /** By turn. */
  used: Map<number, TurnUsage>
}

/** What events do to a run's row, and what of them is kept besides. */
function fold(run: RunRow, events: z.output<typeof HarnessEvent>[], resets: Resets): Folded {
  const changed = { ...run }
  const said: Said[] = []
  const used: Folded['used'] = new Map()
  let asked: Question[] = []
  let gone: Folded['gone'] = new Set()
  for (const event of events) {
    switch (event.type) {
      case 'ready':
        changed.session = event.session
        break
      case 'turn_started':
        changed.turns++
        changed.paused = 0
        asked = []
        gone = 'all'
        break
      case 'text':
        said.push({ turn: changed.turns, kind: event.from, body: event.text })
        break
      case 'tool_call':
        changed.open_calls++
        said.push({ turn: changed.turns, kind: 'tool_call', name: event.name, body: event.input })
        break
      case 'tool_result':
        changed.open_calls = Math.max(0, changed.open_calls - 1)
        asked = asked.filter(({ id }) => id !== event.id)
        if (gone !== 'all') gone.add(event.id)
        said.push({ turn: changed.turns, kind: 'tool_result', body: event.ok ? event.output : `Failed. ${event.output}` })
        break
      case 'usage':
        used.set(changed.turns, usedBefore(used.get(changed.turns), event))
        changed.input_tokens += event.input_tokens
        changed.output_tokens += event.output_tokens
        changed.cached_tokens += event.cached_tokens
        changed.cost_micros += Math.round((event.cost_usd ?? 0) * MICROS)
        if (event.estimated) changed.estimated = 1
        break
      case 'limit_reached':
        changed.failure = redactText(event.message)
        changed.resets_at = Math.max(event.resets_at ?? resets.unknown, resets.soonest)
        said.push({ turn: changed.turns, kind: 'signalbox', body: event.message })
        break
      case 'failed':
        changed.failure ??= redactText(event.reason)
        said.push({ turn: changed.turns, kind: 'signalbox', body: event.reason })
        break
      case 'exited':
        changed.ok = event.ok ? 1 : 0
        if (!event.ok) changed.failure ??= redactText(event.reason)
        break
      case 'turn_ended':
        changed.paused = event.how === 'interrupted' ? 1 : 0
        asked = []
        gone = 'all'
        break
      case 'approval_asked':
        asked.push(event)
        said.push({
          turn: changed.turns,
          kind: 'signalbox',
          name: event.name,
          body: `It asks for permission: ${event.name}\n${event.input}`,
        })
        break
    }
  }
  const { session, turns, open_calls, paused, input_tokens, output_tokens, cached_tokens, cost_micros, estimated, failure, resets_at, ok } =
    changed
  return {
    said,
    asked,
    gone,
    used,
    changes: {
      session,
      turns,
      open_calls,
      paused,
      input_tokens,
      output_tokens,
      cached_tokens,
      cost_micros,
      estimated,
      failure,
      resets_at,
      ok,
    },
  }
}

/** The rows of what it asks for now, and of what it does not ask for any more. */
async function questions(ctx: RunContext, run: RunRow, { asked, gone, changes }: Folded): Promise<Said[]> {
  const over = gone === 'all' || gone.size ? await withdrawAll(ctx, run.id, 'The agent went on.', gone === 'all' ? undefined : gone) : []
  const { task_id, project_id, agent_id } = run
  for (const question of asked) await ask(ctx, { run_id: run.id, task_id, project_id, agent_id }, question)
  return over.map((row) => withdrawal(changes.turns ?? run.turns, row, 'the agent went on'))
}

/** What moves the task next is another thing now: boards and pages must hear of it. */
async function tellPaused(ctx: RunContext, { job_id, paused }: RunRow): Promise<void> {
  const job = await jobStore(ctx.tx).find(job_id)
  if (job) ctx.emit(jobPaused(aboutJob(job), { handle: jobHandle(job), action: job.action, paused: paused === 1 }))
}

/** Thrown, because what was already given must not be given again with all else that belongs to it. */
async function answered(ctx: RunContext, run: RunRow, id: string): Promise<Said> {
  const row = await passOn(ctx, id)
  if (!row) throw refuse('CONFLICT', 'That answer was given before, or is not asked for any more.')
  const person = row.decided_by && (await agentStore(ctx.tx).person(row.decided_by))
  const what = `${approvalHandle(row)} (${row.name})`
  const said = row.state === 'expired' ? `${what} has expired.` : `${person ? person.name : 'Signalbox'} ${row.state} ${what}.`
  return { turn: run.turns, kind: 'signalbox', body: row.message ? `${said} ${row.message}` : said }
}

function withdrawal(turn: number, row: ApprovalRow, why: string): Said {
  return { turn, kind: 'signalbox', body: `${approvalHandle(row)} (${row.name}) was withdrawn: ${why} without an answer.` }
}

function usedBefore(before: TurnUsage | undefined, event: Extract<z.output<typeof HarnessEvent>, { type: 'usage' }>): TurnUsage {
  return {
    input_tokens: (before?.input_tokens ?? 0) + event.input_tokens,
    output_tokens: (before?.output_tokens ?? 0) + event.output_tokens,
    cached_tokens: (before?.cached_tokens ?? 0) + event.cached_tokens,
    cost_micros: (before?.cost_micros ?? 0) + Math.round((event.cost_usd ?? 0) * MICROS),
    estimated: before?.estimated || event.estimated ? 1 : 0,
  }
}

async function requireRun(ctx: RunContext, id: string): Promise<RunRow> {
  const run = await runStore(ctx.tx).find(id)
  if (!run) throw new Error(`the run ${id} is not there`)
  return run
}
