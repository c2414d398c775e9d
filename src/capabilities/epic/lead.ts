import { type Refusal, refuse } from '../../kernel/error.ts'
import type { RunContext } from '../../kernel/tool.ts'
import { bindToEpic, createAgent } from '../agent/index.ts'
import { createTask, giveTo, type TaskRow, taskStore, transition } from '../task/index.ts'
import { epicHandle, isOver } from './rules.ts'
import type { EpicRow } from './store.ts'

const LONGEST_TITLE = 200

/** The supervisor's run needs a task: one that is none of the epic's own, is never handed in, and ends with the epic. */
export async function withLead(ctx: RunContext, epic: EpicRow): Promise<EpicRow | Refusal> {
  if (epic.supervisor_id !== null) return epic
  if (epic.repo_id === null)
    return refuse('RESOURCE_NOT_FOUND', `The project of ${epicHandle(epic)} has no repository: nobody can be started.`, {
      hint: 'Register one with repo_add; or only plan it: with start: false it stays in PLANNING.',
      next_tool: 'repo_add',
    })
  const supervisor = await createAgent(ctx, { role: 'supervisor', project_id: epic.project_id })
  await bindToEpic(ctx, supervisor.id, { project_id: epic.project_id, epic_id: epic.id })
  const task = await createTask(ctx, epic.project_id, {
    title: `Lead: ${epic.title}`.slice(0, LONGEST_TITLE),
    description: epic.description,
    task_type: 'AUTO',
    priority: 'high',
    acceptance_criteria: [],
    blocked_by: [],
    epic_id: epic.id,
    lead: true,
  })
  await giveTo(ctx, task, { ...supervisor, epic_id: epic.id })
  return { ...epic, supervisor_id: supervisor.id, lead_task_id: task.id }
}

/** What is still open ends with the epic; so do those who are at work on it. */
export async function endTasks(ctx: RunContext, epic: EpicRow): Promise<void> {
  const reason = `The epic was ${epic.state === 'COMPLETED' ? 'completed' : 'cancelled'}.`
  const open = isOver(epic)
    ? await taskStore(ctx.tx).list({ epic: epic.id, statuses: ['BACKLOG', 'IN_PROGRESS', 'REVIEW'] }, 'number', undefined, 1_000)
    : []
  for (const task of open) await transition(ctx, task, 'DONE', reason)
  await endLead(ctx, epic, reason)
}

export async function endLead(ctx: RunContext, epic: EpicRow, reason: string): Promise<void> {
  const lead = await leadOf(ctx, epic)
  if (lead && lead.status !== 'DONE') await transition(ctx, lead, 'DONE', reason)
}

export async function leadOf(ctx: Pick<RunContext, 'tx'>, epic: EpicRow): Promise<TaskRow | undefined> {
  const lead = epic.lead_task_id ? await taskStore(ctx.tx).find(epic.lead_task_id) : undefined
  return lead?.deleted_at === null ? lead : undefined
}
