import { AgentId, MailId, TaskId } from '../capabilities/ids.ts'
import { nameOf } from '../capabilities/work/index.ts'
import { codesLike, type Dialect, type DialectTool } from '../kernel/dialect.ts'
import { CODES, type Code, type ErrorBody, refuse } from '../kernel/error.ts'
import { notFound } from '../kernel/id.ts'
import type { Principal, RoleRules } from '../kernel/policy.ts'

type Args = Record<string, unknown>

/** Declared with fields alone; `fields` are the document's arguments, each with the native one where that is not its snake_case. */
interface Declared extends Omit<DialectTool, 'inputJson' | 'toNative'> {
  fields: Record<string, Field>
  required?: string[]
  toNative?: DialectTool['toNative']
}

interface Field {
  json: object
  native?: string
  /** What it names. One that cannot be an id names nothing: the document knows ids of other looks. */
  names?: keyof typeof IDS
}

const IDS = { agent: AgentId, mail: MailId, task: TaskId }
const idOf = (names: keyof typeof IDS, native?: string): Field => ({ json: { type: 'string', maxLength: 64 }, names, native })
const taskId = idOf('task')
const line = (maxLength: number): Field => ({ json: { type: 'string', minLength: 1, maxLength } })

/** BACKLOG and DONE are PENDING and COMPLETED here; the others have one name. */
const STATES: Record<string, string> = { BACKLOG: 'PENDING', IN_PROGRESS: 'IN_PROGRESS', REVIEW: 'REVIEW', DONE: 'COMPLETED' }
const EPIC_STATES = ['PLANNING', 'IN_PROGRESS', 'REVIEW', 'COMPLETED', 'CANCELLED']
const MOST_LISTED = 200
const MOST_BYTES = 1_000_000
const STATE = { type: 'string', enum: Object.values(STATES) }

const mailTools: Declared[] = [
  {
    name: 'mcp__mail__list_inbox',
    native: 'mail_inbox',
    description: 'Your letters: those that are unread, or all.',
    fields: { includeRead: { json: { type: 'boolean' } } },
    toNative: (args) => ({ limit: MOST_LISTED, ...args }),
    fromNative: ({ count, unread_count, letters }) => ({ count, unreadCount: unread_count, mails: (letters as Args[]).map(mailView) }),
  },
  {
    name: 'mcp__mail__read',
    native: 'mail_read',
    description: 'Read a letter and mark it as read.',
    fields: { mailId: idOf('mail') },
    required: ['mailId'],
    fromNative: ({ letter }) => mailView(letter as Args),
  },
  {
    name: 'mcp__mail__send',
    native: 'mail_send',
    description: 'Send a letter to another agent or to the human.',
    fields: { toAgentId: idOf('agent'), toHuman: { json: { type: 'boolean' } }, subject: line(200), body: line(20_000) },
    required: ['subject', 'body'],
    toNative: (args) => {
      const { to_agent_id, to_human } = args
      if ((to_agent_id === undefined) === (to_human !== true))
        throw refuse('INVALID_INPUT', 'Must specify either toAgentId or toHuman: true')
      return args
    },
    fromNative: sent,
  },
  {
    name: 'mcp__mail__reply',
    native: 'mail_reply',
    description: 'Answer a letter that you received.',
    fields: { originalMailId: idOf('mail', 'mail_id'), body: line(20_000) },
    required: ['originalMailId', 'body'],
    fromNative: sent,
  },
]

const agentTools: Declared[] = [
  {
    name: 'mcp__agent__get_status',
    native: 'agent_me',
    description: 'Your own status: type, state, current task and epic.',
    fields: {},
    fromNative: (me) => ({
      id: me.id,
      type: typeOf(me.role),
      state: me.state,
      currentEpicId: me.epic_id,
      currentTaskId: me.task_id,
      tmuxSessionName: me.session_name ?? null,
      lastActiveAt: me.last_active_at,
      createdAt: me.created_at,
      updatedAt: me.updated_at,
    }),
  },
  {
    name: 'mcp__agent__get_task',
    native: 'work_get',
    description: 'The task that you work on, with its worktree and branch (workers).',
    critical: true,
    fields: {},
    toNative: (args, principal) => ({ ...args, task_id: ownTask(principal) }),
    fromNative: ({ task, work, pull_request }) => {
      const { path, branch } = (work ?? {}) as Args
      return {
        ...taskView(task as Args),
        worktreePath: path ?? null,
        branchName: branch ?? null,
        prUrl: (pull_request as Args | null)?.url ?? null,
      }
    },
  },
  {
    name: 'mcp__agent__get_epic',
    native: 'epic_get',
    description: 'The epic that you lead, or that your task is part of.',
    critical: true,
    fields: {},
    toNative: (args, principal) => {
      if (principal.role === 'worker') ownTask(principal)
      return inOwnEpic(args, principal)
    },
    fromNative: ({ epic }) => {
      const { id, title, description, state, created_at, updated_at, completed_at } = epic as Args
      const completedAt = state === 'REVIEW' ? updated_at : completed_at
      return { id, title, description, state: epicState(state), createdAt: created_at, updatedAt: updated_at, completedAt }
    },
  },
]

