import type { z } from 'zod'
import { type Refusal, refuse } from '../../kernel/error.ts'
import { type Principal, reaches } from '../../kernel/policy.ts'
import { iso, isoOrNull } from '../../kernel/schema.ts'
import type { Reading, RunContext } from '../../kernel/tool.ts'
import { fromJson } from '../../kernel/unreadable.ts'
import { endToken } from '../agent/index.ts'
import { shellWord } from '../shell-word.ts'
import { handleOf, type TaskRow } from '../task/index.ts'
import { closeSession } from './effects.ts'
import { type SessionState, type SessionView, sessionClosed, sessionClosing } from './schema.ts'
import { type SessionRow, sessionStore } from './store.ts'

export const SHELL = 'shell'

export function aboutSession(row: SessionRow) {
  return { subject: row.id, project: row.project_id, task: row.task_id }
}

export function named(row: SessionRow) {
  return { handle: row.name, program: row.program }
}

/** A terminal is for a PAIR task that is open. */
export function notPair(task: TaskRow): Refusal | undefined {
  if (task.status === 'DONE')
    return refuse('INVALID_TRANSITION', `${handleOf(task)} is done.`, {
      hint: 'Reopen it first.',
      next_tool: 'task_move',
      next_arguments: { task_id: handleOf(task), status: 'BACKLOG' },
    })
  if (task.task_type === 'PAIR') return undefined
  return refuse('INVALID_INPUT', `${handleOf(task)} is an AUTO task: an agent works on it by itself. Terminals are for PAIR tasks.`, {
    hint: 'Make it a PAIR task, then open the session again.',
    next_tool: 'task_update',
    next_arguments: { task_id: handleOf(task), task_type: 'PAIR' },
  })
}

/** What is on a screen is as private as the files are. */
export function mayLook(principal: Principal, task: TaskRow): Refusal | undefined {
  if (principal.kind !== 'agent' || principal.scope.task === task.id) return undefined
  const { project } = principal.scope
  if (reaches(principal.profile, 'operator') && (!project || project === task.project_id)) return undefined
  return refuse('PERMISSION_DENIED', `You may read the terminal of your own task only, not that of ${handleOf(task)}.`)
}

/** An agent without a shell would get one by this. */
export function mayChoose(principal: Principal, program: string): Refusal | undefined {
  if (principal.kind !== 'agent' || program !== SHELL) return undefined
  return refuse('PERMISSION_DENIED', 'Only a person opens a shell.')
}

export function noSession(task: TaskRow): Refusal {
  return refuse('RESOURCE_NOT_FOUND', `${handleOf(task)} has no open session.`, {
    next_tool: 'session_open',
    next_arguments: { task_id: handleOf(task) },
  })
}

/** Nobody takes a worktree away from under a terminal. */
export async function openSession({ view }: Reading, { task_id }: { task_id: string }): Promise<string | undefined> {
  return (await sessionStore(view).livingOf(task_id)) && 'A terminal is open in it.'
}

/** What was asked for first holds. The end itself is told by what ends it. */
export async function askToClose(ctx: RunContext, row: SessionRow): Promise<void> {
  if (row.close_asked_at !== null) return
  await sessionStore(ctx.tx).update(row.id, { close_asked_at: ctx.now })
  ctx.emit(sessionClosing(aboutSession(row), named(row)))
  ctx.enqueue(closeSession({ session_id: row.id }, { queue: row.id }))
}

/** The end of a session: its token goes with it. */
export async function over(ctx: RunContext, row: SessionRow, state: SessionState, reason: string, screen: string | null): Promise<void> {
  await sessionStore(ctx.tx).update(row.id, {
    state,
    reason,
    closed_at: ctx.now,
    last_screen: screen,
    message: null,
    ...(row.prompt === 'waiting' || row.prompt === 'needs_input' ? { prompt: 'failed' as const, prompt_detail: reason } : {}),
  })
  if (row.token_id) await endToken(ctx, row.token_id, 'ended with its session')
  ctx.emit(sessionClosed(aboutSession(row), { ...named(row), state, reason }))
}

export function sessionView(row: SessionRow): z.output<typeof SessionView> {
  const { id, task_id, program, name, host, state, reason, prompt, prompt_detail, agent_id, opened_by } = row
  const attach_argv = row.attach === null || state !== 'open' ? null : fromJson<string[]>(row.attach)
  return {
    id,
    task_id,
    program,
    name,
    host,
    state,
    reason,
    prompt,
    prompt_detail,
    agent_id,
    opened_by,
    attach: attach_argv?.map(shellWord).join(' ') ?? null,
    attach_argv,
    opened_at: iso(row.opened_at),
    closed_at: isoOrNull(row.closed_at),
  }
}
