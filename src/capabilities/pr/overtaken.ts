import type { RunContext } from '../../kernel/tool.ts'
import { sendLetter } from '../agent/index.ts'
import { lineRef, type MovedMerge, mergeStore } from '../merge/index.ts'
import { handleOf, isDuty, type Status, taskStore } from '../task/index.ts'
import { prStore } from './store.ts'

const MOST_TOLD = 1_000
const AT_WORK: Status[] = ['IN_PROGRESS', 'REVIEW']

/** Those whose pull requests into the same branch are open. What is in the line needs nobody: it is merged with what landed by itself. */
export async function askToRebase(ctx: RunContext, { merge: { repo_id, target }, task: landed }: MovedMerge): Promise<number> {
  const filter = { project: landed.project_id, statuses: AT_WORK, exclude: [landed.id] }
  const others = await taskStore(ctx.tx).list(filter, 'number', undefined, MOST_TOLD)
  const prs = await prStore(ctx.tx).ofTasks(others.map(({ id }) => id))
  const pending = new Set(prs.filter((pr) => pr.state === 'OPEN' && pr.repo_id === repo_id && pr.base === target).map((pr) => pr.task_id))
  for (const { task_id } of await mergeStore(ctx.tx).inLine(repo_id, target)) pending.delete(task_id)
  let sent = 0
  for (const task of others) {
    if (!task.assignee_id || isDuty(task) || !pending.has(task.id)) continue
    const body = `${handleOf(landed)} (${landed.title}) was merged into ${target}. Your work on ${handleOf(task)} began before that: merge or rebase onto ${lineRef(target)} before you go on, so that nothing of it conflicts.`
    const where = { project_id: task.project_id, epic_id: task.epic_id, task_id: task.id }
    await sendLetter(ctx, { from: 'system', to: task.assignee_id, subject: 'Rebase Required', body, about: where })
    sent++
  }
  return sent
}
