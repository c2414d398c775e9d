import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { Timestamp, text } from '../../kernel/schema.ts'
import { EpicId, TaskId } from '../ids.ts'
import { StepView } from '../need/index.ts'

export const STATUSES = ['BACKLOG', 'IN_PROGRESS', 'REVIEW', 'DONE'] as const
export type Status = (typeof STATUSES)[number]
export const StatusName = z.enum(STATUSES)
export const TaskType = z.enum(['AUTO', 'PAIR']).describe('AUTO: a managed run; PAIR: an interactive terminal')

export const PRIORITIES = ['low', 'medium', 'high'] as const
export const Priority = z.enum(PRIORITIES)

/** What moves this next? Derived from the rows, never stored. */
const ATTENTIONS = ['running', 'queued', 'reviewer', 'merge', 'human', 'dependency', 'quota', 'stalled'] as const
export type AttentionName = (typeof ATTENTIONS)[number]
export const Attention = z.enum(ATTENTIONS).nullable().describe('What moves this task next; null when it is done')

export const Title = text(200)
export const Description = z.string().max(10_000)
export const Criteria = z.array(text(500)).max(50)
export const Body = text(20_000)

const Reference = z.strictObject({ id: z.string(), handle: z.string(), status: StatusName })

export const TaskSummary = z.strictObject({
  id: TaskId,
  handle: z.string(),
  project_id: z.string(),
  title: z.string(),
  status: StatusName,
  task_type: TaskType,
  priority: Priority,
  assignee_id: z.string().nullable(),
  parent_id: z.string().nullable(),
  epic_id: EpicId.nullable(),
  lead: z.boolean().describe('Its agent leads the epic, instead of working in it'),
  blocked_by: z.array(z.string()).describe('Handles of the open tasks that it waits for'),
  attention: Attention,
  attention_detail: z.string().nullable().describe('Until when, how much of what, why'),
  attention_steps: z.array(StepView).optional().describe('Calls that get it further, where these are others than its status suggests'),
  version: z.int(),
  created_at: Timestamp,
  updated_at: Timestamp,
})

export const NoteView = z.strictObject({ id: z.string(), author: z.string(), body: z.string(), at: Timestamp })

export const TaskView = TaskSummary.extend({
  description: z.string(),
  acceptance_criteria: z.array(z.string()),
  base_branch: z.string().nullable(),
  closed_reason: z.string().nullable(),
  created_by: z.string(),
  dependencies: z.array(Reference),
  dependents: z.array(Reference),
  notes: z.array(NoteView),
  note_count: z.int(),
})

const Versioned = z.strictObject({ handle: z.string(), version: z.int() })

export const taskCreated = defineEvent('task.created', Versioned.extend({ title: z.string(), status: StatusName }))
export const taskUpdated = defineEvent('task.updated', Versioned.extend({ fields: z.array(z.string()) }))
export const taskMoved = defineEvent('task.moved', Versioned.extend({ from: StatusName, to: StatusName, reason: z.string().nullable() }))
export const taskAssigned = defineEvent('task.assigned', Versioned.extend({ assignee_id: z.string().nullable() }))
export const taskDeleted = defineEvent('task.deleted', Versioned.extend({ from: StatusName }))
export const taskNoted = defineEvent('task.noted', z.strictObject({ handle: z.string(), note_id: z.string(), author: z.string() }))
export const planProposed = defineEvent('plan.proposed', z.strictObject({ tasks: z.int() }))
export const planDecided = defineEvent('plan.decided', z.strictObject({ accepted: z.boolean(), task_ids: z.array(z.string()) }))
