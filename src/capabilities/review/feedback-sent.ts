import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { defineTool } from '../../kernel/tool.ts'
import { TaskId } from '../ids.ts'
import { about, handleOf, taskStore } from '../task/index.ts'
import { fileOf, textOf } from './deliver.ts'
import { back } from './rules.ts'
import { reviewDecided, reviewFeedback } from './schema.ts'
import { feedbackStore, reviewStore } from './store.ts'

export const sent = defineTool({
  name: 'feedback_sent',
  title: 'Feedback has arrived',
  description: 'It is a commit on the branch of the work, or it is said why not; the task goes back to its worker.',
  // Held: its worker's run may be settled at this moment, and would see the task half from before and half from after.
  input: z.strictObject({ feedback_id: z.string(), task_id: TaskId, commit: z.string().nullable(), problem: z.string().nullable() }),
  output: z.strictObject({}),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { feedback_id, commit, problem }) {
    const row = await feedbackStore(ctx.tx).find(feedback_id)
    const [round, task] = row ? [await reviewStore(ctx.tx).find(row.review_id), await taskStore(ctx.tx).find(row.task_id)] : []
    if (!row || !round || !task) throw refuse('RESOURCE_NOT_FOUND', `There is no feedback "${feedback_id}".`)
    if (row.state !== 'sending') return {}
    const [handle, to_id] = [handleOf(task), task.assignee_id]
    const state = commit ? 'sent' : 'failed'
    await feedbackStore(ctx.tx).update(row.id, { state, commit_hash: commit, reason: problem, to_id, sent_at: ctx.now })
    const decided = { decision: 'request_changes', decided_by: row.from_id, decided_at: ctx.now } as const
    // Of what was given up meanwhile, that is the decision.
    if (round.abandoned_at === null)
      await reviewStore(ctx.tx).update(round.id, { ...decided, feedback: row.feedback, outcome: null, reason: null })
    const where = commit
      ? `It is also in ${fileOf(row)} on your branch, by the commit ${commit.slice(0, 12)}.`
      : `It is not on your branch: ${problem}`
    const said = { from: row.from_id, subject: `Changes Requested: ${handle}`, body: `${textOf(row)}\n\n${where}` }
    if (task.deleted_at === null) await back(ctx, task, said)
    const on = { ...about(task), subject: round.id }
    if (round.abandoned_at === null)
      ctx.emit(reviewDecided(on, { handle, round: round.round, decision: 'request_changes', decided_by: row.from_id }))
    const { feedback_type, from_id } = row
    const told = { handle, round: round.round, feedback_id, feedback_type, from: from_id, to: to_id, commit, reason: problem }
    ctx.emit(reviewFeedback(on, told))
    return {}
  },
})
