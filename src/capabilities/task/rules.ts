import { type Refusal, refuse } from '../../kernel/error.ts'
import { definePoint } from '../../kernel/point.ts'
import { type Principal, reaches } from '../../kernel/policy.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { LookContext, RunContext } from '../../kernel/tool.ts'
import { type AgentRow, bindToTask, freeFromTask } from '../agent/index.ts'
import { takeTurn } from '../handle.ts'
import { STATUSES, type Status, taskAssigned, taskMoved, taskNoted } from './schema.ts'
import { type TaskRow, taskStore } from './store.ts'

/**
 * The moves that exist:
 *
 * | from        | to          | by                                   |
 * |-------------|-------------|--------------------------------------|
 * | BACKLOG     | IN_PROGRESS | operator, or the worker of the task  |
 * | IN_PROGRESS | BACKLOG     | operator, or the worker of the task  |
 * | IN_PROGRESS | REVIEW      | operator, or the worker of the task  |
 * | REVIEW      | IN_PROGRESS | operator (changes requested)         |
 * | any open    | DONE        | task_close with a reason, or a merge |
 * | DONE        | BACKLOG     | operator (reopened)                  |
 */
const MOVES: Record<Status, Status[]> = {
  BACKLOG: ['IN_PROGRESS'],
  IN_PROGRESS: ['REVIEW', 'BACKLOG'],
  REVIEW: ['IN_PROGRESS'],
  DONE: ['BACKLOG'],
}

/** Work is handed in as a round of review: moved there, it would be none of the rounds that are counted. */
const WORKER_MOVES: Record<Status, Status[]> = { ...MOVES, IN_PROGRESS: ['BACKLOG'], REVIEW: [], DONE: [] }

/** Refuses when `task_move` may not do this; the message names what would work. */
export function checkMove(principal: Principal, task: TaskRow, wanted: string): Refusal | undefined {
  if (wanted === 'AUTO' || wanted === 'PAIR') {
    return refuse('STATUS_WAS_TASK_TYPE', `${wanted} is a task type, not a status.`, {
      hint: 'Change the type with task_update.',
      next_tool: 'task_update',
      next_arguments: { task_id: handleOf(task), task_type: wanted },
    })
  }
  const to = STATUSES.find((status) => status === wanted)
  if (!to) return refuse('INVALID_INPUT', `"${wanted}" is not a status.`, { suggestions: [...STATUSES] })
  if (to === 'DONE') {
    return refuse(
      'INVALID_TRANSITION',
      `${handleOf(task)} becomes DONE only when its work is merged, or when it is closed with a reason.`,
      {
        hint: 'Nobody approves their own work. An operator closes it with task_close.',
        next_tool: 'task_close',
        next_arguments: { task_id: handleOf(task), reason: '…' },
      },
    )
  }
  const allowed = reaches(principal.profile, 'operator') ? MOVES : WORKER_MOVES
  if (allowed[task.status].includes(to)) return undefined
  if (to === 'REVIEW' && MOVES[task.status].includes(to))
    return refuse('INVALID_TRANSITION', `${handleOf(task)} is handed in with review_request, and not only moved.`, {
      next_tool: 'review_request',
      next_arguments: { task_id: handleOf(task), summary: '…' },
    })
  const could = allowed[task.status]
  return refuse('INVALID_TRANSITION', `${handleOf(task)} is ${task.status}; it cannot become ${to}.`, {
    hint: could.length ? `From here it can become ${could.join(' or ')}.` : 'An operator or a person decides what comes next.',
    suggestions: could,
  })
}

/** Below operator a principal moves its own task only; a person on the default lane has none. */
export function checkOwnTask(principal: Principal, task: TaskRow): Refusal | undefined {
  if (reaches(principal.profile, 'operator') || principal.scope.task === task.id) return undefined
  return refuse('PERMISSION_DENIED', `Only an operator, or the worker that ${handleOf(task)} is assigned to, may move it.`, {
    hint: principal.kind === 'person' ? 'Ask for the admin lane: `signalbox mcp --admin`.' : 'Ask for it with task_assign.',
  })
}

/** What belongs to a task ends with it, in the same transaction. */
export const taskEnds = definePoint.all<(ctx: RunContext, task: TaskRow) => Promise<void>>('task.ends')

/** The only writer of `status`. */
export async function transition(ctx: RunContext, task: TaskRow, to: Status, reason: string | null): Promise<TaskRow> {
  const next = touched(ctx, task, { status: to, closed_reason: to === 'DONE' ? reason : null })
  next.status_changed_at = next.updated_at
  if (to === 'DONE') {
    await freeFromTask(ctx, task.id)
    next.assignee_id = null
  }
  await save(ctx, task, next)
  ctx.emit(taskMoved(about(task), { handle: handleOf(task), version: next.version, from: task.status, to, reason }))
  if (to === 'DONE') await ctx.ask(taskEnds, next)
  return next
}

/** The row with the changes, a new version, and a time that is later than the last one even when the clock went back. */
export function touched(ctx: RunContext, task: TaskRow, changes: Partial<TaskRow>): TaskRow {
  return { ...task, ...changes, version: task.version + 1, updated_at: Math.max(ctx.now, task.updated_at + 1) }
}