const taskTools: Declared[] = [
  {
    name: 'mcp__task__update_status',
    native: 'task_move',
    description: 'Move a task to another state; yours, when you name none.',
    critical: true,
    unlisted: true,
    fields: { taskId, state: { json: STATE, native: 'status' } },
    required: ['state'],
    toNative: ({ status, ...rest }, principal) => ({ task_id: ownTask(principal, rest), ...rest, status: nativeState(status) }),
    fromNative: ({ task }) => ({ taskId: (task as Args).id, state: stateOf((task as Args).status) }),
    // Work that a worker hands in is a round of review, and not only a column of the board.
    instead: ({ state, status }, { role }) => ((state ?? status) === 'REVIEW' && role === 'worker' ? HAND_IN : undefined),
  },
  {
    name: 'mcp__task__create',
    native: 'task_create',
    description: 'Create a task.',
    unlisted: true,
    fields: { title: line(200), description: line(10_000) },
    required: ['title'],
    fromNative: created,
  },
  {
    name: 'mcp__task__assign',
    native: 'task_assign',
    description: 'Give a task to an agent.',
    unlisted: true,
    fields: { taskId, agentId: idOf('agent') },
    required: ['taskId', 'agentId'],
    fromNative: ({ task }) => ({ taskId: (task as Args).id, agentId: (task as Args).assignee_id }),
  },
  {
    name: 'mcp__task__add_comment',
    native: 'task_note',
    description: 'Write a comment on a task; yours, when you name none.',
    unlisted: true,
    fields: { taskId, comment: { ...line(20_000), native: 'body' } },
    required: ['comment'],
    toNative: (args, principal) => ({ task_id: ownTask(principal, args), ...args }),
    fromNative: ({ note_id, task_id, at }) => ({ commentId: note_id, taskId: task_id, timestamp: at }),
  },
]

const HAND_IN = {
  native: 'review_request',
  toNative: (args: Args) => {
    const { state: _, status: __, taskId, ...rest } = args
    return { ...rest, ...(taskId === undefined ? {} : { task_id: taskId }), summary: args.summary ?? 'Handed in.' }
  },
  fromNative: ({ review, status }: Args) => ({
    taskId: (review as Args).task_id,
    state: stateOf(status),
    submittedAt: (review as Args).requested_at,
  }),
} satisfies ReturnType<NonNullable<DialectTool['instead']>>

