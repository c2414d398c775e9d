import { z } from 'zod'
import { iso, Timestamp } from '../../kernel/schema.ts'
import { defineTool, type LookContext } from '../../kernel/tool.ts'
import { EpicId } from '../ids.ts'
import { currentProject } from '../project/index.ts'
import { handleOf, type TaskRow, taskStore } from '../task/index.ts'
import { workOf, workPullRequests } from '../work/index.ts'
import { isCurrent } from './rules.ts'
import { type ReviewRow, reviewStore } from './store.ts'
import '../../ports/daemon.ts'

const MOST_QUEUED = 500

const Queued = z.strictObject({
  position: z.int(),
  task_id: z.string(),
  handle: z.string(),
  title: z.string(),
  epic_id: z.string().nullable(),
  review_id: z.string().nullable(),
  round: z.int().nullable(),
  summary: z.string().nullable(),
  requested_by: z.string().nullable(),
  requested_at: Timestamp,
  state: z.enum(['waiting', 'merging', 'stuck']).describe('stuck: it was approved, but could not be merged'),
  reason: z.string().nullable(),
  branch: z.string().nullable(),
  commit: z.string().nullable().describe('What was handed in; null where nobody looked'),
  pr_number: z.int().nullable(),
  pr_url: z.string().nullable(),
})

export const queue = defineTool({
  name: 'review_queue',
  title: 'List what waits for review',
  description: 'Work that was handed in and waits for a decision, in the order in which it was handed in.',
  input: z.strictObject({ epic_id: EpicId.optional().describe('Default: the one that you lead, else all of the current project') }),
  output: z.strictObject({ queue: z.array(Queued), cursor: z.string() }),
  example: { epic_id: 'E-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { epic_id }) {
    const cursor = await ctx.cursor()
    const epic = epic_id ?? (ctx.principal.role === 'supervisor' ? ctx.principal.scope.epic : undefined)
    const project = epic ? undefined : await currentProject(ctx.view, ctx.principal)
    const tasks = await taskStore(ctx.view).list({ epic, project, statuses: ['REVIEW'] }, 'number', undefined, MOST_QUEUED)
    const entries = await entriesOf(ctx, tasks)
    return { queue: entries.map((entry, i) => ({ position: i + 1, ...entry })), cursor }
  },
})

async function entriesOf(ctx: LookContext, tasks: TaskRow[]) {
  const ids = tasks.map(({ id }) => id)
  const rounds = await reviewStore(ctx.view).latest(ids)
  const prs = await ctx.ask(workPullRequests, ids, await ctx.ports.daemon.address())
  const entries = await Promise.all(
    tasks.map(async (task) => {
      const last = rounds.find(({ task_id }) => task_id === task.id)
      const round = isCurrent(last) ? last : undefined
      return {
        at: round?.requested_at ?? task.status_changed_at,
        task,
        round,
        pr: prs.get(task.id),
        branch: (await workOf(ctx.view, task.id))?.branch,
      }
    }),
  )
  // Never by when a row was last changed: any edit would move it to the end of the line.
  entries.sort((a, b) => a.at - b.at || (a.round?.id ?? a.task.id).localeCompare(b.round?.id ?? b.task.id))
  return entries.map(({ at, task, round, pr, branch }) => ({
    task_id: task.id,
    handle: handleOf(task),
    title: task.title,
    epic_id: task.epic_id,
    review_id: round?.id ?? null,
    round: round?.round ?? null,
    summary: round?.summary ?? null,
    requested_by: round?.requested_by ?? null,
    requested_at: iso(at),
    state: stateOf(round),
    reason: round?.reason ?? null,
    branch: branch ?? null,
    commit: round?.handed_in ?? null,
    pr_number: pr?.number ?? null,
    pr_url: pr?.url ?? null,
  }))
}

export function stateOf(round: ReviewRow | undefined): 'waiting' | 'merging' | 'stuck' {
  if (round?.decision !== 'approve') return 'waiting'
  return round.outcome === 'failed' ? 'stuck' : 'merging'
}
