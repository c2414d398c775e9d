import { z } from 'zod'
import { calledAs } from '../../kernel/audit.ts'
import { refuse } from '../../kernel/error.ts'
import { iso, PageSize, PageToken, Timestamp, text } from '../../kernel/schema.ts'
import { defineTool } from '../../kernel/tool.ts'
import { principalId } from './names.ts'
import { type CallRow, type DecisionRow, systemStore } from './store.ts'
import '../../ports/daemon.ts'

const KINDS = ['invocation', 'result', 'error', 'manual'] as const

const DecisionView = z.strictObject({
  id: z.string(),
  kind: z.enum(KINDS),
  agent_id: z.string().describe('The agent or person that called'),
  decision: z.string(),
  reasoning: z.string(),
  context: z.unknown().describe('What was given, what came of it, or what went wrong'),
  timestamp: Timestamp,
})

type Entry = z.output<typeof DecisionView>

export const listDecisions = defineTool({
  name: 'decision_list',
  title: 'Read the decision log',
  description: 'Every call as invocation and result or error, and the decisions that were logged, newest first. Agents see their own.',
  input: z.strictObject({
    principal: text(64).optional().describe('Id or handle of an agent or a person'),
    kind: z.enum(KINDS).optional(),
    limit: PageSize.describe('How many calls at the most; each has two entries, or three'),
    before: PageToken.regex(/^[0-9]{1,15}$/, 'not a page of decision_list').optional(),
  }),
  output: z.strictObject({ decisions: z.array(DecisionView), next: z.string().nullable() }),
  example: { principal: 'worker-1', limit: 20 },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { principal, kind, limit, before }) {
    const own = ctx.principal.kind === 'agent' ? ctx.principal.id : undefined
    const asked = principal && (await principalId(ctx.view, principal))
    if (own && asked && asked !== own) return refuse('PERMISSION_DENIED', 'You see your own decisions only.')
    await ctx.ports.daemon.audited()
    const store = systemStore(ctx.view)
    const rows = await store.calls({ principal: own ?? asked, ...ofKind(kind) }, Number(before ?? Number.MAX_SAFE_INTEGER), limit)
    const logged = new Map((await store.decisions(rows.flatMap(loggedIn))).map((row) => [row.id, row]))
    // Reads are written down in batches, a moment later than what followed them.
    const inOrder = rows.toSorted((a, b) => b.at - a.at || b.seq - a.seq)
    const entries = inOrder.flatMap((row) => entriesOf(row, logged))
    return {
      decisions: kind ? entries.filter((entry) => entry.kind === kind) : entries,
      next: rows.length === limit ? String(rows.at(-1)?.seq) : null,
    }
  },
})

/** Which calls can have an entry of this kind: without it a page could be empty. */
function ofKind(kind: (typeof KINDS)[number] | undefined) {
  const outcomes = kind === 'error' ? ['refused', 'failed'] : kind === 'result' || kind === 'manual' ? ['ok', 'replayed'] : undefined
  return { outcomes, ...(kind === 'manual' ? { tool: 'decision_log' } : {}), exceptKind: 'system' }
}

/** Newest first: a call ended after it began, and what it logged lies in between. */
function entriesOf(row: CallRow, logged: Map<string, DecisionRow>): Entry[] {
  const { name } = calledAs(row)
  const context = { input: JSON.parse(row.input) as unknown, output: JSON.parse(row.output) as unknown }
  const entry = (kind: Entry['kind'], decision: string, reasoning: string, more: Partial<Entry>): Entry => {
    return { id: `${row.id}.${kind}`, kind, agent_id: row.principal, decision, reasoning, context: null, timestamp: iso(row.at), ...more }
  }
  const over = { context: context.output, timestamp: iso(row.at + row.duration_ms) }
  const ended = hasFailed(row)
    ? entry('error', `Tool error: ${name}`, 'Automatic tool error log', over)
    : entry('result', `Tool result: ${name}`, 'Automatic tool result log', over)
  const manual = loggedIn(row).flatMap((id) => {
    const decision = logged.get(id)
    return decision ? [entry('manual', decision.title, decision.body, { id })] : []
  })
  return [
    ...(isWaiting(context.output) ? [] : [ended]),
    ...manual,
    entry('invocation', `Invoked tool: ${name}`, 'Automatic tool invocation log', { context: context.input }),
  ]
}

/** Its answer will be a row beside its own. */
function isWaiting(output: unknown): boolean {
  return typeof output === 'object' && output !== null && 'waiting' in output
}

/** A replay of a key under which the call was refused is refused again. */
function hasFailed({ outcome, code }: CallRow): boolean {
  return outcome === 'refused' || outcome === 'failed' || code !== null
}

function loggedIn({ tool, outcome, output }: CallRow): string[] {
  if (tool !== 'decision_log' || outcome !== 'ok') return []
  // Each dialect has a name of its own for it.
  return Object.values(JSON.parse(output) as object).filter((value) => String(value).startsWith('log_'))
}
