import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import { NotHere } from '../../kernel/error.ts'
import type { Harness, Launch, LaunchPlan } from '../../ports/harness.ts'
import type { Exit } from '../../ports/runner.ts'
import { hashOf, newSecret } from '../agent/index.ts'
import type { Allowance } from './budget.ts'
import { runPlace } from './points.ts'
import { type RunRow, runStore } from './store.ts'
import '../../ports/runner.ts'
import { ended as runEnded, prepared as runPrepared, started as runStarted } from './reports.ts'

const ofRun = z.strictObject({ run_id: z.string() })

/** A program that cannot be started will not be found at the tenth attempt either; a busy repository may be free at the third. */
const FAILS_BEFORE_GIVING_UP = 3
/** Daemons that are killed in the middle of it do not count. */
const MANY = 100
const MOST_OUTPUT_BYTES = 256 * 1_024 * 1_024
export const GRACE_MS = 5_000

/** Place, token, process: each step knows its earlier self, so a repeated one begins at the first. */
export const launchRun = defineEffect({
  type: 'run.launch',
  payload: ofRun,
  attempts: MANY,
  async do(ctx, { run_id }) {
    try {
      await launch(ctx, run_id)
    } catch (error) {
      // Another daemon has its place, and will take it.
      if (ctx.attempt < FAILS_BEFORE_GIVING_UP || ctx.signal.aborted || error instanceof NotHere) throw error
      await ctx.report(runEnded, { run_id, exit: neverBegan((error as Error).message), events: [] })
    }
  },
})

/** As an owner enqueues it, that has its place ready by then. */
export const launching = (run_id: string) => launchRun({ run_id }, { queue: run_id })

async function launch(ctx: EffectContext, run_id: string): Promise<void> {
  const { runner, harnesses, daemon } = ctx.ports
  const run = await requireRun(ctx, run_id)
  if (run.state === 'ended') return
  const there = await runner.look(run_id)
  const begun = there.state === 'running' || there.state === 'ended'
  // What was stopped before it began is ended by what stops it.
  if (run.stop_asked !== null && !begun) return
  if (begun) return reportStarted(ctx, run_id, await runner.start(run_id, NOTHING))
  const place = await ctx.ask(runPlace, run)
  if (place === undefined) throw new Error(`Nobody knows where a run of a ${run.owner_kind} takes place.`)
  if (place === 'later') return
  // The next life tries again.
  if ('problem' in place) return ctx.report(runEnded, { run_id, exit: neverBegan(place.problem), events: [] }).then()
  const harness = harnesses.get(run.harness)
  if (!harness) throw new Error(`This daemon has no harness "${run.harness}".`)
  const token = run.kind === 'agent' ? await runner.keep(run_id, 'token', () => newSecret('agent')) : ''
  const { fits } = await ctx.report(runPrepared, { run_id, host: daemon.host, token_hash: token ? hashOf(token) : null })
  if (!fits) throw new NotHere('A free place', 'another machine')
  const folder = await runner.folder(run_id)
  const url = `${await daemon.address()}/mcp`
  const { cwd, repo, noScript } = place
  const plan = planOf(harness, {
    run: run_id,
    folder,
    cwd,
    task: run.task_id,
    brief: run.kind === 'agent' ? await place.brief() : '',
    mcp: { url, token, tokenFile: `${folder}/token` },
    model: run.model,
    approvals: run.approvals,
    session: run.session,
    noScript,
    options: JSON.parse(run.options),
  })
  // It would refuse the next time too.
  if (plan instanceof Error) return ctx.report(runEnded, { run_id, exit: neverBegan(plan.message), events: [] }).then()
  for (const [name, content] of Object.entries(plan.files)) await runner.keep(run_id, name, () => content)
  const { wall_clock } = JSON.parse(run.limits) as Allowance
  const { argv, inherit, stdin } = plan
  const env = { ...place.env, ...plan.env, ...(token ? { SIGNALBOX_URL: url } : {}) }
  const limits = { wallClockMs: wall_clock ?? null, outputBytes: MOST_OUTPUT_BYTES, graceMs: GRACE_MS }
  await runner.keep(run_id, FIRST_STATE, () => JSON.stringify(plan.state ?? harness.begin()))
  await reportStarted(
    ctx,
    run_id,
    await runner.start(run_id, { argv, env, inherit, stdin, cwd, ...(repo === null ? {} : { repo }), ...limits }),
  )
}

/** An error: it is not started like this, and says why. */
function planOf(harness: Harness, launch: Launch): LaunchPlan | Error {
  try {
    return harness.launch(launch)
  } catch (error) {
    return error as Error
  }
}

/** Beside the process: a daemon that finds it running did not make the plan that it was started by. */
const FIRST_STATE = 'state.json'

/** For one that was started before: it is only asked who it is. */
const NOTHING = {
  argv: ['/bin/false'],
  cwd: '/',
  env: {},
  inherit: [],
  stdin: 'closed',
  wallClockMs: null,
  outputBytes: 1,
  graceMs: 0,
} satisfies Parameters<EffectContext['ports']['runner']['start']>[1]

async function reportStarted(ctx: EffectContext, run_id: string, { pid, started, boot }: { pid: number; started: string; boot: string }) {
  const state = await ctx.ports.runner.keep(run_id, FIRST_STATE, () => '{}')
  await ctx.report(runStarted, { run_id, host: ctx.ports.daemon.host, pid, started, boot, state })
}

/** Ends the whole tree. That it has ended is told by what follows the run, or here when it never began. */
export const stopRun = defineEffect({
  type: 'run.stop',
  payload: ofRun.extend({ why: z.enum(['stopped', 'budget']) }),
  attempts: MANY,
  async do(ctx, { run_id, why }) {
    const run = await requireRun(ctx, run_id)
    // On another machine it is stopped by whoever follows it.
    if (run.state === 'ended' || isElsewhere(ctx, run)) return
    const { state } = await ctx.ports.runner.look(run_id)
    if (state === 'absent' || state === 'prepared')
      await ctx.report(runEnded, { run_id, exit: { ...neverBegan('It was stopped before it began.'), reason: why }, events: [] })
    else await ctx.ports.runner.stop(run_id, why, GRACE_MS)
  },
})

/** What it printed is in its transcript by then. */
export const forgetRun = defineEffect({
  type: 'run.forget',
  payload: ofRun,
  attempts: MANY,
  async do(ctx, { run_id }) {
    requireHere(ctx, await requireRun(ctx, run_id))
    await ctx.ports.runner.forget(run_id)
  },
})

export async function requireRun(ctx: EffectContext, id: string): Promise<RunRow> {
  const run = await runStore(ctx.view).find(id)
  if (!run) throw new Error(`the run ${id} is not there`)
  return run
}

/** Where several daemons share a database, each sees the processes and worktrees of its own machine only. */
function isElsewhere(ctx: EffectContext, run: RunRow): boolean {
  return run.host !== null && run.host !== ctx.ports.daemon.host
}

export function requireHere(ctx: EffectContext, run: RunRow): void {
  if (isElsewhere(ctx, run)) throw new NotHere('That run', run.host as string)
}

function neverBegan(detail: string): Omit<Exit, 'at'> {
  return { reason: 'spawn_failed', code: null, signal: null, detail: detail.slice(0, 2_000) }
}
