import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import type { RunContext } from '../../kernel/tool.ts'
import { GitRefusal, type NewPlace, type Rescue } from '../../ports/git.ts'
import { lineBegins, lineHead } from './line.ts'
import { requireHere, workPlan, worktreePath } from './plan.ts'
import { removed, restored, failed as workFailed, made as workMade } from './reports.ts'
import { removal, whoUses } from './rules.ts'
import { WorkPlan } from './schema.ts'
import { type WorkRow, workStore } from './store.ts'

/** Daemons that are killed in the middle of it, or have not got it, do not count. */
const ATTEMPTS = 100
/** What git refuses so often is told; a lock that somebody holds may be free by then. */
const REFUSALS = 5

/** For an effect that needs the worktree: makes it, or finds it made, and tells. */
export async function makeWorktree(ctx: EffectContext, plan: WorkPlan): Promise<NewPlace & { head: string; from: string }> {
  const { repo, base: branch, base_from, strategy } = plan
  const row = await workStore(ctx.view).find(plan.work_id)
  const line = async (of: string) => (row ? ctx.ask(lineHead, row.repo_id, of) : null)
  const makeBranch = async () => {
    if (base_from) await ctx.ports.git.branch({ repo, branch, base: base_from, strategy, line: await line(base_from) })
  }
  await (row ? ctx.ask(lineBegins, row, makeBranch) : makeBranch())
  const place = { ...placeFor(ctx, plan), line: await line(branch) }
  const { base, head } = await ctx.ports.git.add(place)
  await ctx.report(workMade, { work_id: plan.work_id, path: place.path, host: ctx.ports.daemon.host, base_commit: base, head })
  return { ...place, head, from: base }
}

export const removeWork = defineEffect({
  type: 'work.remove',
  payload: z.strictObject({ plan: WorkPlan, request: z.string() }),
  attempts: ATTEMPTS,
  // To remove what is gone does nothing.
  do: (ctx, { plan, request }) =>
    telling(ctx, plan, 'remove', request, async () => {
      const row = await workStore(ctx.view).find(plan.work_id)
      const place = placeFor(ctx, plan)
      // Somebody was started in it again while this waited for its turn, or while the rest of it was ended.
      await requireUnused(ctx, row)
      if (row) await ctx.ask(removal, row, place)
      await requireUnused(ctx, row)
      const { rescue } = await ctx.ports.git.remove(place, plan.name)
      await ctx.report(removed, { work_id: plan.work_id, rescue: told(rescue) })
    }),
})

async function requireUnused(ctx: EffectContext, row: WorkRow | undefined): Promise<void> {
  const used = row && (await whoUses(ctx, row))
  if (used) throw new GitRefusal('foreign', `${used} It is kept.`)
}

/** What is not committed is saved first; the branch stays. */
export async function takeAway(ctx: RunContext, row: WorkRow): Promise<void> {
  ctx.enqueue(removeWork({ plan: await workPlan(ctx, row), request: ctx.id('removal') }, { queue: row.repo_id }))
}

export const undoWork = defineEffect({
  type: 'work.undo',
  payload: z.strictObject({ plan: WorkPlan, ref: z.string().nullable(), asked_at: z.int(), request: z.string() }),
  attempts: ATTEMPTS,
  // Once more leads to the same files, and what it finds is saved first.
  do: (ctx, { plan, ref, asked_at, request }) =>
    telling(ctx, plan, 'undo', request, async () => {
      const { git } = ctx.ports
      // What this undo itself saved, in an attempt that was cut off, is younger than the question.
      const saved = (await git.rescues(plan.repo, plan.name)).filter(({ at }) => at <= asked_at)
      const wanted = ref ?? saved[0]?.ref
      if (!wanted) throw new GitRefusal('missing', 'Nothing was saved that could be brought back.')
      const { head: _, from: __, ...place } = await makeWorktree(ctx, plan)
      const { rescue } = await git.restore(place, wanted, plan.name)
      await ctx.report(restored, { work_id: plan.work_id, ref: wanted, rescue: told(rescue), request })
    }),
})

/** What will not be otherwise next time is told; a lock that somebody holds may be. */
async function telling(ctx: EffectContext, plan: WorkPlan, what: string, request: string, work: () => Promise<void>): Promise<void> {
  const row = await workStore(ctx.view).find(plan.work_id)
  if (row?.path) await requireHere(ctx, row, { repo: plan.repo, path: row.path, branch: row.branch })
  try {
    await work()
  } catch (error) {
    if (!(error instanceof GitRefusal) || (error.reason === 'busy' && ctx.attempt < REFUSALS)) throw error
    await ctx.report(workFailed, { work_id: plan.work_id, what, message: error.message.slice(0, 2_000), request })
  }
}

function placeFor(ctx: EffectContext, plan: WorkPlan): NewPlace {
  const { repo, branch, base, base_from, strategy } = plan
  // What was merged into a branch of ours is on no remote yet.
  const from = base_from ? ('local' as const) : strategy
  return { repo, path: worktreePath(ctx.ports.git, plan), branch, base, strategy: from }
}

function told(rescue: Rescue | undefined) {
  return rescue ? { ref: rescue.ref, commit: rescue.commit } : null
}
