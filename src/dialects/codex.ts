import { codesLike, type Dialect, type DialectTool } from '../kernel/dialect.ts'
import { CODES, type Code, type ErrorBody } from '../kernel/error.ts'
import type { Principal, RoleRules } from '../kernel/policy.ts'

type Args = Record<string, unknown>

/** Declared with fields alone; `fields` are the document's arguments, each with the native one where that has another name. */
interface Declared extends Omit<DialectTool, 'inputJson' | 'toNative'> {
  fields: Record<string, { json: object; native?: string }>
  required?: string[]
  toNative?: DialectTool['toNative']
}

const text = (maxLength: number) => ({ json: { type: 'string', minLength: 1, maxLength } })
const list = (items: object, more: object) => ({ json: { type: 'array', items, ...more } })

const FEEDBACK_TYPES = ['needs_work', 'suggestions', 'clarification']
const PRIORITIES = ['low', 'medium', 'high', 'critical']
const MOST_LISTED = 200

const createPullRequest: Declared = {
  name: 'create_pull_request',
  native: 'pr_create',
  description: 'Make a pull request of your work. By the reviewer of the work it approves it, and ends the review.',
  fields: { title: text(200), description: text(20_000), base_branch: text(200) },
  required: ['title', 'description'],
  fromNative: ({ pr_number, pr_url, branch, message }) => ({ pr_number, pr_url, branch_name: branch, message }),
}

const declared: Declared[] = [
  {
    name: 'request_review',
    native: 'review_request',
    description: 'Hand in your work: a reviewer agent reads it in a worktree of its own. Commit everything first.',
    fields: { reviewer_prompt: text(20_000), completion_message: { ...text(20_000), native: 'summary' } },
    toNative: (args) => ({ summary: 'Handed in.', ...args, reviewer_agent: true }),
    fromNative: ({ review, branch, reviewer }) => {
      const { agent_id, session_name, worktree_path, state } = (reviewer ?? {}) as Args
      return {
        review_instance_id: agent_id ?? null,
        session_name: session_name ?? null,
        worktree_path: worktree_path ?? null,
        branch_name: branch,
        status: 'WAITING_REVIEW',
        review_iteration: (review as Args).round,
        review_status: statusOf(state ?? 'STARTING'),
      }
    },
  },
  createPullRequest,
  { ...createPullRequest, name: 'create_pr', unlisted: true },
  {
    name: 'send_feedback',
    native: 'review_feedback',
    description: 'Send the work that you review back: a commit on its branch and a letter to its agent. It ends the review.',
    fields: {
      feedback: text(20_000),
      feedback_type: { json: { type: 'string', enum: FEEDBACK_TYPES } },
      priority: { json: { type: 'string', enum: PRIORITIES } },
      actionable_items: list({ type: 'string', minLength: 1, maxLength: 1_000 }, { maxItems: 50 }),
    },
    required: ['feedback', 'feedback_type'],
    fromNative: ({ feedback_id, git_commit_hash, target_agent_id, cleanup_status, status, message }) => ({
      feedback_id,
      git_commit_hash,
      target_instance_id: target_agent_id,
      cleanup_status: statusOf(cleanup_status),
      // Without a commit it says why.
      ...(status === 'sent' ? {} : { message }),
    }),
  },
  {
    name: 'create_issues',
    native: 'issue_create',
    description: 'Create issues from a plan, all or none. Here they become tasks.',
    fields: {
      issues: list(
        {
          type: 'object',
          properties: {
            title: { type: 'string', minLength: 1, maxLength: 200 },
            body: { type: 'string', maxLength: 8_000 },
            labels: { type: 'array', items: { type: 'string', minLength: 1, maxLength: 50 }, maxItems: 20 },
          },
          required: ['title', 'body'],
        },
        { minItems: 1, maxItems: 50 },
      ),
    },
    required: ['issues'],
    fromNative: ({ issues }) => ({
      issues: (issues as Args[]).map(({ number, url, title, handle }) => ({ issue_number: number, issue_url: url, title, task: handle })),
    }),
  },
  {
    name: 'query_instances',
    native: 'agent_list',
    description: 'The agents and what each of them does.',
    unlisted: true,
    fields: {},
    toNative: (args) => ({ limit: MOST_LISTED, ...args }),
    fromNative: ({ agents }) => ({
      instances: (agents as Args[]).map(({ id, handle, role, state, task_id }) => ({
        instance_id: id,
        name: handle,
        type: TYPES[String(role)] ?? role,
        status: statusOf(state),
        task_id,
      })),
    }),
  },
]

const TYPES: Record<string, string> = { worker: 'coding', reviewer: 'review', planner: 'planning' }

/** The document has "all agents can create PRs" and "read-only queries" for every type; the rest is one type's each. */
const EVERYBODY = ['create_pull_request', 'create_pr', 'query_instances']

const ROLES = {
  worker: { allow: ['request_review', ...EVERYBODY], deny: [] },
  reviewer: { allow: ['send_feedback', ...EVERYBODY], deny: [] },
  planner: { allow: ['create_issues', ...EVERYBODY], deny: [] },
} satisfies Record<string, RoleRules>

/** Claude Codex: planning, coding and review agents around pull requests. The one code that its document names is ours too. */
export const codex: Dialect = {
  name: 'codex',
  title: 'Claude Codex',
  tools: declared.map(dialectTool),
  roles: ROLES,
  logsInFull: true,
  codes: codesLike(Object.keys(CODES) as Code[], {}),
  error: (body, name, caller) => {
    const code = codex.codes[body.code]
    const { hint, suggestions, details } = body
    const { issues, ...facts } = details ?? {}
    const given = { hint, suggestions, ...facts, ...(Array.isArray(issues) ? { issues: inItsWords(issues, name) } : {}) }
    const known = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
    const instance = caller?.kind === 'agent' ? { instance_id: caller.id } : {}
    return { ...known, code, error: code, message: messageOf(body, name), ...instance, tool_name: name }
  },
}

function dialectTool({ fields, required, toNative, ...tool }: Declared): DialectTool {
  const properties = Object.fromEntries(Object.entries(fields).map(([name, { json }]) => [name, json]))
  return {
    ...tool,
    // Not closed: an idempotency_key is taken too. What nobody knows is refused by the native schema.
    inputJson: { type: 'object', properties, ...(required ? { required } : {}) },
    toNative: (args: Args, principal: Principal) => {
      const renamed = Object.fromEntries(Object.entries(args).map(([name, value]) => [fields[name]?.native ?? name, value]))
      return toNative ? toNative(renamed, principal) : renamed
    },
  }
}

interface Issue {
  path: unknown
  message: unknown
}

function messageOf({ message, details }: ErrorBody, name: string): string {
  if (!Array.isArray(details?.issues)) return message
  const said = inItsWords(details.issues, name).map((issue) => `${issue.path}: ${String(issue.message).replace(/^[A-Z_]+: /, '')}`)
  return `${name}: ${said.join('; ')}`
}

/** Arguments under the names that the document has for them. */
function inItsWords(issues: Issue[], tool: string) {
  const fields = Object.entries(declared.find(({ name }) => name === tool)?.fields ?? {})
  const called = (path: string) => fields.find(([, { native }]) => native === path)?.[0] ?? (path || 'input')
  return issues.map((issue) => ({ ...issue, path: called(String(issue.path)) }))
}

/** An agent that is stopped is TERMINATED there; the other words are the same. */
function statusOf(state: unknown): string {
  const called = String(state).toUpperCase()
  return called === 'STOPPED' || called === 'ENDED' ? 'TERMINATED' : called
}
