import { z } from 'zod'
import { type Refusal, refuse } from '../../kernel/error.ts'
import { iso, Timestamp } from '../../kernel/schema.ts'
import { defineTool, type LookContext, type RunContext, type WatchContext } from '../../kernel/tool.ts'
import { EpicId, TaskId } from '../ids.ts'
import { currentProject } from '../project/index.ts'
import { prStore, prUrl, type ReviewRow, reviewStore } from '../review/index.ts'
import { about, Body, epicOf, handleOf, requireTask, type TaskRow, taskStore } from '../task/index.ts'
import { placeOf, workOf } from '../work/index.ts'
import { mergeWork } from './effects.ts'
import { back, checkMayDecide, currentRound, isCurrent } from './rules.ts'
import { Decision, reviewConflicted, reviewDecided, reviewMerged, reviewStuck } from './schema.ts'
import '../../ports/daemon.ts'

const MERGE_MS = 120_000
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

const Decided = z.strictObject({
  task_id: TaskId,
  decision: Decision,
  feedback: Body.optional().describe('What is to be changed; needed with request_changes'),
})

export const decide = defineTool({
  name: 'review_decide',
  title: 'Decide about work',
  description: 'Approve work of an epic, which merges it into its branch, or send work back with feedback. Waits for the merge.',
  input: Decided,
  output: z.strictObject({
    task_id: TaskId,
    review_id: z.string(),
    decision: Decision,
    status: z
      .enum(['merged', 'changes_requested', 'conflict', 'stuck', 'pending'])
      .describe('pending: still being merged; review.merged tells'),
    merged: z.boolean(),
    merge_commit: z.string().nullable(),
    conflicts: z.array(z.string()),
    rebase_requests: z.int(),
    pr_url: z.string().nullable(),
    message: z.string(),
    cursor: z.string().describe('Where to go on waiting with event_wait'),
  }),
  example: { task_id: 'T-1', decision: 'request_changes', feedback: 'A wrong passkey is not refused yet.' },
  impact: 'write',
  profile: 'operator',
  prepare: (ctx, { task_id, decision }) => (decision === 'approve' ? headOf(ctx, task_id) : Promise.resolve({ head: null })),
  async run(ctx: RunContext, { task_id, decision, feedback }: z.output<typeof Decided>, seen?: { head: string | null }) {
    const task = await requireTask(ctx, task_id)
    const denied = checkMayDecide(ctx.principal, task, (await reviewStore(ctx.tx).ofTask(task.id)).at(-1))
    if (denied) return denied
    if (task.lead || task.status !== 'REVIEW')
      return refuse('INVALID_TRANSITION', `${handleOf(task)} is ${task.status}: there is nothing to decide about.`, {
        next_tool: 'review_queue',
        next_arguments: {},
      })
    const round = await currentRound(ctx, task)
    return decision === 'approve' ? approve(ctx, task, round, seen?.head ?? null) : sendBack(ctx, task, round, feedback)
  },
  watch: (ctx, { task_id, decision }, { review_id }: { review_id: string }) => outcome(ctx, task_id, decision, review_id),
})

/** What is approved is what is there now: a worker that commits once more does not slip that in. */
async function headOf(ctx: LookContext, taskId: string): Promise<{ head: string | null }> {
  const work = await workOf(ctx.view, taskId)
  const place = work && (await placeOf(ctx.view, work))
  if (!place || !work.base_commit) return { head: null }
  return { head: (await ctx.ports.git.state(place, work.base_commit)).head }
}

async function approve(ctx: RunContext, task: TaskRow, round: ReviewRow, head: string | null): Promise<{ review_id: string } | Refusal> {
  const epic = await epicOf(ctx.tx, task)
  const work = await workOf(ctx.tx, task.id)
  if (!epic)
    return refuse('INVALID_INPUT', `${handleOf(task)} is in no epic: there is no branch of ours to merge it into.`, {
      hint: 'Merge it by hand, then close it with task_close.',
    })
  if (!work || head === null)
    return refuse('CONFLICT', `${handleOf(task)} has no commit that could be merged.`, { hint: 'Close it with task_close.' })
  // Approved before, and still on its way: whoever asks again waits for the same.
  if (round.decision === 'approve' && round.outcome === null) return { review_id: round.id }
  const decided = {
    decision: 'approve',
    decided_by: ctx.principal.id,
    decided_at: ctx.now,
    head_commit: head,
    outcome: null,
    reason: null,
  } as const
  await reviewStore(ctx.tx).update(round.id, decided)
  emitDecided(ctx, task, round, 'approve')
  ctx.enqueue(mergeWork({ review_id: round.id }, { queue: `merge:${work.repo_id}:${epic.branch}` }))
  return { review_id: round.id }
}

