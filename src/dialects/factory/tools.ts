import { nameOf } from '../../capabilities/work/index.ts'
import { refuse } from '../../kernel/error.ts'
import type { Principal } from '../../kernel/policy.ts'
import { id, meaning, type Output, text, tool, view } from '../define.ts'
import { EPIC_STATES, eventIn, STATES, typeOf } from './words.ts'

const MOST_LISTED = 200
const MOST_BYTES = 1_000_000

type Task = Output<'task_list'>['tasks'][number]

const taskId = id('task')
const yes = { json: { type: 'boolean' } }
const sent = { mailId: 'mail_id', timestamp: 'timestamp' } as const

const mail = view<Output<'mail_read'>['letter']>({
  id: 'id',
  fromAgentId: 'from_id',
  fromAgentType: ({ from_id, from_role }) => (from_id === 'system' ? 'SYSTEM' : typeOf(from_role)),
  subject: 'subject',
  body: 'body',
  isRead: ({ read_at }) => read_at !== null,
  createdAt: 'sent_at',
  readAt: 'read_at',
})

const TASK = {
  id: 'id',
  title: 'title',
  state: ['status', STATES],
  epicId: 'epic_id',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
} as const
const listedTask = view<Task>({ ...TASK, assignedAgentId: 'assignee_id' })
const wholeTask = view<Output<'work_get'>['task']>({ ...TASK, description: 'description' })

const mailTools = [
  tool({
    name: 'mcp__mail__list_inbox',
    native: 'mail_inbox',
    description: 'Your letters: those that are unread, or all.',
    fields: { includeRead: yes },
    defaults: { limit: MOST_LISTED },
    answer: { count: 'count', unreadCount: 'unread_count', mails: ({ letters }) => letters.map(mail) },
  }),
  tool({
    name: 'mcp__mail__read',
    native: 'mail_read',
    description: 'Read a letter and mark it as read.',
    fields: { mailId: id('mail') },
    required: ['mailId'],
    answer: ({ letter }) => mail(letter),
  }),
  tool({
    name: 'mcp__mail__send',
    native: 'mail_send',
    description: 'Send a letter to another agent or to the human.',
    fields: { toAgentId: id('agent'), toHuman: yes, subject: text(200), body: text(20_000) },
    required: ['subject', 'body'],
    adds: ({ to_agent_id, to_human }) => {
      if ((to_agent_id === undefined) !== (to_human !== true)) return {}
      throw refuse('INVALID_INPUT', 'Must specify either toAgentId or toHuman: true')
    },
    answer: sent,
  }),
  tool({
    name: 'mcp__mail__reply',
    native: 'mail_reply',
    description: 'Answer a letter that you received.',
    fields: { originalMailId: { ...id('mail'), native: 'mail_id' }, body: text(20_000) },
    required: ['originalMailId', 'body'],
    answer: sent,
  }),
]

const agentTools = [
  tool({
    name: 'mcp__agent__get_status',
    native: 'agent_me',
    description: 'Your own status: type, state, current task and epic.',
    answer: {
      id: 'id',
      type: ({ role }) => typeOf(role),
      state: 'state',
      currentEpicId: 'epic_id',
      currentTaskId: 'task_id',
      tmuxSessionName: 'session_name',
      lastActiveAt: 'last_active_at',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
    },
  }),
  tool({
    name: 'mcp__agent__get_task',
    native: 'work_get',
    description: 'The task that you work on, with its worktree and branch (workers).',
    critical: true,
    adds: (_, principal) => ({ task_id: ownTask(principal) }),
    answer: ({ task, work, pull_request }) => ({
      ...wholeTask(task),
      worktreePath: work?.path ?? null,
      branchName: work?.branch ?? null,
      prUrl: pull_request?.url ?? null,
    }),
  }),
  tool({
    name: 'mcp__agent__get_epic',
    native: 'epic_get',
    description: 'The epic that you lead, or that your task is part of.',
    critical: true,
    adds: (given, principal) => {
      if (principal.role === 'worker') ownTask(principal)
      return inOwnEpic(given, principal)
    },
    answer: ({ epic }) => epicView(epic),
  }),
]

