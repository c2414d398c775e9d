import { type Declared, defineDialect, text, tool, view } from '../define.ts'

const MOST_LISTED = 200
const TYPES: Record<string, string> = { worker: 'coding', reviewer: 'review', planner: 'planning' }

/** An agent that is stopped is TERMINATED there; the other words are the same. */
function statusOf(state: unknown): string {
  const called = String(state).toUpperCase()
  return called === 'STOPPED' || called === 'ENDED' ? 'TERMINATED' : called
}

const list = (items: object, more: object) => ({ json: { type: 'array', items, ...more } })
const oneOf = (...values: string[]) => ({ json: { type: 'string', enum: values } })

const createPullRequest = tool({
  name: 'create_pull_request',
  native: 'pr_create',
  description: 'Make a pull request of your work. By the reviewer of the work it approves it, and ends the review.',
  fields: { title: text(200), description: text(20_000), base_branch: text(200) },
  required: ['title', 'description'],
  answer: { pr_number: 'pr_number', pr_url: 'pr_url', branch_name: 'branch', message: 'message' },
})

const ISSUE = {
  type: 'object',
  properties: {
    title: { type: 'string', minLength: 1, maxLength: 200 },
    body: { type: 'string', maxLength: 8_000 },
    labels: { type: 'array', items: { type: 'string', minLength: 1, maxLength: 50 }, maxItems: 20 },
  },
  required: ['title', 'body'],
}

const tools: Declared[] = [
  tool({
    name: 'request_review',
    native: 'review_request',
    description: 'Hand in your work: a reviewer agent reads it in a worktree of its own. Commit everything first.',
    fields: { reviewer_prompt: text(20_000), completion_message: { ...text(20_000), native: 'summary' } },
    defaults: { summary: 'Handed in.' },
    adds: { reviewer_agent: true },
    answer: {
      review_instance_id: ({ reviewer }) => reviewer?.agent_id ?? null,
      session_name: ({ reviewer }) => reviewer?.session_name ?? null,
      worktree_path: ({ reviewer }) => reviewer?.worktree_path ?? null,
      branch_name: 'branch',
      status: () => 'WAITING_REVIEW',
      review_iteration: ({ review }) => review.round,
      review_status: ({ reviewer }) => statusOf(reviewer?.state ?? 'STARTING'),
    },
  }),
  createPullRequest,
  { ...createPullRequest, name: 'create_pr', unlisted: true },
  tool({
    name: 'send_feedback',
    native: 'review_feedback',
    description: 'Send the work that you review back: a commit on its branch and a letter to its agent. It ends the review.',
    fields: {
      feedback: text(20_000),
      feedback_type: oneOf('needs_work', 'suggestions', 'clarification'),
      priority: oneOf('low', 'medium', 'high', 'critical'),
      actionable_items: list({ type: 'string', minLength: 1, maxLength: 1_000 }, { maxItems: 50 }),
    },
    required: ['feedback', 'feedback_type'],
    answer: ({ feedback_id, git_commit_hash, target_agent_id, cleanup_status, status, message }) => ({
      feedback_id,
      git_commit_hash,
      target_instance_id: target_agent_id,
      cleanup_status: statusOf(cleanup_status),
      // Without a commit it says why.
      ...(status === 'sent' ? {} : { message }),
    }),
  }),
  tool({
    name: 'create_issues',
    native: 'issue_create',
    description: 'Create issues from a plan, all or none. Here they become tasks.',
    fields: { issues: list(ISSUE, { minItems: 1, maxItems: 50 }) },
    required: ['issues'],
    answer: ({ issues }) => ({
      issues: issues.map(view({ issue_number: 'number', issue_url: 'url', title: 'title', task: 'handle' })),
    }),
  }),
  tool({
    name: 'query_instances',
    native: 'agent_list',
    description: 'The agents and what each of them does.',
    unlisted: true,
    defaults: { limit: MOST_LISTED },
    answer: ({ agents }) => ({
      instances: agents.map(({ id, handle, role, state, task_id }) => ({
        instance_id: id,
        name: handle,
        type: TYPES[String(role)] ?? role,
        status: statusOf(state),
        task_id,
      })),
    }),
  }),
]

/** The document has "all agents can create PRs" and "read-only queries" for every type; the rest is one type's each. */
const EVERYBODY = ['create_pull_request', 'create_pr', 'query_instances']

/** Claude Codex: planning, coding and review agents around pull requests. The one code that its document names is ours too. */
export const codex = defineDialect({
  name: 'codex',
  title: 'Claude Codex',
  casing: 'snake',
  tools,
  roles: {
    worker: { allow: ['request_review', ...EVERYBODY], deny: [] },
    reviewer: { allow: ['send_feedback', ...EVERYBODY], deny: [] },
    planner: { allow: ['create_issues', ...EVERYBODY], deny: [] },
  },
  logsInFull: true,
  codes: {},
  error: ({ code, message, hint, suggestions, facts, issues, tool, caller }) => ({
    ...{ hint, suggestions, ...facts, issues, code, error: code, message },
    instance_id: caller?.kind === 'agent' ? caller.id : undefined,
    tool_name: tool,
  }),
})
