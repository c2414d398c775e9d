import type { EffectContext } from '../../kernel/effect.ts'
import { type Refusal, refuse } from '../../kernel/error.ts'
import { definePoint } from '../../kernel/point.ts'
import { type Principal, reaches } from '../../kernel/policy.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { Reading } from '../../kernel/tool.ts'
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
export type KeepReason = (ctx: Reading, row: WorkRow) => Promise<string | undefined>

/** Whoever works in it says so here: nothing of it is changed or taken away meanwhile. */
export const inUse = definePoint.first<KeepReason>('work.in_use', async () => undefined)

type Ending = (ctx: EffectContext, row: WorkRow, place: Place) => Promise<void>

/** What runs there is ended, then what it has outside is cleaned up, before a worktree is taken away. It cannot keep the worktree. */
export const removal = definePoint.all<Ending>('work.removal', ['processes', 'cleanup'])

export async function reasonToKeep(ctx: Reading, row: WorkRow): Promise<string | undefined> {
  return (await whoUses(ctx, row)) ?? ofAnOpenTask(ctx.view, row)
}

/** In words; undefined when nobody is at work in it. */
export function whoUses(ctx: Reading, row: WorkRow): Promise<string | undefined> {
  return ctx.ask(inUse, row)
}

export async function requireFree(ctx: Reading, row: WorkRow): Promise<void> {
  const reason = await whoUses(ctx, row)
  if (reason) throw refuse('INVALID_AGENT_STATE', `${reason} Stop it first.`, { next_tool: 'job_list', next_arguments: {} })
}

async function ofAnOpenTask(tx: Tx, row: WorkRow): Promise<string | undefined> {
  const task = await taskStore(tx).find(row.task_id)
  if (!task || task.deleted_at !== null || task.status === 'DONE') return undefined
  return `${handleOf(task)} is ${task.status}.`
}
