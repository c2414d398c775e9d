import { z } from 'zod'
import { Refusal, refuse } from '../../kernel/error.ts'
import { mention } from '../../kernel/id.ts'
import { EventView, eventView, iso, PageSize, PageToken, Timestamp, text } from '../../kernel/schema.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { agentStore, freeFromTask } from '../agent/index.ts'
import { nextNumber } from '../handle.ts'
import { AgentId, EpicId, ProjectId, TaskId } from '../ids.ts'
import { type Belonging, currentProject, noProject, ProjectView, projectStore, projectView, RepoView, repoView } from '../project/index.ts'
import { attended, chatter } from './attention.ts'
import { type EpicFacts, requireOpenEpic } from './epic.ts'
import {
  about,
  addNote,
  checkMove,
  checkOwnTask,
  depend,
  giveTo,
  handleOf,
  isDuty,
  requireTask,
  requireUnblocked,
  save,
  taskEnds,
  touched,
  transition,
} from './rules.ts'
import {
  Body,
  Criteria,
  Description,
  PRIORITIES,
  Priority,
  type Status,
  StatusName,
  TaskSummary,
  TaskType,
  TaskView,
  Title,
  taskCreated,
  taskDeleted,
  taskUpdated,
} from './schema.ts'
import { checkScript } from './script.ts'
import { ORDERS, pageAfter, type TaskRow, taskStore } from './store.ts'
import { freshView, fullView, summaries } from './view.ts'

const Blockers = z.array(mention(TaskId)).max(50).describe('Tasks that must be done first')
const Changed = z.strictObject({ task_id: TaskId, handle: z.string(), task: TaskView })

const NewTask = z.strictObject({
  title: Title,
  description: Description.default(''),
  task_type: TaskType.default('AUTO'),
  priority: Priority.default('medium'),
  acceptance_criteria: Criteria.default([]),
  base_branch: text(200).optional(),
  parent_id: mention(TaskId).optional(),
  blocked_by: Blockers.default([]),
})

export const create = defineTool({
  name: 'task_create',
  title: 'Create a task',
  description: 'Create a task in the backlog of a project.',
  input: NewTask.extend({
    project_id: ProjectId.optional().describe('Default: that of the epic, else the current project'),
    epic_id: EpicId.optional().describe('The epic that it is part of; default for a supervisor: its own'),
  }),
  output: Changed,
  example: { title: 'Log in with a passkey', priority: 'high', acceptance_criteria: ['A passkey signs in', 'A wrong one is refused'] },
  impact: 'write',
  profile: 'operator',
  core: true,
  async run(ctx, input) {
    const epic_id = input.epic_id ?? (ctx.principal.role === 'supervisor' ? ctx.principal.scope.epic : undefined)
    const epic = epic_id ? await requireOpenEpic(ctx, epic_id) : undefined
    if (epic instanceof Refusal) return epic
    const project = input.project_id ?? epic?.project_id ?? (await currentProject(ctx.tx, ctx.principal))
    if (!project) return noProject()
    const misplaced = epic && outsideEpic(epic, project, input.base_branch)
    if (misplaced) return misplaced
    const row = await createTask(ctx, project, { ...input, epic_id })
    const blockers = input.blocked_by.length ? await taskStore(ctx.tx).blockers([row.id]) : []
    // Of an epic somebody may be on the way already; of others nobody can know of it yet.
    const told = row.epic_id === null ? undefined : (await attended(ctx, [row])).get(row.id)
    return { task_id: row.id, handle: handleOf(row), task: freshView(row, blockers, told) }
  },
})