const epicView = view<Output<'epic_get'>['epic']>({
  id: 'id',
  title: 'title',
  description: 'description',
  state: ['state', EPIC_STATES],
  createdAt: 'created_at',
  updatedAt: 'updated_at',
  completedAt: ({ state, updated_at, completed_at }) => (state === 'REVIEW' ? updated_at : completed_at),
})

const epicTools = [
  tool({
    name: 'mcp__epic__create_task',
    native: 'task_create',
    description: 'Create a task of your epic; a worker starts on it by itself.',
    fields: { title: text(200), description: text(10_000) },
    required: ['title', 'description'],
    adds: inOwnEpic,
    answer: created,
  }),
  tool({
    name: 'mcp__epic__list_tasks',
    native: 'task_list',
    description: 'The tasks of your epic, all or in one state.',
    fields: { state: { ...STATES, native: 'status', in: (state) => [STATES.in(state)] } },
    defaults: { limit: MOST_LISTED },
    adds: inOwnEpic,
    answer: ({ tasks }, { args, principal }) => ({ epicId: ownEpic(principal, args.epicId ?? args.epic_id), tasks: tasks.map(listedTask) }),
  }),
  tool({
    name: 'mcp__epic__get_review_queue',
    native: 'review_queue',
    description: 'The work of your epic that waits for review, in the order in which it was handed in.',
    adds: inOwnEpic,
    answer: ({ queue }, { args, principal }) => ({ epicId: ownEpic(principal, args.epicId ?? args.epic_id), queue: queue.map(queued) }),
  }),
  tool({
    name: 'mcp__epic__approve_pr',
    native: 'review_decide',
    description: 'Approve work and merge it into the branch of your epic.',
    fields: { taskId },
    required: ['taskId'],
    adds: { decision: 'approve' },
    answer: ({ task_id, pr_url, merged, message, status, cursor }) => ({
      taskId: task_id,
      prUrl: pr_url,
      merged,
      message,
      // What is not merged yet says what became of it, and where to go on waiting.
      ...(merged ? {} : { status, cursor }),
    }),
  }),
  tool({
    name: 'mcp__epic__request_changes',
    native: 'review_decide',
    description: 'Send work back to its worker with your feedback.',
    fields: { taskId, feedback: text(20_000) },
    required: ['taskId', 'feedback'],
    adds: { decision: 'request_changes' },
    answer: { taskId: 'task_id', message: 'message' },
  }),
  tool({
    name: 'mcp__epic__read_file',
    native: 'file_read',
    description: "Read a file in the worktree of a worker's task.",
    fields: { taskId, filePath: { ...text(1_000), native: 'path' } },
    required: ['taskId', 'filePath'],
    defaults: { max_bytes: MOST_BYTES },
    answer: ({ task_id, path, content, encoding, cut }) => ({
      taskId: task_id,
      filePath: path,
      content,
      ...(encoding === 'utf8' ? {} : { encoding }),
      ...(cut ? { truncated: true } : {}),
    }),
  }),
  tool({
    name: 'mcp__epic__create_epic_pr',
    native: 'epic_finish',
    description: 'When all tasks are done: the pull request of your epic, and a letter to the human.',
    fields: { title: text(200), description: text(20_000) },
    adds: inOwnEpic,
    answer: { epicId: 'epic_id', prUrl: 'pr_url', prNumber: 'pr_number', state: ['state', EPIC_STATES], message: 'message' },
  }),
  tool({
    name: 'mcp__epic__update_status',
    native: 'epic_update',
    description: 'Move your epic to another state.',
    critical: true,
    unlisted: true,
    fields: { state: EPIC_STATES },
    required: ['state'],
    adds: inOwnEpic,
    answer: { epicId: ({ epic }) => epic.id, state: ({ epic }) => EPIC_STATES.out(epic.state) },
  }),
]

const systemTools = [
  tool({
    name: 'mcp__system__log_decision',
    native: 'decision_log',
    description: 'Record a decision and its reason.',
    fields: { title: text(200), body: text(10_000) },
    required: ['title', 'body'],
    answer: { logId: 'log_id', timestamp: 'timestamp' },
  }),
]

