import { z } from 'zod'
import { Refusal, refuse } from '../../kernel/error.ts'
import { iso, isoOrNull } from '../../kernel/schema.ts'
import { defineTool, type LookContext, type RunContext, type WatchContext } from '../../kernel/tool.ts'
import { fromJson } from '../../kernel/unreadable.ts'
import { TaskId } from '../ids.ts'
import { projectStore } from '../project/index.ts'
import { committedCopies } from '../setup/index.ts'
import { about, Body, handleOf, isDuty, requireTask, type TaskRow, transition } from '../task/index.ts'
import { placeOf, type WorkRow, workOf } from '../work/index.ts'
import { keepCommit } from './keep.ts'
import { limitOf, overLimit } from './limit.ts'
import { roundBegins } from './points.ts'
import { readerProgram } from './reviewer.ts'
import { ReviewerView, reviewerThere } from './reviewer-view.ts'
import { type FeedbackView, LimitView, ReviewView, reviewRequested } from './schema.ts'
import { type FeedbackRow, feedbackStore, type Reader, type ReviewRow, reviewStore, UNDECIDED } from './store.ts'
import { timedOut } from './timeout.ts'

const HOUR_MS = 3_600_000

const Requested = z.strictObject({
  task_id: TaskId.optional().describe('Default: the task that is yours'),
  summary: Body.describe('What you did, and how you know that every criterion is met'),
  reviewer_prompt: Body.optional().describe('What a reviewer should look at in particular'),
  reviewer_agent: z
    .boolean()
    .default(false)
    .describe('A reviewer agent is wanted, also where the settings name none: wait until it is there'),
  leave_uncommitted: z.boolean().default(false).describe('Hand in although files are not committed, which no reviewer will see'),
})

export const request = defineTool({
  name: 'review_request',
  title: 'Ask for review',
  description: 'Hand in the work on your task: it moves to REVIEW with your summary. Commit everything first.',
  input: Requested,
  output: z.strictObject({
    review: ReviewView,
    status: z.literal('REVIEW'),
    branch: z.string().nullable().describe('What is reviewed'),
    reviewer: ReviewerView.nullable().describe('Where reviewer_agent was asked for; null: none has begun yet'),
  }),
  example: { task_id: 'T-1', summary: 'Sign-in uses tokens; all tests pass.' },
  impact: 'write',
  profile: 'pair_worker',
  core: true,
  async prepare(ctx, { task_id, leave_uncommitted, reviewer_agent }) {
    // What cannot be started is said before anything is handed in.
    const reader = reviewer_agent ? await readerProgram(ctx) : undefined
    if (reader instanceof Refusal) return reader
    const id = task_id ?? ctx.principal.scope.task
    const seen = id ? await seenOf(ctx, id) : undefined
    const left = leave_uncommitted ? undefined : uncommitted(seen?.dirty ?? 0, '; or say leave_uncommitted')
    return left ?? (seen && (await withCopies(ctx, seen))) ?? { head: seen?.head ?? null }
  },
  async run(ctx: RunContext, input: z.output<typeof Requested>, seen?: { head: string | null }) {
    const id = input.task_id ?? ctx.principal.scope.task
    if (!id) return refuse('INVALID_INPUT', 'Which task? None is assigned to you: give task_id.')
    const task = await requireTask(ctx, id)
    if (isDuty(task)) return refuse('CONFLICT', `${handleOf(task)} is no work to be reviewed.`)
    if (task.status !== 'IN_PROGRESS')
      return refuse('INVALID_TRANSITION', `${handleOf(task)} is ${task.status}; only work IN_PROGRESS is handed in.`, {
        next_tool: 'task_get',
        next_arguments: { task_id: handleOf(task) },
      })
    const { summary, reviewer_prompt, reviewer_agent } = input
    if (reviewer_agent && !(await workOf(ctx.tx, task.id))?.base_commit)
      return refuse('CONFLICT', `${handleOf(task)} has no worktree: there is nothing that a reviewer could read.`, {
        next_tool: 'work_get',
        next_arguments: { task_id: handleOf(task) },
      })
    const reader = reviewer_agent ? ('agent' as const) : null
    const handedIn = { summary, reviewer_prompt, requested_by: ctx.principal.id, head: seen?.head, reader }
    const review = await requestReview(ctx, task, handedIn)
    return review instanceof Refusal ? review : { review_id: review.id }
  },
  watch: (ctx, { reviewer_agent }, { review_id }: { review_id: string }) => handedIn(ctx, review_id, reviewer_agent),
})

async function handedIn(ctx: WatchContext, review_id: string, withReviewer: boolean) {
  const round = await reviewStore(ctx.view).find(review_id)
  if (!round) throw new Error(`the round ${review_id} is not there`)
  const branch = (await workOf(ctx.view, round.task_id))?.branch ?? null
  const reviewer = withReviewer ? await reviewerThere(ctx, round) : null
  return { review: reviewView(round, []), status: 'REVIEW' as const, branch, reviewer }
}

