import { z } from 'zod'
import { Refusal, refuse } from '../../kernel/error.ts'
import { text } from '../../kernel/schema.ts'
import { defineTool, type LookContext, type RunContext, type WatchContext } from '../../kernel/tool.ts'
import { TaskId } from '../ids.ts'
import { ENDS, enterLine, followed, lineHeld, MERGE_STATES, type MergeRow, type mergeLanded, mergeStore } from '../merge/index.ts'
import { about, Body, handleOf, isDuty, requireTask, reviewedBy, type TaskRow, taskStore } from '../task/index.ts'
import { watchUntil } from '../until.ts'
import { Elsewhere, placeOf, workOf, workPullRequests } from '../work/index.ts'
import { keepCommit } from './keep.ts'
import { back, beingMerged, checkMayDecide, currentRound, isBeingMerged, isReviewerOf } from './rules.ts'
import { Decision, reviewDecided } from './schema.ts'
import { feedbackStore, type ReviewRow, reviewStore } from './store.ts'
import '../../ports/daemon.ts'

const MERGE_MS = 120_000

const Behind = z.int().describe('How many commits the branch itself is behind what landed; repo_sync brings it up')
const Commit = text(64).optional().describe('What you have read: nothing else is approved. Needed when commits came after it was handed in')

const Decided = z.strictObject({
  task_id: TaskId.optional().describe('Default: the work that you were started to review'),
  decision: Decision,
  feedback: Body.optional().describe('What is to be changed; needed with request_changes'),
  commit: Commit,
})

export const decide = defineTool({
  name: 'review_decide',
  title: 'Decide about work',
  description: 'Approve work, which puts it into the merge line, or send it back with feedback. Waits for the merge.',
  input: Decided,
  output: z.strictObject({
    task_id: TaskId,
    review_id: z.string(),
    decision: Decision,
    status: z
      .enum(['merged', 'changes_requested', 'conflict', 'red', 'stuck', 'pending'])
      .describe('red: the checks fail on the merged tree; pending: still in the merge line, merge.landed tells'),
    merge_id: z.string().nullable(),
    merged: z.boolean(),
    merge_commit: z.string().nullable(),
    conflicts: z.array(z.string()),
    rebase_requests: z.int(),
    behind: Behind,
    log: z.string().nullable().describe('The last 40 lines of what the checks printed, when they failed'),
    pr_url: z.string().nullable(),
    message: z.string(),
    resume: z.boolean().describe('It is on its way: the same call with the same idempotency_key waits on'),
    cursor: z.string().describe('Where to go on waiting with event_wait'),
  }),
  example: { task_id: 'T-1', decision: 'request_changes', feedback: 'A wrong passkey is not refused yet.' },
  impact: 'write',
  outcome: ({ status }) => (status === 'pending' ? status : status === 'merged' || status === 'changes_requested' ? 'done' : 'failed'),
  // A reviewer is no operator, and what it reviews is not its own task: checkMayDecide says who may.
  profile: 'pair_worker',
  scope: 'open',
  async prepare(ctx, { task_id, decision }) {
    const id = task_id ?? (await reviewedBy(ctx.view, ctx.principal))
    return id && decision === 'approve' ? headOf(ctx, id) : { head: null }
  },
  async run(ctx: RunContext, { task_id, decision, feedback, commit }: z.output<typeof Decided>, seen?: { head: string | null }) {
    const handedIn = await toDecide(ctx, task_id)
    if (handedIn instanceof Refusal) return handedIn
    const { task, round } = handedIn
    const begun = { task_id: task.id, review_id: round.id }
    if (decision === 'request_changes') return (await sendBack(ctx, task, round, feedback)) ?? begun
    const merge = await approve(ctx, task, round, seen?.head ?? null, commit)
    return merge instanceof Refusal ? merge : begun
  },
  watch: (ctx, { decision }, begun: { task_id: string; review_id: string }) => outcome(ctx, begun.task_id, decision, begun.review_id),
})