async function sendBack(
  ctx: RunContext,
  task: TaskRow,
  round: ReviewRow,
  feedback: string | undefined,
): Promise<{ review_id: string } | Refusal> {
  if (!feedback) return refuse('INVALID_INPUT', 'What is to be changed? Give feedback.')
  if (round.decision === 'approve' && round.outcome === null)
    return refuse('CONFLICT', `${handleOf(task)} was approved, and is being merged.`, { hint: 'Write another task for what is missing.' })
  const decided = {
    decision: 'request_changes',
    decided_by: ctx.principal.id,
    decided_at: ctx.now,
    feedback,
    outcome: null,
    reason: null,
  } as const
  await reviewStore(ctx.tx).update(round.id, decided)
  await back(ctx, task, { from: ctx.principal.id, subject: `Changes Requested: ${handleOf(task)}`, body: feedback })
  emitDecided(ctx, task, round, 'request_changes')
  return { review_id: round.id }
}

function emitDecided(ctx: RunContext, task: TaskRow, { id, round }: ReviewRow, decision: z.output<typeof Decision>): void {
  ctx.emit(reviewDecided({ ...about(task), subject: id }, { handle: handleOf(task), round, decision, decided_by: ctx.principal.id }))
}

/** The cursor comes first: an outcome that is told between the look and the wait is then seen by the wait. */
async function outcome(ctx: WatchContext, task_id: string, decision: z.output<typeof Decision>, review_id: string) {
  const filter = { subject: review_id, types: [reviewMerged.type, reviewConflicted.type, reviewStuck.type] }
  const until = performance.now() + MERGE_MS
  const pr = await prStore(ctx.view).ofTask(task_id)
  const same = { task_id, review_id, decision, pr_url: pr ? prUrl(pr, await ctx.ports.daemon.address()) : null }
  const none = { merged: false, merge_commit: null, conflicts: [], rebase_requests: 0 }
  let cursor = await ctx.cursor()
  if (decision === 'request_changes')
    return {
      ...same,
      ...none,
      status: 'changes_requested' as const,
      cursor,
      message: 'Feedback sent to worker. Task returned to IN_PROGRESS.',
    }
  for (;;) {
    const review = await reviewStore(ctx.view).find(review_id)
    if (review?.outcome === 'merged') {
      const [told] = await ctx.recent(undefined, filter, 1)
      const rebase_requests = Number(told?.data.rebase_requests ?? 0)
      const message = review.reason ?? `PR merged successfully. ${rebase_requests} rebase requests sent.`
      return {
        ...same,
        ...none,
        status: 'merged' as const,
        merged: true,
        merge_commit: review.merge_commit,
        rebase_requests,
        cursor,
        message,
      }
    }
    if (review?.outcome === 'conflict') {
      const [told] = await ctx.recent(undefined, filter, 1)
      const conflicts = (told?.data.files ?? []) as string[]
      return { ...same, ...none, status: 'conflict' as const, conflicts, cursor, message: `${review.reason}. It went back to its worker.` }
    }
    if (review?.outcome === 'failed')
      return { ...same, ...none, status: 'stuck' as const, cursor, message: `${review.reason} It is still to be decided.` }
    const waited = await ctx.waitFor(cursor, filter, Math.max(1, until - performance.now()))
    if (waited.ended !== 'events')
      return { ...same, ...none, status: 'pending' as const, cursor, message: 'It is still being merged; review.merged tells when.' }
    cursor = waited.events.at(-1)?.cursor ?? cursor
  }
}

async function entriesOf(ctx: LookContext, tasks: TaskRow[]) {
  const ids = tasks.map(({ id }) => id)
  const [rounds, prs] = [await reviewStore(ctx.view).latest(ids), await prStore(ctx.view).ofTasks(ids)]
  const address = await ctx.ports.daemon.address()
  const entries = await Promise.all(
    tasks.map(async (task) => {
      const last = rounds.find(({ task_id }) => task_id === task.id)
      const round = isCurrent(last) ? last : undefined
      const pr = prs.find(({ task_id }) => task_id === task.id)
      return { at: round?.requested_at ?? task.status_changed_at, task, round, pr, branch: (await workOf(ctx.view, task.id))?.branch }
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
    pr_number: pr?.number ?? null,
    pr_url: pr ? prUrl(pr, address) : null,
  }))
}

export function stateOf(round: ReviewRow | undefined): 'waiting' | 'merging' | 'stuck' {
  if (round?.decision !== 'approve') return 'waiting'
  return round.outcome === 'failed' ? 'stuck' : 'merging'
}
