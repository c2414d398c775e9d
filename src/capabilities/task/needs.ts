import type { LookContext } from '../../kernel/tool.ts'
import { agentStore } from '../agent/index.ts'
import { isAfter, type Need, type Needed, type NeedKind, type Question, type Step } from '../need/index.ts'
import { attended } from './attention.ts'
import { handleOf } from './rules.ts'
import { STATUSES, type Status } from './schema.ts'
import { taskSteps } from './steps.ts'
import { type TaskRow, taskStore } from './store.ts'
import { attentionOf, openBlockers } from './view.ts'

const OPEN: Status[] = STATUSES.filter((status) => status !== 'DONE')
const AT_ONCE = 500

const soon = (kind: string, title: string): NeedKind => ({ kind, title, urgency: 'soon' })
const later = (kind: string, title: string): NeedKind => ({ kind, title, urgency: 'later' })
const KINDS = {
  review: soon('review', 'To review'),
  epic: soon('epic', 'Epics that wait for you'),
  stopped: soon('stopped', 'Not going on by itself'),
  idle: soon('idle', 'In progress, but nobody is on it'),
  pair: later('pair', 'To work on together'),
  given: later('given', 'Handed out, but not begun'),
  ready: later('ready', 'Ready to hand out'),
}

interface Waiting {
  row: TaskRow
  kind: NeedKind
  detail: string | null
  steps: Step[] | undefined
}

/** Open tasks that nothing moves but a person. What moves a task is derived from many rows, so that all open ones are looked at. */
export async function tasksToMove(ctx: LookContext, { project, kinds, limit, after }: Question): Promise<Needed> {
  const waiting: Waiting[] = []
  for (let page: TaskRow[] = [], last = ''; last === '' || page.length === AT_ONCE; last = String(page.at(-1)?.number)) {
    page = await taskStore(ctx.view).list({ project, statuses: OPEN }, 'number', last || undefined, AT_ONCE)
    waiting.push(...(await waitingOf(ctx, page)))
  }
  const wanted = waiting.filter(({ kind }) => kinds?.includes(kind.kind) !== false)
  const places = Object.values(KINDS)
  const shown = wanted
    .filter(({ row, kind }) => isAfter({ since: row.status_changed_at, id: row.id }, after(kind.urgency)))
    .sort((a, b) => rank(a.kind) - rank(b.kind) || a.row.status_changed_at - b.row.status_changed_at || (a.row.id < b.row.id ? -1 : 1))
    .slice(0, limit)
  const agents = new Map<string, string>()
  for (const id of new Set(shown.flatMap(({ row }) => row.assignee_id ?? [])))
    agents.set(id, (await agentStore(ctx.view).agent(id))?.handle ?? id)
  return {
    kinds: places,
    counts: Object.fromEntries(places.map((kind) => [kind.kind, waiting.filter((one) => one.kind === kind).length])),
    needs: shown.map((one) => needOf(one, agents)),
    async steps(needs) {
      const those = shown.filter(({ row }) => needs.some(({ id }) => id === row.id))
      const suggested = those.map(({ row, kind, steps }) => ({
        task: row,
        told: steps ?? (kind === KINDS.given ? [begin(row)] : undefined),
      }))
      const answers = await ctx.ask(taskSteps, suggested)
      return new Map(suggested.map(({ task, told = [] }) => [task.id, answers.find((its) => its.has(task.id))?.get(task.id) ?? told]))
    },
    totals: await taskStore(ctx.view).countByStatus(project),
  }
}

const rank = ({ urgency }: NeedKind) => (urgency === 'soon' ? 0 : 1)

async function waitingOf(ctx: LookContext, rows: TaskRow[]): Promise<Waiting[]> {
  const told = await attended(ctx, rows)
  const blocked = await openBlockers(ctx.view, rows)
  return rows.flatMap((row) => {
    const its = told.get(row.id)
    const { attention, attention_detail, attention_steps } = attentionOf(row, blocked.has(row.id), its)
    // People see the question of its agent itself.
    if (attention !== 'human' || (its?.asks && ctx.principal.kind === 'person')) return []
    return [{ row, kind: kindOf(row, attention_detail), detail: attention_detail, steps: attention_steps }]
  })
}

function kindOf({ lead, status, task_type, assignee_id }: TaskRow, detail: string | null): NeedKind {
  if (lead) return KINDS.epic
  if (status === 'REVIEW') return KINDS.review
  if (task_type === 'PAIR') return KINDS.pair
  if (detail) return KINDS.stopped
  if (status === 'IN_PROGRESS') return KINDS.idle
  return assignee_id ? KINDS.given : KINDS.ready
}

function begin(row: TaskRow): Step {
  return { tool: 'task_move', arguments: { task_id: handleOf(row), status: 'IN_PROGRESS' } }
}

function needOf({ row, kind, detail }: Waiting, agents: Map<string, string>): Need {
  return {
    kind: kind.kind,
    id: row.id,
    handle: handleOf(row),
    title: row.title,
    detail,
    by: row.assignee_id === null ? null : (agents.get(row.assignee_id) ?? null),
    task_id: row.id,
    project_id: row.project_id,
    since: row.status_changed_at,
  }
}