const epicTools: Declared[] = [
  {
    name: 'mcp__epic__create_task',
    native: 'task_create',
    description: 'Create a task of your epic; a worker starts on it by itself.',
    fields: { title: line(200), description: line(10_000) },
    required: ['title', 'description'],
    toNative: inOwnEpic,
    fromNative: created,
  },
  {
    name: 'mcp__epic__list_tasks',
    native: 'task_list',
    description: 'The tasks of your epic, all or in one state.',
    fields: { state: { json: STATE, native: 'status' } },
    toNative: ({ status, ...args }, principal) => ({
      limit: MOST_LISTED,
      ...inOwnEpic(args, principal),
      ...(status === undefined ? {} : { status: [nativeState(status)] }),
    }),
    fromNative: ({ tasks }, args, principal) => ({ epicId: ownEpic(principal, args), tasks: (tasks as Args[]).map(listedTask) }),
  },
  {
    name: 'mcp__epic__get_review_queue',
    native: 'review_queue',
    description: 'The work of your epic that waits for review, in the order in which it was handed in.',
    fields: {},
    toNative: inOwnEpic,
    fromNative: ({ queue }, args, principal) => ({ epicId: ownEpic(principal, args), queue: (queue as Args[]).map(queued) }),
  },
  {
    name: 'mcp__epic__approve_pr',
    native: 'review_decide',
    description: 'Approve work and merge it into the branch of your epic.',
    fields: { taskId },
    required: ['taskId'],
    toNative: (args) => ({ ...args, decision: 'approve' }),
    fromNative: ({ task_id, pr_url, merged, message, status, cursor }) => ({
      taskId: task_id,
      prUrl: pr_url,
      merged,
      message,
      // What is not merged yet says what became of it, and where to go on waiting.
      ...(merged ? {} : { status, cursor }),
    }),
  },
  {
    name: 'mcp__epic__request_changes',
    native: 'review_decide',
    description: 'Send work back to its worker with your feedback.',
    fields: { taskId, feedback: line(20_000) },
    required: ['taskId', 'feedback'],
    toNative: (args) => ({ ...args, decision: 'request_changes' }),
    fromNative: ({ task_id, message }) => ({ taskId: task_id, message }),
  },
  {
    name: 'mcp__epic__read_file',
    native: 'file_read',
    description: "Read a file in the worktree of a worker's task.",
    fields: { taskId, filePath: { ...line(1_000), native: 'path' } },
    required: ['taskId', 'filePath'],
    toNative: (args) => ({ max_bytes: MOST_BYTES, ...args }),
    fromNative: ({ task_id, path, content, encoding, cut }) => ({
      taskId: task_id,
      filePath: path,
      content,
      ...(encoding === 'utf8' ? {} : { encoding }),
      ...(cut ? { truncated: true } : {}),
    }),
  },
  {
    name: 'mcp__epic__create_epic_pr',
    native: 'epic_finish',
    description: 'When all tasks are done: the pull request of your epic, and a letter to the human.',
    fields: { title: line(200), description: line(20_000) },
    toNative: inOwnEpic,
    fromNative: ({ epic_id, pr_url, pr_number, state, message }) => ({
      epicId: epic_id,
      prUrl: pr_url,
      prNumber: pr_number,
      state: epicState(state),
      message,
    }),
  },
  {
    name: 'mcp__epic__update_status',
    native: 'epic_update',
    description: 'Move your epic to another state.',
    critical: true,
    unlisted: true,
    fields: { state: { json: { type: 'string', enum: EPIC_STATES } } },
    required: ['state'],
    toNative: inOwnEpic,
    fromNative: ({ epic }) => ({ epicId: (epic as Args).id, state: epicState((epic as Args).state) }),
  },
]

const systemTools: Declared[] = [
  {
    name: 'mcp__system__log_decision',
    native: 'decision_log',
    description: 'Record a decision and its reason.',
    fields: { title: line(200), body: line(10_000) },
    required: ['title', 'body'],
    fromNative: ({ log_id, timestamp }) => ({ logId: log_id, timestamp }),
  },
]

/** Ours, under our names: the document says what is in its events, and has no tool that reads them. */
const eventTools: Declared[] = ['event_list', 'event_wait'].map((name) => ({
  name,
  native: name,
  description: 'What happened.',
  unlisted: true,
  fields: {},
  fromNative: ({ events, ...rest }) => ({ events: (events as Args[]).map(eventIn), ...rest }),
}))
const EVENTS = eventTools.map(({ name }) => name)

const declared = [...mailTools, ...agentTools, ...epicTools, ...systemTools, ...taskTools, ...eventTools]

/** The chapter "Supervisor only" is the narrower statement, so it beats the orchestrator's glob over the same prefix. */
const SUPERVISOR_ONLY = [
  'mcp__epic__create_task',
  'mcp__epic__list_tasks',
  'mcp__epic__get_review_queue',
  'mcp__epic__approve_pr',
  'mcp__epic__request_changes',
  'mcp__epic__read_file',
  'mcp__epic__create_epic_pr',
]

const ROLES = {
  supervisor: { allow: ['*'], deny: [] },
  orchestrator: {
    allow: ['mcp__mail__*', 'mcp__agent__*', 'mcp__system__*', 'mcp__task__*', 'mcp__epic__*', ...EVENTS],
    deny: ['mcp__supervisor__*', ...SUPERVISOR_ONLY],
  },
  worker: {
    allow: [
      'mcp__mail__*',
      'mcp__agent__get_status',
      'mcp__agent__get_task',
      'mcp__agent__get_epic',
      'mcp__system__log_decision',
      'mcp__task__update_status',
      'mcp__task__add_comment',
      ...EVENTS,
    ],
    deny: ['mcp__supervisor__*', 'mcp__orchestrator__*', 'mcp__epic__*', 'mcp__task__create', 'mcp__task__assign'],
  },
} satisfies Record<string, RoleRules>