export const submit = defineTool({
  name: 'merge_submit',
  title: 'Put work into the merge line',
  description:
    'Approve work that was handed in, and return at once; merge_status shows where it is. review_decide does the same and waits.',
  input: z.strictObject({ task_id: TaskId, commit: Commit }),
  output: z.strictObject({
    merge_id: z.string(),
    task_id: TaskId,
    review_id: z.string(),
    target: z.string(),
    state: z.enum(MERGE_STATES),
    behind: Behind,
    message: z.string(),
  }),
  example: { task_id: 'T-1' },
  impact: 'write',
  profile: 'operator',
  prepare: (ctx, { task_id }) => headOf(ctx, task_id),
  async run(ctx, { task_id, commit }, { head }) {
    const handedIn = await toDecide(ctx, task_id)
    if (handedIn instanceof Refusal) return handedIn
    const merge = await approve(ctx, handedIn.task, handedIn.round, head, commit)
    if (merge instanceof Refusal) return merge
    const { behind, words } = await followed(ctx.tx, merge)
    const message = [`It is in the merge line of ${merge.target}; merge_status shows where.`, words].filter(Boolean).join(' ')
    return {
      merge_id: merge.id,
      task_id: merge.task_id,
      review_id: merge.review_id,
      target: merge.target,
      state: merge.state,
      behind,
      message,
    }
  },
})

/** The round that the caller may decide about. */
export async function toDecide(ctx: RunContext, task_id: string | undefined): Promise<{ task: TaskRow; round: ReviewRow } | Refusal> {
  const id = task_id ?? (await reviewedBy(ctx.tx, ctx.principal))
  if (!id) return refuse('INVALID_INPUT', 'Which task? Give task_id.', { next_tool: 'review_queue', next_arguments: {} })
  const task = await requireTask(ctx, id)
  const denied = checkMayDecide(ctx.principal, task, (await reviewStore(ctx.tx).ofTask(task.id)).at(-1))
  if (denied) return denied
  if (isDuty(task) || task.status !== 'REVIEW')
    return refuse('INVALID_TRANSITION', `${handleOf(task)} is ${task.status}: there is nothing to decide about.`, {
      next_tool: 'review_queue',
      next_arguments: {},
    })
  if (await feedbackStore(ctx.tx).sendingOf(task.id))
    return refuse('CONFLICT', `Feedback on ${handleOf(task)} is on its way to its worker.`, { hint: 'It goes back by that.' })
  return { task, round: await currentRound(ctx, task) }
}

/** What is approved is what is there now, or what its reviewer began at: a worker that commits once more does not slip that in. */
export async function headOf(ctx: LookContext, taskId: string): Promise<{ head: string | null }> {
  const { role, scope } = ctx.principal
  if (role === 'reviewer' && scope.task) return { head: (await workOf(ctx.view, scope.task))?.base_commit ?? null }
  const work = await workOf(ctx.view, taskId)
  if (!work?.base_commit) return { head: null }
  try {
    const place = await placeOf(ctx, work)
    return { head: place ? (await ctx.ports.git.state(place, work.base_commit)).head : null }
  } catch (error) {
    // Only the host that has it sees what was committed since. What was handed in is known, and is what would be merged.
    const handedIn = error instanceof Elsewhere ? (await reviewStore(ctx.view).ofTask(taskId)).at(-1)?.handed_in : undefined
    if (!handedIn) throw error
    return { head: handedIn }
  }
}

export async function approve(
  ctx: RunContext,
  task: TaskRow,
  round: ReviewRow,
  head: string | null,
  read?: string,
): Promise<MergeRow | Refusal> {
  const work = await workOf(ctx.tx, task.id)
  if (!work || head === null)
    return refuse('CONFLICT', `${handleOf(task)} has no commit that could be merged.`, { hint: 'Close it with task_close.' })
  // Approved before, and still on its way: whoever asks again waits for the same.
  const known = isBeingMerged(round) ? await mergeStore(ctx.tx).ofReview(round.id) : undefined
  if (known) return known
  const wanted = read ?? (isReviewerOf(ctx.principal, round) ? head : round.handed_in)
  if (wanted !== null && !head.startsWith(wanted)) return another(task, round, head, wanted)
  const decided = {
    decision: 'approve',
    decided_by: ctx.principal.id,
    decided_at: ctx.now,
    head_commit: head,
    outcome: null,
    reason: null,
  } as const
  await reviewStore(ctx.tx).update(round.id, decided)
  if (head !== round.handed_in) keepCommit(ctx, task.id)
  emitDecided(ctx, task, round, 'approve')
  return enterLine(ctx, task, work, { review_id: round.id, head_commit: head, summary: round.summary })
}

/** Nobody who read what was handed in has read it. */
export function another(task: TaskRow, { handed_in }: ReviewRow, head: string, wanted: string): Refusal {
  const [now, then] = [head.slice(0, 12), wanted.slice(0, 12)]
  const since = wanted === handed_in ? `was handed in at ${then}, and its branch is at ${now} now` : `is at ${now}, not at ${then}`
  return refuse('CONFLICT', `${handleOf(task)} ${since}: somebody has committed since.`, {
    hint: `Look at what came, then approve that very commit (commit: ${now}), or send it back.`,
    next_tool: 'diff_get',
    next_arguments: { task_id: handleOf(task), latest: true },
    details: { commit: head },
  })
}