export const get = defineTool({
  name: 'task_get',
  title: 'Read a task',
  description: 'One task with criteria, dependencies and its latest notes.',
  input: z.strictObject({ task_id: TaskId, notes: z.int().min(0).max(200).default(20).describe('How many of the latest notes') }),
  output: z.strictObject({ task: TaskView }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  core: true,
  async look(ctx, input) {
    return { task: await fullView(ctx, await requireTask(ctx, input.task_id), input.notes) }
  },
})

export const context = defineTool({
  name: 'task_context',
  title: 'Read a task with its surroundings',
  description: 'What a worker needs to start: the task, its project and repositories, siblings, history.',
  input: z.strictObject({ task_id: TaskId }),
  output: z.strictObject({
    task: TaskView,
    project: ProjectView,
    repos: z.array(RepoView),
    siblings: z.array(TaskSummary),
    history: z.array(EventView),
    cursor: z.string(),
  }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const cursor = await ctx.cursor()
    const row = await requireTask(ctx, input.task_id)
    const project = await projectStore(ctx.view).project(row.project_id)
    if (!project) throw new Error(`task ${row.id} has no project`)
    const siblings = row.parent_id
      ? await taskStore(ctx.view).list({ parent: row.parent_id, exclude: [row.id] }, 'number', undefined, 50)
      : []
    // Every few lines of an agent are one of these: nothing else would be left.
    const leftOut = (await ctx.ask(chatter)).flat().map(({ type }) => `!${type}`)
    const history = (await ctx.recent(undefined, { task: row.id, types: leftOut }, 50)).reverse()
    return {
      task: await fullView(ctx, row, 100),
      project: projectView(project),
      repos: (await projectStore(ctx.view).repos(row.project_id, '', 50)).map(repoView),
      siblings: await summaries(ctx, siblings),
      history: history.map(eventView),
      cursor,
    }
  },
})

export const list = defineTool({
  name: 'task_list',
  title: 'List tasks',
  description: 'Tasks in the order of their numbers, filtered.',
  input: z.strictObject({
    project_id: ProjectId.optional(),
    status: z.array(StatusName).max(4).optional(),
    assignee_id: AgentId.optional(),
    parent_id: TaskId.optional(),
    epic_id: EpicId.optional(),
    exclude_task_ids: z.array(TaskId).max(200).optional(),
    order: z.enum(ORDERS).default('number').describe('By number; newest: from the highest down; recent: what changed last first'),
    limit: PageSize,
    after: PageToken.regex(/^[0-9]{1,15}(\.[0-9]{1,15})?$/, 'not a page of task_list').optional(),
  }),
  output: z.strictObject({ tasks: z.array(TaskSummary), next: z.string().nullable(), cursor: z.string() }),
  example: { status: ['IN_PROGRESS', 'REVIEW'] },
  impact: 'read',
  profile: 'viewer',
  core: true,
  async look(ctx, input) {
    const cursor = await ctx.cursor()
    const filter = {
      project: input.project_id,
      statuses: input.status,
      assignee: input.assignee_id,
      parent: input.parent_id,
      epic: input.epic_id,
      exclude: input.exclude_task_ids,
    }
    const rows = await taskStore(ctx.view).list(filter, input.order, input.after, input.limit)
    const last = rows.at(-1)
    return {
      tasks: await summaries(ctx, rows),
      next: last && rows.length === input.limit ? pageAfter(last, input.order) : null,
      cursor,
    }
  },
})

export const update = defineTool({
  name: 'task_update',
  title: 'Change a task',
  description: 'Change fields of a task. Status changes go through task_move.',
  input: z.strictObject({
    task_id: TaskId,
    title: Title.optional(),
    description: Description.optional(),
    task_type: TaskType.optional(),
    priority: Priority.optional(),
    acceptance_criteria: Criteria.optional(),
    base_branch: text(200).nullable().optional(),
    parent_id: mention(TaskId).nullable().optional(),
    blocked_by: Blockers.optional().describe('Replaces the whole list'),
    expected_version: z.int().min(1).max(Number.MAX_SAFE_INTEGER).optional().describe('Refuse when the task has changed since'),
  }),
  output: Changed,
  example: { task_id: 'T-1', priority: 'low', blocked_by: ['T-2'] },
  impact: 'write',
  profile: 'operator',
  async run(ctx, { task_id, expected_version, blocked_by, ...fields }) {
    const row = await requireTask(ctx, task_id)
    if (expected_version !== undefined && expected_version !== row.version) {
      return refuse('CONFLICT', `${handleOf(row)} is at version ${row.version}, not ${expected_version}.`, {
        next_tool: 'task_get',
        next_arguments: { task_id },
      })
    }
    const given = Object.keys(fields).filter((key) => fields[key as keyof typeof fields] !== undefined)
    if (blocked_by) given.push('blocked_by')
    if (!given.length) return refuse('INVALID_INPUT', 'Nothing to change: give at least one field.')
    if (row.epic_id !== null && fields.base_branch !== undefined)
      return refuse('INVALID_INPUT', `${handleOf(row)} is part of an epic: it begins at the branch of that.`)
    if (row.lead && fields.task_type === 'PAIR') return ofAnEpic(row)
    const script = checkScript(ctx.principal, fields.description ?? '')
    if (script) return script
    if (fields.parent_id) await checkParent(ctx, row, fields.parent_id)
    if (blocked_by) await depend(ctx, row, blocked_by)
    const next = touched(ctx, row, columns(fields))
    await save(ctx, row, next)
    ctx.emit(taskUpdated(about(row), { handle: handleOf(row), version: next.version, fields: given }))
    return changed(ctx, next)
  },
})

export const move = defineTool({
  name: 'task_move',
  title: 'Move a task',
  description: 'Change the status: BACKLOG, IN_PROGRESS or REVIEW. DONE comes from a merge or task_close.',
  input: z.strictObject({
    task_id: TaskId,
    status: text(20).describe('BACKLOG | IN_PROGRESS | REVIEW'),
    reason: text(500).optional(),
    expected_status: StatusName.optional().describe('Refuse when it is another by now'),
  }),
  output: Changed.extend({ previous_status: StatusName }),
  example: { task_id: 'T-1', status: 'REVIEW' },
  impact: 'write',
  profile: 'pair_worker',
  critical: true,
  core: true,
  async run(ctx, input) {
    const row = await requireTask(ctx, input.task_id)
    const own = checkOwnTask(ctx.principal, row)
    if (own) return own
    if (input.expected_status && input.expected_status !== row.status)
      return refuse('CONFLICT', `${handleOf(row)} is ${row.status}, not ${input.expected_status}.`)
    const refusal = row.lead ? ofAnEpic(row) : checkMove(ctx.principal, row, input.status)
    if (refusal) return refusal
    // Reopened it is a task of its epic again, which may take none any more.
    const epic = row.status === 'DONE' && row.epic_id !== null ? await requireOpenEpic(ctx, row.epic_id) : undefined
    if (epic instanceof Refusal) return epic
    if (input.status === 'IN_PROGRESS' && row.status === 'BACKLOG') await requireUnblocked(ctx, row)
    const next = await transition(ctx, row, input.status as z.output<typeof StatusName>, input.reason ?? null)
    return { ...(await changed(ctx, next)), previous_status: row.status }
  },
})

export const assign = defineTool({
  name: 'task_assign',
  title: 'Assign a task',
  description: 'Give a task to an agent: it becomes the scope in which that agent may write. Null takes it away.',
  input: z.strictObject({ task_id: TaskId, agent_id: mention(AgentId).nullable() }),
  output: Changed,
  example: { task_id: 'T-1', agent_id: 'ann' },
  impact: 'write',
  profile: 'operator',
  async run(ctx, input) {
    const row = await requireTask(ctx, input.task_id)
    if (row.status === 'DONE')
      return refuse('INVALID_TRANSITION', `${handleOf(row)} is done.`, { hint: 'Reopen it with task_move to BACKLOG.' })
    if (row.lead) return ofAnEpic(row)
    const agent = input.agent_id ? await agentStore(ctx.tx).agent(input.agent_id) : undefined
    if (agent?.project_id && agent.project_id !== row.project_id)
      return refuse('INVALID_AGENT_STATE', `${agent.handle} belongs to another project.`)
    // It would leave its task there, on which the caller may not act.
    if (agent?.task_id && ctx.principal.role === 'supervisor' && agent.epic_id !== ctx.principal.scope.epic)
      return refuse('PERMISSION_DENIED', `${agent.handle} is at work outside your epic.`)
    return changed(ctx, await giveTo(ctx, row, agent))
  },
})

export const close = defineTool({
  name: 'task_close',
  title: 'Close a task',
  description: 'Make a task DONE without a merge, with the reason why.',
  input: z.strictObject({ task_id: TaskId, reason: text(500) }),
  output: Changed,
  example: { task_id: 'T-1', reason: 'Done by hand' },
  impact: 'write',
  profile: 'operator',
  async run(ctx, input) {
    const row = await requireTask(ctx, input.task_id)
    if (ctx.principal.role === 'worker')
      return refuse('PERMISSION_DENIED', 'A worker never approves its own work.', { hint: 'Move it to REVIEW with task_move.' })
    if (row.lead) return ofAnEpic(row)
    if (row.status === 'DONE') return refuse('INVALID_TRANSITION', `${handleOf(row)} is already done.`)
    return changed(ctx, await transition(ctx, row, 'DONE', input.reason))
  },
})

export const remove = defineTool({
  name: 'task_delete',
  title: 'Delete a task',
  description: 'Take a task off the board for good. What it changed stays in the log.',
  input: z.strictObject({ task_id: TaskId }),
  output: z.strictObject({ task_id: TaskId, handle: z.string(), deleted: z.literal(true) }),
  example: { task_id: 'T-1' },
  impact: 'destructive',
  profile: 'maintainer',
  async run(ctx, input) {
    const row = await requireTask(ctx, input.task_id)
    if (row.lead) return ofAnEpic(row)
    await deleteTask(ctx, row)
    return { task_id: row.id, handle: handleOf(row), deleted: true as const }
  },
})

async function deleteTask(ctx: RunContext, row: TaskRow): Promise<void> {
  const next = touched(ctx, row, { assignee_id: null })
  next.deleted_at = next.updated_at
  next.status_changed_at = next.updated_at
  await freeFromTask(ctx, row.id)
  await save(ctx, row, next)
  ctx.emit(taskDeleted(about(row), { handle: handleOf(row), version: next.version, from: row.status }))
  await ctx.ask(taskEnds, next)
}

/** More would keep everybody else waiting. */
const MOST_OPEN = 500
const OPEN: Status[] = ['BACKLOG', 'IN_PROGRESS', 'REVIEW']

/** Those of a project go with it; those that only have work in a repository are that work's. */
const belonging: Belonging = {
  async open({ view }, { project, repo }) {
    const tasks = repo ? [] : await taskStore(view).list({ project, statuses: OPEN }, 'number', undefined, MOST_OPEN)
    return tasks.filter((task) => !isDuty(task)).map((task) => `${handleOf(task)} (${task.status})`)
  },
  async end(ctx, { project, repo }) {
    if (repo) return
    const open = await taskStore(ctx.tx).list({ project, statuses: OPEN }, 'number', undefined, MOST_OPEN + 1)
    if (open.length > MOST_OPEN)
      throw refuse('CONFLICT', `It has more than ${MOST_OPEN} open tasks.`, { hint: 'Close or delete some first.' })
    for (const task of open) await deleteTask(ctx, task)
    await taskStore(ctx.tx).deleteDone(project, ctx.now)
  },
}

export const tasksOfProject = async () => belonging

export const note = defineTool({
  name: 'task_note',
  title: 'Add a note',
  description: 'Append a note to a task. Notes are never changed or lost.',
  input: z.strictObject({ task_id: TaskId, body: Body }),
  output: z.strictObject({ note_id: z.string(), task_id: TaskId, at: Timestamp }),
  example: { task_id: 'T-1', body: 'The session cookie is gone; tokens only.' },
  impact: 'write',
  profile: 'pair_worker',
  core: true,
  async run(ctx, input) {
    const row = await requireTask(ctx, input.task_id)
    return { note_id: await addNote(ctx, row, ctx.principal.id, input.body), task_id: row.id, at: iso(ctx.now) }
  },
})

/** Its tasks begin at its branch and are merged into it: of another project or branch they could be neither. */
function outsideEpic(epic: EpicFacts, project: string, branch: string | undefined): Refusal | undefined {
  if (project !== epic.project_id)
    return refuse('INVALID_INPUT', `${epic.handle} is in another project.`, { hint: 'Leave out project_id.' })
  if (branch === undefined || branch === epic.branch) return undefined
  return refuse('INVALID_INPUT', `The tasks of ${epic.handle} begin at ${epic.branch}.`, { hint: 'Leave out base_branch.' })
}

type Wanted = z.output<typeof NewTask> & { epic_id?: string; lead?: boolean; reviews_task_id?: string }

export async function createTask(ctx: RunContext, project: string, input: Wanted): Promise<TaskRow> {
  // An agent of that project, and a plan for it, may have outlived it.
  if ((await projectStore(ctx.tx).project(project))?.deleted_at !== null)
    throw refuse('RESOURCE_NOT_FOUND', 'That project was deleted.', { next_tool: 'project_list', next_arguments: {} })
  // That of a reviewer is made from one that was checked, whoever handed the work in.
  const script = input.reviews_task_id ? undefined : checkScript(ctx.principal, input.description)
  if (script) throw script
  const number = await nextNumber(ctx.tx, 'task')
  const row: TaskRow = {
    id: ctx.id('task'),
    number,
    project_id: project,
    title: input.title,
    description: input.description,
    status: 'BACKLOG',
    task_type: input.task_type,
    priority: PRIORITIES.indexOf(input.priority),
    acceptance_criteria: JSON.stringify(input.acceptance_criteria),
    base_branch: input.base_branch ?? null,
    parent_id: input.parent_id ?? null,
    epic_id: input.epic_id ?? null,
    lead: input.lead ? 1 : 0,
    reviews_task_id: input.reviews_task_id ?? null,
    assignee_id: null,
    closed_reason: null,
    version: 1,
    created_by: ctx.principal.id,
    created_at: ctx.now,
    updated_at: ctx.now,
    status_changed_at: ctx.now,
    deleted_at: null,
  }
  if (row.parent_id) await requireTask(ctx, row.parent_id)
  await taskStore(ctx.tx).insert(row)
  if (input.blocked_by.length) await depend(ctx, row, input.blocked_by)
  ctx.emit(taskCreated(about(row), { handle: handleOf(row), version: 1, title: row.title, status: row.status }))
  return row
}

function ofAnEpic(row: TaskRow): Refusal {
  return refuse('CONFLICT', `On ${handleOf(row)} an epic is led: it ends with that, and has its supervisor.`, {
    hint: 'epic_update ends an epic, or gives it another supervisor.',
  })
}

async function changed(ctx: RunContext, row: TaskRow) {
  return { task_id: row.id, handle: handleOf(row), task: await fullView(ctx, row) }
}

type Fields = Partial<Omit<z.output<typeof NewTask>, 'base_branch' | 'parent_id' | 'blocked_by'>> & {
  base_branch?: string | null
  parent_id?: string | null
}

function columns({ priority, acceptance_criteria, ...plain }: Fields): Partial<TaskRow> {
  const given = Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined))
  return {
    ...given,
    ...(priority ? { priority: PRIORITIES.indexOf(priority) } : {}),
    ...(acceptance_criteria ? { acceptance_criteria: JSON.stringify(acceptance_criteria) } : {}),
  }
}

/** The parent must be there; ancestors above it may have been deleted meanwhile. */
async function checkParent(ctx: RunContext, row: TaskRow, parent: string): Promise<void> {
  let next: TaskRow | undefined = await requireTask(ctx, parent)
  while (next) {
    if (next.id === row.id) throw refuse('DEPENDENCY_CYCLE', `${handleOf(row)} cannot be its own ancestor.`)
    next = next.parent_id ? await taskStore(ctx.tx).find(next.parent_id) : undefined
  }
}
