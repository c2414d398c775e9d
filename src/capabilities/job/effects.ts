import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import { Refusal } from '../../kernel/error.ts'
import { GitRefusal } from '../../ports/git.ts'
import { requireHere, requireRun } from '../run/index.ts'
import { Elsewhere, placeOf, type WorkRow, workOf } from '../work/index.ts'
import { lingeredOn, settled } from './reports.ts'
import { taskOf } from './rules.ts'

const ofRun = z.strictObject({ run_id: z.string() })

/** What git refuses so often will not be otherwise; a busy repository may be free at the third. */
const FAILS_BEFORE_GIVING_UP = 3
/** Daemons that are killed in the middle of it do not count. */
const MANY = 100

/** The time that an agent had to end by itself is over. Whether it still has to is decided then: its work may be back. */
export const lingered = defineEffect({
  type: 'run.linger',
  payload: ofRun.extend({ round: z.int() }),
  attempts: MANY,
  async do(ctx, payload) {
    const run = await requireRun(ctx, payload.run_id)
    const hears = ctx.ports.harnesses.get(run.harness)?.can.message ?? false
    await ctx.report(lingeredOn, { ...payload, task_id: taskOf(run), hears })
  },
})

/** Looks at what the run has left in its worktree, which decides what comes next. */
export const settleRun = defineEffect({
  type: 'run.settle',
  payload: ofRun,
  attempts: MANY,
  async do(ctx, { run_id }) {
    const run = await requireRun(ctx, run_id)
    requireHere(ctx, run)
    const work = run.kind === 'agent' ? await workOf(ctx.view, taskOf(run)) : undefined
    await ctx.report(settled, { run_id, task_id: taskOf(run), ...(work ? await lookAt(ctx, work) : NOTHING_LEFT) })
  },
})

const NOTHING_LEFT = { ahead: 0, dirty: 0, fingerprint: '', problem: null }

/** A repository that is away, or a worktree that is none any more, must not keep a job from its end: then that is the reason. */
async function lookAt(ctx: EffectContext, work: WorkRow) {
  try {
    const place = await placeOf(ctx, work)
    if (!place || !work.base_commit) return NOTHING_LEFT
    const { state, ahead, dirty, fingerprint } = await ctx.ports.git.state(place, work.base_commit)
    return { ahead, dirty, fingerprint, problem: WRONG_PLACE[state] ?? null }
  } catch (error) {
    // A repository that was removed is not there the next time either; another daemon has its worktree, and will take it.
    const final = error instanceof Refusal && !(error instanceof GitRefusal)
    const mayChange = !final && ctx.attempt < FAILS_BEFORE_GIVING_UP
    if (mayChange || ctx.signal.aborted || error instanceof Elsewhere) throw error
    const { message } = error instanceof Refusal ? error.body : (error as Error)
    return { ...NOTHING_LEFT, problem: message.slice(0, 1_000) }
  }
}

const WRONG_PLACE: Record<string, string> = {
  missing: 'Its worktree was taken away.',
  foreign: 'What stands at the place of its worktree is none: its .git was removed or replaced. The files are still there.',
}
