import { z } from 'zod'
import { type Refusal, refuse } from '../../kernel/error.ts'
import { iso, isoOrNull, PageSize, PageToken, text } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import { defineTool } from '../../kernel/tool.ts'
import { ApprovalId, ProjectId, TaskId } from '../ids.ts'
import { handleOf, type TaskRow, taskStore } from '../task/index.ts'
import { about, expire as expireOne, facts, isSeen, withdraw as withdrawOne } from './rules.ts'
import { APPROVAL_STATES, type ApprovalState, ApprovalView, approvalDecided } from './schema.ts'
import { type ApprovalRow, ARRIVED, approvalStore } from './store.ts'
import { approvalHandle, inOneLine } from './words.ts'

export const list = defineTool({
  name: 'approval_list',
  title: 'List approvals',
  description: 'What agents ask permission for, newest first: those that wait for an answer, or those of other states.',
  input: z.strictObject({
    task_id: TaskId.optional(),
    project_id: ProjectId.optional(),
    states: z.array(z.enum(APPROVAL_STATES)).min(1).max(5).default(['pending']),
    limit: PageSize,
    before: PageToken.regex(/^[0-9]{1,15}$/, 'not a page of approval_list').optional(),
  }),
  output: z.strictObject({ approvals: z.array(ApprovalView), next: z.string().nullable() }),
  example: { states: ['pending'] },
  impact: 'read',
  profile: 'viewer',
  scope: 'own',
  async look(ctx, input) {
    const { principal } = ctx
    if (!isSeen(principal, input.task_id)) return { approvals: [], next: null }
    const filter = { task: input.task_id ?? principal.scope.task, project: input.project_id, states: input.states }
    const before = input.before === undefined ? undefined : Number(input.before)
    const rows = await approvalStore(ctx.view).list(filter, before, input.limit)
    const approvals = await shown(ctx.view, rows)
    return { approvals, next: rows.length === input.limit ? String(rows.at(-1)?.number) : null }
  },
})

export const get = defineTool({
  name: 'approval_get',
  title: 'Read an approval',
  description: 'What an agent asks permission for, with all that it would be given, and what became of it.',
  input: z.strictObject({ approval_id: ApprovalId }),
  output: z.strictObject({ approval: ApprovalView }),
  example: { approval_id: 'A-1' },
  impact: 'read',
  profile: 'viewer',
  scope: 'own',
  async look(ctx, { approval_id }) {
    const row = await requireApproval(ctx.view, approval_id)
    if (ctx.principal.kind === 'agent' && ctx.principal.scope.task !== row.task_id)
      return refuse('PERMISSION_DENIED', 'What the agents of other tasks ask is for people alone.')
    const [approval] = await shown(ctx.view, [row])
    return { approval: approval as z.output<typeof ApprovalView> }
  },
})

export const decide = defineTool({
  name: 'approval_decide',
  title: 'Decide an approval',
  description: 'Allow or deny what an agent asks permission for. It goes on with the answer at once.',
  input: z.strictObject({
    approval_id: ApprovalId,
    decision: z.enum(['allow', 'deny']),
    message: text(2_000).optional().describe('What the agent is told with the answer; without it a denial says who denied it'),
  }),
  output: z.strictObject({ approval: ApprovalView }),
  example: { approval_id: 'A-1', decision: 'allow' },
  impact: 'write',
  profile: 'operator',
  by: 'person',
  async run(ctx, { approval_id, decision, message }) {
    const row = await requireApproval(ctx.tx, approval_id)
    // By the clock it is too late, though what says so has not come yet.
    if (row.state === 'pending' && row.expires_at <= ctx.now) await expireOne(ctx, row)
    const current = await requireApproval(ctx.tx, row.id)
    if (current.state !== 'pending') return tooLate(current)
    const changes = {
      state: decision === 'allow' ? ('allowed' as const) : ('denied' as const),
      message: message ?? (decision === 'deny' ? `${ctx.principal.name} denied it.` : null),
      decided_by: ctx.principal.id,
      decided_at: ctx.now,
    }
    if (!(await approvalStore(ctx.tx).change(current, changes))) return tooLate(await requireApproval(ctx.tx, row.id))
    ctx.emit(approvalDecided(about(row), { ...facts(row), decision }))
    const [approval] = await shown(ctx.tx, [{ ...current, ...changes }])
    return { approval: approval as z.output<typeof ApprovalView> }
  },
})

/** A program that waits for ever does no work, and holds a place that others could have. */
export const expire = defineTool({
  name: 'approval_expire',
  title: 'The time of an approval is up',
  description: 'Nobody has answered: it is denied, unless it is over already.',
  input: z.strictObject({ approval_id: z.string() }),
  output: z.strictObject({}),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  later: 'approval.expire',
  async run(ctx, { approval_id }) {
    const row = await approvalStore(ctx.tx).find(approval_id)
    if (row?.state === 'pending') await expireOne(ctx, row)
    return {}
  },
})

export const withdraw = defineTool({
  name: 'approval_withdraw',
  title: 'An approval is not asked for any more',
  description: 'The program went on without waiting for the answer.',
  input: z.strictObject({ approval_id: z.string(), reason: z.string() }),
  output: z.strictObject({}),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { approval_id, reason }) {
    const row = await approvalStore(ctx.tx).find(approval_id)
    if (row && row.state !== 'withdrawn' && !row.delivered) await withdrawOne(ctx, row, reason)
    return {}
  },
})

const BECAME: Record<Exclude<ApprovalState, 'pending'>, string> = {
  allowed: 'was allowed already',
  denied: 'was denied already',
  expired: 'has expired: nobody answered in time, and the agent was told so',
  withdrawn: 'was withdrawn: the agent does not wait for an answer any more',
}

function tooLate(row: ApprovalRow): Refusal {
  const state = row.state as Exclude<ApprovalState, 'pending'>
  return refuse('CONFLICT', `${approvalHandle(row)} ${BECAME[state]}.`, {
    hint: 'An answer is given once. What waits for one now is in approval_list.',
    next_tool: 'approval_list',
    next_arguments: {},
  })
}

async function requireApproval(tx: Tx, id: string): Promise<ApprovalRow> {
  const row = await approvalStore(tx).find(id)
  if (!row) throw refuse('RESOURCE_NOT_FOUND', `There is no approval "${id}".`, { next_tool: 'approval_list', next_arguments: {} })
  return row
}

async function shown(view: Tx, rows: ApprovalRow[]): Promise<z.output<typeof ApprovalView>[]> {
  const tasks = new Map<string, TaskRow | undefined>()
  for (const id of new Set(rows.map((row) => row.task_id))) tasks.set(id, await taskStore(view).find(id))
  return rows.map((row) => approvalView(row, tasks.get(row.task_id)))
}

function approvalView(row: ApprovalRow, task: TaskRow | undefined): z.output<typeof ApprovalView> {
  const { id, state, task_id, message, decided_by, name: tool, input, kind, run_id } = row
  return {
    id,
    handle: approvalHandle(row),
    title: inOneLine(row),
    state,
    task_id,
    task: task ? handleOf(task) : task_id,
    expires_at: iso(row.expires_at),
    message,
    decided_by,
    decided_at: isoOrNull(row.decided_at),
    delivered: row.delivered === ARRIVED,
    tool,
    input,
    task_title: task?.title ?? '',
    asked_at: iso(row.asked_at),
    kind,
    run_id,
  }
}
