import type { LookContext } from '../../kernel/tool.ts'
import { mergeStore } from '../merge/index.ts'
import type { Step } from '../need/index.ts'
import { projectStore } from '../project/index.ts'
import { handleOf, type StepSource, type TaskRow } from '../task/index.ts'
import { workOf } from '../work/index.ts'

/** Of work that was handed in. */
export const toReview: StepSource = async (ctx, tasks) => {
  const steps = new Map<string, Step[]>()
  for (const { task, told } of tasks)
    if (task.status === 'REVIEW' && task.lead === 0 && told === undefined) steps.set(task.id, await stepsOf(ctx, task))
  return steps
}

async function stepsOf({ view }: LookContext, task: TaskRow): Promise<Step[]> {
  const task_id = handleOf(task)
  const merge = await mergeStore(view).lastOf(task.id)
  // Approved, and kept back with all the others.
  if (merge && merge.ended_at === null && (await mergeStore(view).line(merge.repo_id, merge.target))?.held) {
    const repo_id = (await projectStore(view).repo(merge.repo_id))?.handle ?? merge.repo_id
    return [{ tool: 'merge_retry', arguments: { repo_id, target: merge.target } }]
  }
  const sendBack = { tool: 'review_decide', arguments: { task_id, decision: 'request_changes', feedback: '…' } }
  const work = await workOf(view, task.id)
  // Moved there by hand: there is nothing that could be merged.
  if (!work || work.state === 'planned') return [{ tool: 'task_close', arguments: { task_id, reason: '…' } }, sendBack]
  return [{ tool: 'diff_get', arguments: { task_id } }, { tool: 'review_decide', arguments: { task_id, decision: 'approve' } }, sendBack]
}
