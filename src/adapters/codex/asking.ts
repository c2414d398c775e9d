import { fieldOf, open, textOf } from './items.ts'

type Params = Record<string, unknown>

/** What it wants permission for, and the two answers in the shape in which it expects them. */
export interface Question {
  name: string
  input: string
  yes: unknown
  no: unknown
}

/** What the request asks; undefined when nobody here could answer it. `changes`: what is known of edits by their item. */
export function questionOf(method: string, params: Params, changes: Record<string, string>): Question | undefined {
  if (!Object.hasOwn(QUESTIONS, method)) return undefined
  const question = QUESTIONS[method]?.(params, changes)
  return question && { ...question, name: open(question.name), input: open(question.input) }
}

const DECISION = { yes: { decision: 'accept' }, no: { decision: 'decline' } }

const QUESTIONS: Record<string, (params: Params, changes: Record<string, string>) => Question | undefined> = {
  'item/commandExecution/requestApproval': ({ command, reason, networkApprovalContext, additionalPermissions }) => ({
    name: 'command',
    input: withReason([textOf(command), ...also('network', networkApprovalContext), ...also('permissions', additionalPermissions)], reason),
    ...DECISION,
  }),
  'item/fileChange/requestApproval': ({ itemId, reason, grantRoot }, changes) => ({
    name: 'edit',
    input: withReason([known(changes, textOf(itemId)) ?? UNKNOWN_CHANGES, ...also('from now on, writing below', grantRoot)], reason),
    ...DECISION,
  }),
  'item/permissions/requestApproval': ({ permissions, reason }) => ({
    name: 'permissions',
    input: withReason([textOf(permissions)], reason),
    yes: { permissions: granted(permissions), scope: 'turn' },
    no: { permissions: {}, scope: 'turn' },
  }),
  // Of those that servers send, only the question whether a tool may be called can be answered by yes or no.
  'mcpServer/elicitation/request': ({ serverName, message, _meta }) =>
    fieldOf(_meta, 'codex_approval_kind') === undefined
      ? undefined
      : {
          name: textOf(serverName),
          input: withReason([textOf(fieldOf(_meta, 'tool_params'))], message),
          yes: { action: 'accept', content: {}, _meta: null },
          no: { action: 'decline', content: null, _meta: null },
        },
}

/** As when it was too long to be read. */
const UNKNOWN_CHANGES = 'What it would change is not known here.'

function withReason(what: string[], reason: unknown): string {
  return [...what.filter(Boolean), ...(reason ? [`(${textOf(reason)})`] : [])].join('\n')
}

function also(what: string, value: unknown): string[] {
  return value === undefined || value === null ? [] : [`${what}: ${textOf(value)}`]
}

function known(changes: Record<string, string>, item: string): string | undefined {
  return Object.hasOwn(changes, item) ? changes[item] : undefined
}

function granted(permissions: unknown): Record<string, unknown> {
  const asked = ['network', 'fileSystem'].map((name) => [name, fieldOf(permissions, name)])
  return Object.fromEntries(asked.filter(([, value]) => value !== undefined && value !== null))
}
