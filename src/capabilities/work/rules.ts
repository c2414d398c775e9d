import type { EffectContext } from '../../kernel/effect.ts'
import { type Refusal, refuse } from '../../kernel/error.ts'
import { type Principal, reaches } from '../../kernel/policy.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { Place } from '../../ports/git.ts'
import { handleOf, reviewedBy, type TaskRow, taskStore } from '../task/index.ts'
import type { WorkRow } from './store.ts'

/** Files are scoped although they are only read: below operator an agent sees those of its own task, and of the one that it reviews. */
export async function checkMayReadFiles(view: Tx, principal: Principal, task: TaskRow): Promise<Refusal | undefined> {
  if (principal.kind !== 'agent' || principal.scope.task === task.id) return undefined
  const { project, epic } = principal.scope
  if ((await reviewedBy(view, principal)) === task.id) return undefined
  if (principal.role === 'supervisor' && epic !== task.epic_id)
    return refuse('PERMISSION_DENIED', `You may read the files of your own epic only, not those of ${handleOf(task)}.`)
  if (reaches(principal.profile, 'operator') && (!project || project === task.project_id)) return undefined
  return refuse('PERMISSION_DENIED', `You may read the files of your own task only, not those of ${handleOf(task)}.`)
}

/** Says why a work must stay; undefined when it is not the one to say so. */
export type KeepReason = (tx: Tx, row: WorkRow) => Promise<string | undefined>

/** Whoever works in it from outside this capability says so here: nothing of it is changed or taken away meanwhile. */
export const inUse: KeepReason[] = []

/** Whatever is to end before a worktree is taken away is ended here. It cannot keep the worktree. */
export type Ending = (ctx: EffectContext, row: WorkRow, place: Place) => Promise<void>

export const beforeRemoval: Ending[] = []

export function reasonToKeep(tx: Tx, row: WorkRow): Promise<string | undefined> {
  return firstReason([...inUse, ofAnOpenTask], tx, row)
}

/** In words; undefined when nobody is at work in it. */
export function whoUses(tx: Tx, row: WorkRow): Promise<string | undefined> {
  return firstReason(inUse, tx, row)
}

export async function requireFree(tx: Tx, row: WorkRow): Promise<void> {
  const reason = await whoUses(tx, row)
  if (reason) throw refuse('INVALID_AGENT_STATE', `${reason} Stop it first.`, { next_tool: 'job_list', next_arguments: {} })
}

async function firstReason(reasons: KeepReason[], tx: Tx, row: WorkRow): Promise<string | undefined> {
  for (const reason of reasons) {
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
