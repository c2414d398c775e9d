import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { redactText } from '../../kernel/redact.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { HarnessEvent, type Step } from '../../ports/harness.ts'
import { EXIT_REASONS } from '../../ports/runner.ts'
import { admitToken, agentStore, endToken } from '../agent/index.ts'
import { type ApprovalRow, approvalHandle, arrived, ask, passOn, withdrawAll } from '../approval/index.ts'
import { takeTurn } from '../handle.ts'
import { record, type Said } from '../transcript/index.ts'
import { overBudget, overrun } from './budget.ts'
import { forgetRun } from './effects.ts'
import { type Folded, fold, resetsOf } from './fold.ts'
import { messageArrived, presenceChanged, runEnds, runPauses } from './points.ts'
import { aboutRun, endFor, jobOf } from './rules.ts'
import { runEnded, runProgressed, runStarted } from './schema.ts'
import { type RunRow, runStore, usageStore } from './store.ts'

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
  output: z.strictObject({ fits: z.boolean() }),
  async run(ctx, { run_id, host, token_hash }) {
    const run = await requireRun(ctx, run_id)
    if (run.state === 'ended') return { fits: true }
    if (run.host !== host && (await isFull(ctx, host))) return { fits: false }
    const token_id = token_hash && run.agent_id ? await admitToken(ctx, run.agent_id, token_hash) : null
    await runStore(ctx.tx).update(run.id, { host, token_id })
    return { fits: true }
  },
})

/** Whether another machine has to take it. Alone, this one has the place that it was given. */
async function isFull(ctx: RunContext, host: string): Promise<boolean> {
  const store = runStore(ctx.tx)
  if ((await store.hosts()) === 1) return false
  await takeTurn(ctx.tx, 'admission')
  return (await store.livingThere(host)) >= ctx.setting<number>('runs.max_per_host')
}

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
    ctx.emit(runStarted(aboutRun(run), { job_id: jobOf(run), harness: run.harness, host }))
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
    /** The message that it is. */
    message_id: z.string().optional(),
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
      const [message_id, approval_id] = [isLast ? (input.message_id ?? null) : null, isLast ? (input.approval_id ?? null) : null]
      await runStore(ctx.tx).addInput({ run_id: run.id, seq: run.inputs + i + 1, data, close, signal, message_id, approval_id, sent: 0 })
    }
    // Kept by the harness until its program takes it: there is nothing on its way that could arrive.
    if (input.message_id && !inputs.length) await ctx.ask(messageArrived, run, input.message_id)
    if (input.approval_id) said.unshift(await answered(ctx, run, input.approval_id))
    if (input.approval_id && !inputs.length) await arrived(ctx, input.approval_id)
    said.push(...(await questions(ctx, run, folded)))
    await usageStore(ctx.tx).add(run.id, folded.used)
    await record(ctx, { run: run.id, task: run.task_id ?? '' }, said)
    if (next.paused !== run.paused) await ctx.ask(runPauses, next)
    const reason = overrun(next, ctx.now) ?? (await overBudget(ctx, next))
    if (reason) await endFor(ctx, next, reason)
    if (said.length) ctx.emit(runProgressed(aboutRun(run), { job_id: jobOf(run), turns: next.turns, entries: said.length }))
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
    if (input?.message_id) await ctx.ask(messageArrived, await requireRun(ctx, run_id), input.message_id)
    if (input?.approval_id) await arrived(ctx, input.approval_id)
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
    await record(ctx, { run: run.id, task: run.task_id ?? '' }, said)
    if (run.token_id) await endToken(ctx, run.token_id, 'ended with its run')
    ctx.emit(runEnded(aboutRun(run), { job_id: jobOf(run), reason: exit.reason, detail }))
    await ctx.ask(runEnds, run)
    ctx.enqueue(forgetRun({ run_id }, { delayMs: ctx.setting<number>('runs.keep_days') * DAY_MS }))
    return {}
  },
})

/** In this order: what it is told, that no more comes, a signal. */
function inputsOf({ send, close, signal }: Pick<Step, 'close' | 'signal'> & { send: string[] }) {
  const texts = send.map((data) => ({ data, close: 0, signal: null }))
  const end = close ? [{ data: null, close: 1, signal: null }] : []
  return [...texts, ...end, ...(signal ? [{ data: null, close: 0, signal }] : [])]
}

/** The rows of what it asks for now, and of what it does not ask for any more. */
async function questions(ctx: RunContext, run: RunRow, { asked, gone, changes }: Folded): Promise<Said[]> {
  const over = gone === 'all' || gone.size ? await withdrawAll(ctx, run.id, 'The agent went on.', gone === 'all' ? undefined : gone) : []
  const { task_id, project_id, agent_id } = run
  // Of a run without a task nobody is asked: it was started so that its program denies by itself.
  if (task_id !== null) for (const question of asked) await ask(ctx, { run_id: run.id, task_id, project_id, agent_id }, question)
  return over.map((row) => withdrawal(changes.turns ?? run.turns, row, 'the agent went on'))
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

async function requireRun(ctx: RunContext, id: string): Promise<RunRow> {
  const run = await runStore(ctx.tx).find(id)
  if (!run) throw new Error(`the run ${id} is not there`)
  return run
}
