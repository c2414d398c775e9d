import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import { GitRefusal } from '../../ports/git.ts'
import { projectStore } from '../project/index.ts'
import { reviewStore } from '../review/index.ts'
import { epicOf, handleOf, taskStore } from '../task/index.ts'
import { workOf } from '../work/index.ts'

const ATTEMPTS = 5
const MOST_FILES = 100

/** One commit of what was approved, on the branch of its epic. It knows its earlier self by the trailers of that commit. */
export const mergeWork = defineEffect({
  type: 'review.merge',
  payload: z.strictObject({ review_id: z.string() }),
  attempts: ATTEMPTS,
  // Once more finds the commit, and tells the same.
  recognise: async () => 'not_done',
  async do(ctx, { review_id }) {
    const told = await facts(ctx, review_id)
    if (!told) return
    const { into, ...merge } = told
    try {
      const squashed = await ctx.ports.git.squash({ ...merge, into })
      if (squashed.result === 'conflict')
        await ctx.report('review_conflict', { review_id, into: into.branch, files: squashed.files.slice(0, MOST_FILES) })
      else
        await ctx.report('review_merged', {
          review_id,
          into: into.branch,
          commit: squashed.commit,
          moved: squashed.result === 'merged',
        })
    } catch (error) {
      // A lock that somebody holds may be free next time; what git will never do is told.
      if (!(error instanceof GitRefusal) || (error.reason === 'busy' && ctx.attempt < ATTEMPTS)) throw error
      await ctx.report('review_stuck', { review_id, into: into.branch, reason: error.message.slice(0, 2_000) })
    }
  },
})

/** Undefined when it is decided otherwise by now. */
async function facts(ctx: EffectContext, id: string) {
  const review = await reviewStore(ctx.view).find(id)
  const task = review && (await taskStore(ctx.view).find(review.task_id))
  if (!review || !task || review.decision !== 'approve' || review.outcome !== null) return undefined
  const [work, epic] = [await workOf(ctx.view, task.id), await epicOf(ctx.view, task)]
  const repo = work && (await projectStore(ctx.view).repo(work.repo_id))
  if (!epic || !repo || review.head_commit === null) throw new Error(`${id} has no work that could be merged`)
  return {
    repo: repo.path,
    commit: review.head_commit,
    into: { repo: repo.path, branch: epic.branch, base: epic.branch_from, strategy: work.strategy },
    message: `${handleOf(task)} ${task.title}\n\n${review.summary}`,
    trailers: { 'Signalbox-Task': task.id, 'Signalbox-Review': review.id },
  }
}