export const list = defineTool({
  name: 'review_list',
  title: 'List reviews',
  description: 'The rounds of review of a task, oldest first, with what was handed in.',
  input: z.strictObject({ task_id: TaskId }),
  output: z.strictObject({
    reviews: z.array(ReviewView),
    limit: LimitView.nullable().describe('null: there may be another round'),
  }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const given = await feedbackStore(ctx.view).ofTask(input.task_id)
    const rounds = await reviewStore(ctx.view).ofTask(input.task_id)
    return { reviews: rounds.map((round) => reviewView(round, given)), limit: limitOf(ctx, rounds) }
  },
})

/** Nobody would review it, and it would not be merged. */
export function uncommitted(dirty: number, otherwise = ''): Refusal | undefined {
  if (!dirty) return undefined
  const which =
    dirty === 1
      ? 'One file in the worktree is not committed, and nobody would review it.'
      : `${dirty} files in the worktree are not committed, and nobody would review them.`
  return refuse('CONFLICT', which, {
    hint: `Commit what belongs to the work, ignore or delete the rest, then ask again${otherwise}.`,
  })
}

interface Seen {
  dirty: number
  head: string | null
  work: WorkRow
}

/** They were copied for whoever works there, and would be on the target for everybody. */
async function withCopies(ctx: LookContext, { head, work }: Seen): Promise<Refusal | undefined> {
  const repo = await projectStore(ctx.view).repo(work.repo_id)
  if (!repo || !head || !work.base_commit) return undefined
  const files = await committedCopies(ctx.ports.git, repo, work.base_commit, head).catch(() => [])
  if (files.length === 0) return undefined
  return refuse('CONFLICT', `Your commits contain files that were only copied for you to work with: ${files.slice(0, 10).join(', ')}.`, {
    hint: 'Have .gitignore name them again, remove them with git rm --cached, amend or squash the commits that added them, then ask again.',
  })
}

/** Of the caller's own work; whether another's may be handed in is decided later. */
async function seenOf(ctx: LookContext, ref: string): Promise<Seen | undefined> {
  const task = await requireTask(ctx, ref)
  if (ctx.principal.kind === 'agent' && ctx.principal.scope.task !== task.id) return undefined
  const work = await workOf(ctx.view, task.id)
  if (!work?.base_commit) return undefined
  const from = work.base_commit
  // A repository that is away keeps nobody from handing in.
  return placeOf(ctx, work)
    .then(async (place) => place && { ...(await ctx.ports.git.state(place, from)), work })
    .catch(() => undefined)
}

interface HandedIn {
  summary: string
  reviewer_prompt?: string
  requested_by: string
  head?: string | null
  reader?: Reader | null
  /** Of its pull request; default: that of the task. */
  title?: string
}

/** One round, as far as there may be another or a person reads it: the row, the status and the event in one step. */
export async function requestReview(ctx: RunContext, task: TaskRow, handedIn: HandedIn): Promise<ReviewRow | Refusal> {
  const store = reviewStore(ctx.tx)
  const rounds = await store.ofTask(task.id)
  const refused = handedIn.reader === 'human' ? undefined : await overLimit(ctx, task, rounds, handedIn.requested_by)
  if (refused) return refused
  const review: ReviewRow = {
    id: ctx.id('review'),
    task_id: task.id,
    project_id: task.project_id,
    round: rounds.length + 1,
    summary: handedIn.summary,
    reviewer_prompt: handedIn.reviewer_prompt ?? null,
    requested_by: handedIn.requested_by,
    requested_at: ctx.now,
    ...UNDECIDED,
    handed_in: handedIn.head ?? null,
    reader: handedIn.reader ?? null,
  }
  await store.insert(review)
  if (review.handed_in) keepCommit(ctx, task.id)
  const hours = ctx.setting<number>('review.timeout_hours')
  ctx.later(timedOut, { review_id: review.id, hours }, { delayMs: Math.ceil(hours * HOUR_MS) })
  await transition(ctx, task, 'REVIEW', null)
  await ctx.ask(roundBegins, task, { summary: review.summary, by: review.requested_by, title: handedIn.title })
  ctx.emit(
    reviewRequested(
      { ...about(task), subject: review.id },
      { handle: handleOf(task), round: review.round, requested_by: review.requested_by },
    ),
  )
  return review
}

function reviewView(row: ReviewRow, given: FeedbackRow[]): z.output<typeof ReviewView> {
  const { project_id: _, head_commit: __, abandoned_at: ___, cleaned_at: ____, requested_at, decided_at, ...shown } = row
  const feedbacks = given.filter(({ review_id }) => review_id === row.id).map(feedbackView)
  return { ...shown, feedbacks, requested_at: iso(requested_at), decided_at: isoOrNull(decided_at) }
}

function feedbackView(row: FeedbackRow): z.output<typeof FeedbackView> {
  const { id, from_id, feedback_type, priority, feedback, state, commit_hash, reason } = row
  const actionable_items = fromJson<string[]>(row.actionable_items)
  return { id, from_id, feedback_type, priority, feedback, actionable_items, state, commit_hash, reason, created_at: iso(row.created_at) }
}