async function sendBack(ctx: RunContext, task: TaskRow, round: ReviewRow, feedback: string | undefined): Promise<Refusal | undefined> {
  if (!feedback) return refuse('INVALID_INPUT', 'What is to be changed? Give feedback.')
  if (isBeingMerged(round)) return beingMerged(task)
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
  return undefined
}

function emitDecided(ctx: RunContext, task: TaskRow, { id, round }: ReviewRow, decision: z.output<typeof Decision>): void {
  ctx.emit(reviewDecided({ ...about(task), subject: id }, { handle: handleOf(task), round, decision, decided_by: ctx.principal.id }))
}

async function outcome(ctx: WatchContext, task_id: string, decision: z.output<typeof Decision>, review_id: string) {
  const pr = (await ctx.ask(workPullRequests, [task_id], await ctx.ports.daemon.address())).get(task_id)
  const same = { task_id, review_id, decision, pr_url: pr?.url ?? null }
  const none = { merged: false, merge_commit: null, conflicts: [], rebase_requests: 0, behind: 0, log: null, resume: false, merge_id: null }
  if (decision === 'request_changes')
    return {
      ...same,
      ...none,
      status: 'changes_requested' as const,
      cursor: await ctx.cursor(),
      message: 'Feedback sent to worker. Task returned to IN_PROGRESS.',
    }
  const find = async () => {
    const merge = await mergeStore(ctx.view).ofReview(review_id)
    if (!merge) throw new Error(`the merge of ${review_id} is not there`)
    return merge
  }
  const { id: merge_id, project_id } = await find()
  const { found, cursor } = await watchUntil(ctx, {
    about: { project: project_id },
    types: [...ENDS, lineHeld],
    withinMs: MERGE_MS,
    look: async () => came(ctx, await find()),
  })
  const merge = await find()
  const { behind } = await followed(ctx.view, merge)
  const told = { ...same, ...none, merge_id, behind, log: lastLines(merge.log), cursor }
  if (found) return { ...told, ...found }
  const message = 'It is in the merge line; merge_status shows where, merge.landed tells when it is in.'
  return { ...told, status: 'pending' as const, resume: true, message }
}

/** Undefined while it waits for its turn, or is being merged. */
async function came(ctx: WatchContext, merge: MergeRow) {
  if (merge.state === 'landed') return landed(ctx, merge)
  if (merge.state === 'conflict') {
    const conflicts = JSON.parse(merge.files) as string[]
    return { status: 'conflict' as const, conflicts, message: `${merge.reason}. It went back to its worker.` }
  }
  if (merge.state === 'red') return { status: 'red' as const, message: `${merge.reason} It went back to its worker.` }
  if (merge.state === 'stuck' || merge.state === 'withdrawn') {
    const task = await taskStore(ctx.view).find(merge.task_id)
    const undecided = task?.status === 'REVIEW' && task.deleted_at === null
    const message = `${sentence(merge.reason ?? '')} It ${undecided ? 'is still to be decided' : 'did not land'}.`
    return { status: 'stuck' as const, message }
  }
  // It waits for a person, not for its turn: nobody is kept waiting with it.
  const held = (await mergeStore(ctx.view).line(merge.repo_id, merge.target))?.held
  return held
    ? { status: 'pending' as const, message: `It is in the merge line, but nothing lands on ${merge.target}: ${held}` }
    : undefined
}

async function landed(ctx: WatchContext, merge: MergeRow) {
  const [end] = await ctx.recent(undefined, { subject: merge.id, types: ENDS.map(({ type }) => type) }, 1)
  const rebase_requests = Number((end?.data as Partial<z.output<typeof mergeLanded.data>> | undefined)?.rebase_requests ?? 0)
  const said = merge.reason ?? `PR merged successfully. ${rebase_requests} rebase requests sent.`
  const message = [said, (await followed(ctx.view, merge)).words].filter(Boolean).join(' ')
  return { status: 'merged' as const, merged: true, merge_commit: merge.built, rebase_requests, message }
}

/** Reasons that people typed often lack the full stop. */
function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

const MOST_LINES = 40

function lastLines(log: string | null): string | null {
  return log === null ? null : log.trimEnd().split('\n').slice(-MOST_LINES).join('\n')
}
