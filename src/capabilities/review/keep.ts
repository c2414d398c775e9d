import { z } from 'zod'
import { defineEffect } from '../../kernel/effect.ts'
import type { RunContext } from '../../kernel/tool.ts'
import { GitRefusal } from '../../ports/git.ts'
import { placeOf, workOf } from '../work/index.ts'
import { reviewStore } from './store.ts'

const MANY = 100
/** A lock that somebody holds may be free by then. */
const REFUSALS = 4

/** What was handed in last, or approved, stays wherever its worker moves the branch. It is let go where it lands. */
export const keepHandedIn = defineEffect({
  type: 'review.keep',
  payload: z.strictObject({ task_id: z.string() }),
  attempts: MANY,
  // Once more it is the same ref, at what holds by then.
  async do(ctx, { task_id }) {
    const [round] = await reviewStore(ctx.view).latest([task_id])
    const work = await workOf(ctx.view, task_id)
    const commit = round?.head_commit ?? round?.handed_in
    const place = work && (await placeOf(ctx, work))
    if (!round || !commit || !place || round.outcome === 'merged') return
    try {
      await ctx.ports.git.keep(place.repo, task_id, commit)
    } catch (error) {
      // Whoever merges it says what is missing.
      if (!(error instanceof GitRefusal) || (error.reason === 'busy' && ctx.attempt < REFUSALS)) throw error
    }
  },
})

export function keepCommit(ctx: RunContext, task_id: string): void {
  ctx.enqueue(keepHandedIn({ task_id }, { queue: `keep:${task_id}` }))
}
