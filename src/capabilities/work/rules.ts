import { type Refusal, refuse } from '../../kernel/error.ts'
import { type Principal, reaches } from '../../kernel/policy.ts'
import type { Tx } from '../../kernel/storage.ts'
import { handleOf, type TaskRow, taskStore } from '../task/index.ts'
import type { WorkRow } from './store.ts'

/** Files are scoped although they are only read: below operator an agent sees those of its own task. */
export function checkMayReadFiles(principal: Principal, task: TaskRow): Refusal | undefined {
  if (principal.kind !== 'agent' || principal.scope.task === task.id) return undefined
  const { project } = principal.scope
  if (reaches(principal.profile, 'operator') && (!project || project === task.project_id)) return undefined
  return refuse('PERMISSION_DENIED', `You may read the files of your own task only, not those of ${handleOf(task)}.`)
}

/** Says why a work must stay; undefined when it is not the one to say so. */
export type KeepReason = (tx: Tx, row: WorkRow) => Promise<string | undefined>

/** Whoever uses a work from outside this capability adds a reason of its own: a living run, a review. */
export const keepReasons: KeepReason[] = [ofAnOpenTask]

export async function reasonToKeep(tx: Tx, row: WorkRow): Promise<string | undefined> {
  for (const reason of keepReasons) {
    const found = await reason(tx, row)
    if (found) return found
  }
  return undefined
}

async function ofAnOpenTask(tx: Tx, row: WorkRow): Promise<string | undefined> {
  const task = await taskStore(tx).find(row.task_id)
  if (!task || task.deleted_at !== null || task.status === 'DONE') return undefined
  return `${handleOf(task)} is ${task.status}.`
}