export async function save(ctx: RunContext, before: TaskRow, after: TaskRow): Promise<void> {
  if (!(await taskStore(ctx.tx).update(before, after)))
    throw refuse('CONFLICT', `${handleOf(before)} changed in the meantime.`, { hint: 'Read it again and repeat.' })
}

export async function requireTask(ctx: Pick<RunContext, 'tx'> | Pick<LookContext, 'view' | 'found'>, id: string): Promise<TaskRow> {
  const task = 'tx' in ctx ? await taskStore(ctx.tx).find(id) : ((ctx.found(id) as TaskRow) ?? (await taskStore(ctx.view).find(id)))
  if (!task) throw refuse('RESOURCE_NOT_FOUND', `There is no task "${id}".`, { next_tool: 'task_list', next_arguments: {} })
  if (task.deleted_at !== null)
    throw refuse('TASK_DELETED', `${handleOf(task)} was deleted.`, { next_tool: 'task_list', next_arguments: {} })
  return task
}

/** Two at once could each see the other's agent still free. Null takes the task away from whoever has it. */
export async function giveTo(ctx: RunContext, task: TaskRow, agent: AgentRow | undefined): Promise<TaskRow> {
  await takeTurn(ctx.tx, 'assignments')
  const row = await requireTask(ctx, task.id)
  await freeFromTask(ctx, row.id)
  if (agent) {
    await releaseOther(ctx, agent.task_id, row.id)
    // Whoever leads an epic leads it also while it has another task.
    const epic_id = agent.role === 'supervisor' ? agent.epic_id : row.epic_id
    await bindToTask(ctx, agent.id, { project_id: row.project_id, task_id: row.id, epic_id })
  }
  const next = touched(ctx, row, { assignee_id: agent?.id ?? null })
  await save(ctx, row, next)
  ctx.emit(taskAssigned(about(row), { handle: handleOf(row), version: next.version, assignee_id: next.assignee_id }))
  return next
}

/** An agent has one task at a time: the one it leaves must not go on naming it. */
async function releaseOther(ctx: RunContext, taskId: string | null, except: string): Promise<void> {
  if (!taskId || taskId === except) return
  const other = await taskStore(ctx.tx).find(taskId)
  if (!other || other.deleted_at !== null) return
  const next = touched(ctx, other, { assignee_id: null })
  await save(ctx, other, next)
  ctx.emit(taskAssigned(about(other), { handle: handleOf(other), version: next.version, assignee_id: null }))
}

export interface Blocker {
  id: string
  number: number
  status: Status
  deleted_at: number | null
}

/** A dependency holds until the other task is done; a deleted one holds nobody. */
export const isOpen = (blocker: Blocker) => blocker.status !== 'DONE' && blocker.deleted_at === null

export async function requireUnblocked(ctx: RunContext, row: TaskRow): Promise<void> {
  const open = (await taskStore(ctx.tx).blockers([row.id])).filter(isOpen).map(handleOf)
  if (!open.length) return
  throw refuse('TASK_BLOCKED', `${handleOf(row)} waits for ${open.join(', ')}.`, {
    hint: 'Finish those first, or change blocked_by with task_update.',
    suggestions: open,
  })
}

/** Sets what the task waits for, unless that would close a circle. */
export async function depend(ctx: RunContext, task: TaskRow, blockers: string[]): Promise<void> {
  await takeTurn(ctx.tx, 'dependencies')
  const store = taskStore(ctx.tx)
  const unique = [...new Set(blockers)]
  for (const id of unique) {
    const blocker = await requireTask(ctx, id)
    if (id === task.id || (await store.waitsFor(id, task.id))) {
      throw refuse('DEPENDENCY_CYCLE', `${handleOf(task)} cannot wait for ${handleOf(blocker)}, which already waits for it.`, {
        hint: 'Remove one of the two dependencies first.',
      })
    }
  }
  await store.setBlockers(task.id, unique)
}

export function handleOf(task: { number: number }): string {
  return `T-${task.number}`
}

/** Its agent was named for it before the first run, and has nothing to hand in: it leads an epic, or reviews. */
export function isDuty(task: Pick<TaskRow, 'lead' | 'reviews_task_id'>): boolean {
  return task.lead === 1 || task.reviews_task_id !== null
}

/** The task that a reviewer was started to review; everybody else has none. */
export async function reviewedBy(tx: Tx, { role, scope }: Principal): Promise<string | undefined> {
  const own = role === 'reviewer' && scope.task ? await taskStore(tx).find(scope.task) : undefined
  return own?.reviews_task_id ?? undefined
}

/** Where a task lies, and everything that belongs to it. */
export function withinTask(task: Pick<TaskRow, 'id' | 'project_id' | 'epic_id'>): Record<string, string> {
  return { project: task.project_id, task: task.id, ...(task.epic_id ? { epic: task.epic_id } : {}) }
}

export function about(task: TaskRow) {
  return { subject: task.id, project: task.project_id, task: task.id }
}

/** Its id. */
export async function addNote(ctx: RunContext, task: TaskRow, author: string, body: string): Promise<string> {
  const id = ctx.id('note')
  await taskStore(ctx.tx).insertNote({ id, task_id: task.id, author, body, at: ctx.now })
  ctx.emit(taskNoted(about(task), { handle: handleOf(task), note_id: id, author }))
  return id
}