/** The document knows eight codes; the two about tokens are ours, because it has none. */
const DOCUMENTED: Partial<Record<Code, string>> = {
  INVALID_TIMEOUT: 'INVALID_INPUT',
  INVALID_CURSOR: 'INVALID_INPUT',
  PAYLOAD_TOO_LARGE: 'INVALID_INPUT',
  AMBIGUOUS_TOOL: 'TOOL_NOT_FOUND',
  STATUS_WAS_TASK_TYPE: 'INVALID_INPUT',
  IDEMPOTENCY_MISMATCH: 'INVALID_INPUT',
  APPROVAL_REQUIRED: 'PERMISSION_DENIED',
  TASK_DELETED: 'RESOURCE_NOT_FOUND',
  ALREADY_EXISTS: 'INVALID_AGENT_STATE',
  CONFLICT: 'INVALID_AGENT_STATE',
  INVALID_TRANSITION: 'INVALID_AGENT_STATE',
  DEPENDENCY_CYCLE: 'INVALID_INPUT',
  TASK_BLOCKED: 'INVALID_AGENT_STATE',
  START_PENDING: 'TRANSIENT_ERROR',
  REVIEW_LIMIT_EXCEEDED: 'INVALID_AGENT_STATE',
  BUDGET_EXHAUSTED: 'INVALID_AGENT_STATE',
  RATE_LIMITED: 'TRANSIENT_ERROR',
  DISCONNECTED: 'TRANSIENT_ERROR',
  SHUTTING_DOWN: 'TRANSIENT_ERROR',
  STORAGE_FULL: 'TRANSIENT_ERROR',
}

/** Factory Factory: a supervisor, orchestrators and workers on one epic. */
export const factory: Dialect = {
  name: 'factory',
  title: 'Factory Factory',
  tools: declared.map(dialectTool),
  roles: ROLES,
  logsInFull: true,
  event: eventIn,
  codes: codesLike(Object.keys(CODES) as Code[], DOCUMENTED),
  error: (body, name) => {
    const code = factory.codes[body.code]
    return { error: { code, message: messageOf(body, name), details: detailsOf(body, name, code) } }
  },
}

function dialectTool({ fields, required, toNative, ...tool }: Declared): DialectTool {
  const properties = Object.fromEntries(Object.entries(fields).map(([name, { json }]) => [name, json]))
  return {
    ...tool,
    // Not closed: an idempotencyKey is taken too. What nobody knows is refused by the native schema.
    inputJson: { type: 'object', properties, ...(required ? { required } : {}) },
    toNative: (args, principal) => {
      checkDocumented(tool.name, fields, required ?? [], args)
      for (const [name, value] of Object.entries(args)) requirePossible(fields[name]?.names, value)
      const renamed = Object.fromEntries(Object.entries(args).map(([name, value]) => [fields[name]?.native ?? snake(name), value]))
      return toNative ? toNative(renamed, principal) : renamed
    },
  }
}

/** What natively has a default or another name: that it is there, and is one of the documented values. */
function checkDocumented(tool: string, fields: Declared['fields'], required: string[], args: Args): void {
  const missing = required.filter((path) => args[path] === undefined).map((path) => ({ path, message: 'is missing' }))
  const wrong = Object.entries(args).flatMap(([path, value]) => {
    const { enum: values } = (fields[path]?.json ?? {}) as { enum?: unknown[] }
    return values && !values.includes(value) ? [{ path, message: `must be one of ${values.join(', ')}` }] : []
  })
  const issues = [...missing, ...wrong]
  if (issues.length) throw refuse('INVALID_INPUT', `${tool}: ${issues.map(({ path }) => path).join(', ')}`, { details: { issues } })
}

function requirePossible(kind: keyof typeof IDS | undefined, value: unknown): void {
  if (kind && typeof value === 'string' && !IDS[kind].safeParse(value).success) throw notFound(kind, value.slice(0, 64), undefined)
}

/** What the caller may not use at all is said in the document's own words. */
function messageOf(body: ErrorBody, name: string): string {
  const { role, issues } = body.details ?? {}
  if (isOfTheTool(body)) return `Tool '${name}' is not allowed for agent type '${typeOf(role)}'`
  if (!Array.isArray(issues)) return body.message
  return `${name}: ${issues.map(({ path, message }) => `${argument(name, path)}: ${inItsWords(name, message).replace(/^[A-Z_]+: /, '')}`).join('; ')}`
}

/** Keys that nobody knows were renamed on their way in like all others. */
function inItsWords(tool: string, message: unknown): string {
  const text = String(message)
  return text.startsWith('Unrecognized key') ? text.replace(/"(\w+)"/g, (_, key: string) => `"${argument(tool, key)}"`) : text
}