const handIn = meaning({
  native: 'review_request',
  fields: { taskId, state: { ...STATES, native: null }, status: { ...STATES, native: null } },
  defaults: { summary: 'Handed in.' },
  answer: { taskId: ({ review }) => review.task_id, state: ['status', STATES], submittedAt: ({ review }) => review.requested_at },
})

const taskTools = [
  tool({
    name: 'mcp__task__update_status',
    native: 'task_move',
    description: 'Move a task to another state; yours, when you name none.',
    critical: true,
    unlisted: true,
    fields: { taskId, state: { ...STATES, native: 'status' } },
    required: ['state'],
    adds: onOwnTask,
    answer: { taskId: ({ task }) => task.id, state: ({ task }) => STATES.out(task.status) },
    // Work that a worker hands in is a round of review, and not only a column of the board.
    instead: [{ when: ({ state, status }, { role }) => (state ?? status) === 'REVIEW' && role === 'worker', means: handIn }],
  }),
  tool({
    name: 'mcp__task__create',
    native: 'task_create',
    description: 'Create a task.',
    unlisted: true,
    fields: { title: text(200), description: text(10_000) },
    required: ['title'],
    answer: created,
  }),
  tool({
    name: 'mcp__task__assign',
    native: 'task_assign',
    description: 'Give a task to an agent.',
    unlisted: true,
    fields: { taskId, agentId: id('agent') },
    required: ['taskId', 'agentId'],
    answer: { taskId: ({ task }) => task.id, agentId: ({ task }) => task.assignee_id },
  }),
  tool({
    name: 'mcp__task__add_comment',
    native: 'task_note',
    description: 'Write a comment on a task; yours, when you name none.',
    unlisted: true,
    fields: { taskId, comment: { ...text(20_000), native: 'body' } },
    required: ['comment'],
    adds: onOwnTask,
    answer: { commentId: 'note_id', taskId: 'task_id', timestamp: 'at' },
  }),
]

/** Ours, under our names: the document says what is in its events, and has no tool that reads them. */
const events = { description: 'What happened.', unlisted: true }
const eventTools = [
  tool({
    ...events,
    name: 'event_list',
    native: 'event_list',
    answer: ({ events, ...rest }) => ({ events: events.map(eventIn), ...rest }),
  }),
  tool({
    ...events,
    name: 'event_wait',
    native: 'event_wait',
    answer: ({ events, ...rest }) => ({ events: events.map(eventIn), ...rest }),
  }),
]
export const EVENTS = eventTools.map(({ name }) => name)

export const tools = [...mailTools, ...agentTools, ...epicTools, ...systemTools, ...taskTools, ...eventTools]

function ownTask(principal: Principal): string {
  if (principal.role !== 'worker') throw refuse('INVALID_AGENT_STATE', 'Agent is not a WORKER')
  return taskOf(principal)
}

function taskOf({ scope }: Principal): string {
  if (scope.task === undefined) throw refuse('INVALID_AGENT_STATE', "WORKER doesn't have a current task")
  return scope.task
}

function onOwnTask({ task_id }: { task_id?: string }, principal: Principal) {
  return task_id === undefined ? { task_id: taskOf(principal) } : {}
}

function ownEpic({ scope }: Principal, named: unknown): string {
  const epic = named ?? scope.epic
  if (epic === undefined) throw refuse('INVALID_AGENT_STATE', "Agent doesn't have a current epic")
  return epic as string
}

function inOwnEpic({ epic_id }: { epic_id?: string }, principal: Principal) {
  return { epic_id: ownEpic(principal, epic_id) }
}

const queued = view<Output<'review_queue'>['queue'][number]>({
  position: 'position',
  taskId: 'task_id',
  title: 'title',
  prUrl: 'pr_url',
  submittedAt: 'requested_at',
})

function created({ task: { id, title, epic_id } }: Output<'task_create'>) {
  const message = epic_id ? 'Task created. A worker will be assigned automatically.' : 'Task created.'
  return { taskId: id, title, worktreeName: nameOf(id, title).name, message }
}
