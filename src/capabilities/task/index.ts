import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import type { Tx } from '../../kernel/storage.ts'
import { needs } from '../need/index.ts'
import { belongings } from '../project/index.ts'
import { createIssues } from './issues.ts'
import { migrations } from './migrations.ts'
import { tasksToMove } from './needs.ts'
import { accept, get as getPlan, propose } from './plan.ts'
import { withinTask } from './rules.ts'
import {
  planDecided,
  planProposed,
  STATUSES,
  TaskType,
  taskAssigned,
  taskCreated,
  taskDeleted,
  taskMoved,
  taskNoted,
  taskUpdated,
} from './schema.ts'
import { taskStore } from './store.ts'
import { assign, close, context, create, get, list, move, note, remove, tasksOfProject, update } from './tools.ts'
import { wait } from './wait.ts'

const Seconds = z.int().min(1).max(86_400)

export const task = defineCapability({
  name: 'task',
  tools: [list, get, context, create, update, move, assign, note, wait, close, remove, propose, getPlan, accept, createIssues],
  migrations,
  values: {
    tasks: { status: STATUSES, task_type: TaskType.options, acceptance_criteria: JSON_TEXT },
    plans: { status: getPlan.output.shape.status.options, proposal: JSON_TEXT, task_ids: JSON_TEXT },
  },
  events: [taskCreated, taskUpdated, taskMoved, taskAssigned, taskDeleted, taskNoted, planProposed, planDecided],
  answers: [answer(belongings, tasksOfProject, 'tasks'), answer(needs, tasksToMove)],
  settings: {
    'general.tasks_wait_default_timeout_seconds': setting(Seconds, 900, 'How long task_wait waits when the caller does not say'),
    'general.tasks_wait_max_timeout_seconds': setting(Seconds, 900, 'The longest that task_wait waits, over several calls'),
  },
  things: [
    {
      kind: 'task',
      async find(tx, ref) {
        const row = await taskStore(tx).find(ref)
        return row && { id: row.id, within: withinTask(row), row }
      },
    },
    {
      kind: 'plan',
      async find(tx, ref) {
        const row = await taskStore(tx).plan(ref)
        return row && { id: row.id, within: { project: row.project_id } }
      },
    },
  ],
  resources: [
    { uri: 'signalbox://task/{id}', name: 'task', description: 'One task, by id or handle', tool: 'task_get', argument: 'task_id' },
    { uri: 'signalbox://tasks', name: 'tasks', description: 'The first tasks of the board', tool: 'task_list' },
  ],
})

export type { AttentionSource } from './attention.ts'
export { attention, chatter } from './attention.ts'
export { type EpicFacts, epicOf, taskEpic } from './epic.ts'
export {
  about,
  addNote,
  checkOwnTask,
  giveTo,
  handleOf,
  isDuty,
  isOpen,
  requireTask,
  requireUnblocked,
  reviewedBy,
  taskEnds,
  touched,
  transition,
  withinTask,
} from './rules.ts'
export {
  Body,
  Description,
  type Status,
  TaskSummary,
  TaskView,
  Title,
  taskCreated,
  taskDeleted,
  taskMoved,
  taskUpdated,
} from './schema.ts'
export { whyNotScript } from './script.ts'
export { type StepSource, taskSteps } from './steps.ts'
export { type NoteRow, type TaskRow, taskStore } from './store.ts'
export { createTask } from './tools.ts'
export { fullView, summaries } from './view.ts'

/** Where something lies that belongs to a task: a job, a run, its work. */
export async function whereabouts(tx: Tx, row: { task_id: string; project_id: string }): Promise<Record<string, string>> {
  const task = await taskStore(tx).find(row.task_id)
  return task ? withinTask(task) : { project: row.project_id, task: row.task_id }
}

/** For those who write about a task without being of this capability. */
export async function projectOfTask(tx: Tx, id: string): Promise<string | undefined> {
  return (await taskStore(tx).find(id))?.project_id
}