function isOfTheTool({ code, details }: ErrorBody): boolean {
  return code === 'PERMISSION_DENIED' && typeof details?.role === 'string'
}

function detailsOf(body: ErrorBody, name: string, called: string): Args {
  if (isOfTheTool(body)) return {}
  const { code, hint, next_tool, suggestions, details } = body
  const { issues, ...facts } = details ?? {}
  const inOurWords = Array.isArray(issues)
    ? { issues: issues.map(({ path, message }) => ({ path: argument(name, path), message: inItsWords(name, message) })) }
    : {}
  const given = {
    hint,
    nextTool: next_tool,
    suggestions,
    nativeCode: called === code ? undefined : code,
    ...camelKeys(facts),
    ...inOurWords,
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

/** The document's name of a native argument. */
function argument(tool: string, path: unknown): string {
  const native = String(path)
  const { fields } = declared.find(({ name }) => name === tool) ?? {}
  const named = Object.entries(fields ?? {}).find(([, field]) => field.native === native)
  return named?.[0] ?? (camel(native) || 'input')
}

function sent({ mail_id, timestamp }: Args): Args {
  return { mailId: mail_id, timestamp }
}

function mailView({ id, from_id, from_role, subject, body, sent_at, read_at }: Args): Args {
  return {
    id,
    fromAgentId: from_id,
    fromAgentType: from_id === 'system' ? 'SYSTEM' : typeOf(from_role),
    subject,
    body,
    isRead: read_at !== null,
    createdAt: sent_at,
    readAt: read_at,
  }
}

function ownTask({ role, scope }: Principal, args?: Args): unknown {
  if (args?.task_id !== undefined) return args.task_id
  if (!args && role !== 'worker') throw refuse('INVALID_AGENT_STATE', 'Agent is not a WORKER')
  if (scope.task === undefined) throw refuse('INVALID_AGENT_STATE', "WORKER doesn't have a current task")
  return scope.task
}

function ownEpic({ scope }: Principal, args: Args): unknown {
  const epic = args.epicId ?? args.epic_id ?? scope.epic
  if (epic === undefined) throw refuse('INVALID_AGENT_STATE', "Agent doesn't have a current epic")
  return epic
}

function inOwnEpic(args: Args, principal: Principal): Args {
  return { ...args, epic_id: ownEpic(principal, args) }
}

function listedTask(task: Args): Args {
  const { description: _, ...view } = taskView(task)
  return { ...view, assignedAgentId: task.assignee_id }
}

function queued({ position, task_id, title, pr_url, requested_at }: Args): Args {
  return { position, taskId: task_id, title, prUrl: pr_url, submittedAt: requested_at }
}

function created({ task }: Args): Args {
  const { id, title, epic_id } = task as { id: string; title: string; epic_id?: string }
  const message = epic_id ? 'Task created. A worker will be assigned automatically.' : 'Task created.'
  return { taskId: id, title, worktreeName: nameOf(id, title).name, message }
}

function taskView(task: Args): Args {
  const { id, title, description, status, epic_id, created_at, updated_at } = task
  return {
    id,
    title,
    description,
    state: stateOf(status),
    epicId: epic_id ?? null,
    createdAt: created_at,
    updatedAt: updated_at,
  }
}

/** Under the documented names, and of a letter what is documented alone. */
function eventIn({ type, data, ...view }: Args): Args {
  const { mailId, toAgentId, isForHuman, subject, ...more } = camelKeys(data as Args)
  if (type === 'mail.sent') return { ...camelKeys(view), type, data: { mailId, toAgentId, isForHuman, subject } }
  const states = Object.fromEntries(['from', 'to', 'status'].flatMap((key) => (key in more ? [[key, stateOf(more[key])]] : [])))
  return { ...camelKeys(view), type, data: { ...camelKeys(data as Args), ...(String(type).startsWith('task.') ? states : {}) } }
}

function stateOf(status: unknown): string {
  return STATES[String(status)] ?? String(status)
}

/** Natively a handed-in epic awaits its merge; for the document its work is done. */
function epicState(state: unknown): unknown {
  return state === 'REVIEW' ? 'COMPLETED' : state
}

function nativeState(state: unknown): unknown {
  return Object.keys(STATES).find((status) => STATES[status] === state) ?? state
}

/** A person has no role, and is the document's human. */
function typeOf(role: unknown): string {
  return typeof role === 'string' ? role.toUpperCase() : 'HUMAN'
}

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const camel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
const camelKeys = (facts: Args) => Object.fromEntries(Object.entries(facts).map(([key, value]) => [camel(key), value]))
