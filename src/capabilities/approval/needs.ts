import type { LookContext } from '../../kernel/tool.ts'
import { agentStore } from '../agent/index.ts'
import type { Need, Needed, NeedKind, Question } from '../need/index.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { isSeen } from './rules.ts'
import { type ApprovalRow, approvalStore } from './store.ts'
import { approvalHandle, inOneLine } from './words.ts'

const PERMISSION: NeedKind = { kind: 'permission', title: 'Asks for permission', urgency: 'now' }

/** Agents that stand still until somebody answers. */
export async function askedFor(ctx: LookContext, { project, kinds, limit, after }: Question): Promise<Needed> {
  const own = ctx.principal.scope.task
  const isWanted = isSeen(ctx.principal, own) && kinds?.includes(PERMISSION.kind) !== false
  const store = approvalStore(ctx.view)
  const filter = { task: own, project }
  const rows = isWanted ? await store.pendingFrom(filter, after(PERMISSION.urgency), limit) : []
  const needs = await Promise.all(rows.map((row) => needOf(ctx, row)))
  return {
    kinds: [PERMISSION],
    counts: { [PERMISSION.kind]: isSeen(ctx.principal, own) ? await store.countPending(filter) : 0 },
    needs,
    steps: async (shown) => new Map(shown.map(({ id, handle }) => [id, stepsOf(handle)])),
  }
}

async function needOf({ view }: LookContext, row: ApprovalRow): Promise<Need> {
  const task = await taskStore(view).find(row.task_id)
  const agent = row.agent_id === null ? undefined : await agentStore(view).agent(row.agent_id)
  return {
    kind: PERMISSION.kind,
    id: row.id,
    handle: approvalHandle(row),
    title: inOneLine(row),
    detail: task ? `${handleOf(task)} ${task.title}` : null,
    by: agent?.handle ?? null,
    task_id: row.task_id,
    project_id: row.project_id,
    since: row.asked_at,
  }
}

function stepsOf(approval_id: string | null) {
  return [
    { tool: 'approval_get', arguments: { approval_id } },
    { tool: 'approval_decide', arguments: { approval_id, decision: 'allow' } },
    { tool: 'approval_decide', arguments: { approval_id, decision: 'deny', message: '…' } },
  ]
}
