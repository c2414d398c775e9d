import type { Code } from '../../kernel/error.ts'
import type { RoleRules } from '../../kernel/policy.ts'
import { defineDialect, present, type Said } from '../define.ts'
import { route } from './route.ts'
import { EVENTS, tools } from './tools.ts'
import { eventIn, typeOf } from './words.ts'

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

/** Factory Factory: a supervisor, orchestrators and workers on one epic. */
export const factory = defineDialect({
  name: 'factory',
  title: 'Factory Factory',
  casing: 'camel',
  tools,
  roles: ROLES,
  route,
  logsInFull: true,
  event: (view) => eventIn(view as Parameters<typeof eventIn>[0]),
  codes: DOCUMENTED,
  error: (said) => {
    const { code, denied, message, tool } = said
    const refusal = denied && `Tool '${tool}' is not allowed for agent type '${typeOf(denied)}'`
    return { error: { code, message: refusal ?? message, details: refusal ? {} : detailsOf(said) } }
  },
})

function detailsOf({ code, native, hint, next_tool, suggestions, facts, issues }: Said) {
  return present({ hint, nextTool: next_tool, suggestions, nativeCode: code === native ? undefined : native, ...facts, issues })
}
