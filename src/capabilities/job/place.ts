import type { EffectContext } from '../../kernel/effect.ts'
import { launching, type Place, type RunRow } from '../run/index.ts'
import { environmentOfWork, makeReady } from '../setup/index.ts'
import { taskStore, whyNotScript } from '../task/index.ts'
import { makeWorktree, placeOf, workOf, workPlan } from '../work/index.ts'
import { briefFor } from './brief-for.ts'
import { taskOf } from './rules.ts'

/** The worktree of its task, set up. */
export async function placeOfRun(ctx: EffectContext, run: RunRow): Promise<Place | 'later' | { problem: string }> {
  const task = taskOf(run)
  const work = await workOf(ctx.view, task)
  if (!work) throw new Error(`the work of ${task} is not there`)
  await placeOf(ctx, work)
  const place = await makeWorktree(ctx, await workPlan(ctx, work))
  const ready = await makeReady(ctx, { work, place, by: run.id, next: launching(run.id) })
  if (ready !== 'ready') return ready
  return {
    cwd: place.path,
    repo: place.repo,
    env: await environmentOfWork(ctx, work),
    noScript: await scriptOf(ctx, task),
    brief: () => briefFor(ctx, run, place),
  }
}

async function scriptOf({ view }: EffectContext, id: string): Promise<string | null> {
  const task = await taskStore(view).find(id)
  return task ? whyNotScript(view, task) : null
}
