import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { defineEvent } from '../../kernel/event.ts'
import { iso, isoOrNull, Timestamp } from '../../kernel/schema.ts'
import { defineTool, type LookContext, type RunContext } from '../../kernel/tool.ts'
import { TaskId } from '../ids.ts'
import { about, Body, handleOf, requireTask, type TaskRow, transition } from '../task/index.ts'
import { placeOf, workOf } from '../work/index.ts'
import { openPr } from './pull-requests.ts'
import { type ReviewRow, reviewStore } from './store.ts'

const ReviewView = z.strictObject({
  id: z.string(),
  task_id: z.string(),
  round: z.int(),
  summary: z.string(),
  reviewer_prompt: z.string().nullable(),
  requested_by: z.string(),
  requested_at: Timestamp,
  decision: z.enum(['approve', 'request_changes']).nullable(),
  decided_by: z.string().nullable(),
  decided_at: Timestamp.nullable(),
  feedback: z.string().nullable(),
  outcome: z.enum(['merged', 'conflict', 'red', 'failed']).nullable().describe('What became of an approval; null while it is being merged'),
  merge_commit: z.string().nullable(),
  reason: z.string().nullable(),
})

export const reviewRequested = defineEvent(
  'review.requested',
  z.strictObject({ handle: z.string(), round: z.int(), requested_by: z.string() }),
)

export const request = defineTool({
  name: 'review_request',
  title: 'Ask for review',
  description: 'Hand in the work on your task: it moves to REVIEW with your summary. Commit everything first.',
  input: z.strictObject({
    task_id: TaskId.optional().describe('Default: the task that is yours'),
    summary: Body.describe('What you did, and how you know that every criterion is met'),
    reviewer_prompt: Body.optional().describe('What a reviewer should look at in particular'),
    leave_uncommitted: z.boolean().default(false).describe('Hand in although files are not committed, which no reviewer will see'),
  }),
  output: z.strictObject({ review: ReviewView, status: z.literal('REVIEW') }),
  example: { task_id: 'T-1', summary: 'Sign-in uses tokens; all tests pass.' },
  impact: 'write',
  profile: 'pair_worker',
  core: true,
  async prepare(ctx, { task_id, leave_uncommitted }) {
    const id = task_id ?? ctx.principal.scope.task
    const dirty = id && !leave_uncommitted ? await uncommitted(ctx, id) : 0
    if (!dirty) return {}
    return refuse(
      'CONFLICT',
      `${dirty === 1 ? 'One file' : `${dirty} files`} in the worktree are not committed, and nobody would review them.`,
      {
        hint: 'Commit what belongs to the work, ignore or delete the rest, then ask again; or say leave_uncommitted.',
      },
    )
  },
  async run(ctx, input, _looked: object) {
    const id = input.task_id ?? ctx.principal.scope.task
    if (!id) return refuse('INVALID_INPUT', 'Which task? None is assigned to you: give task_id.')
    const task = await requireTask(ctx, id)
    if (task.lead) return refuse('CONFLICT', `${handleOf(task)} is no work to be reviewed.`, { hint: 'Hand in the epic itself.' })
    if (task.status !== 'IN_PROGRESS')
      return refuse('INVALID_TRANSITION', `${handleOf(task)} is ${task.status}; only work IN_PROGRESS is handed in.`, {
        next_tool: 'task_get',
        next_arguments: { task_id: handleOf(task) },
      })
    const { summary, reviewer_prompt } = input
    const review = await requestReview(ctx, task, { summary, reviewer_prompt, requested_by: ctx.principal.id })
    return { review: reviewView(review), status: 'REVIEW' as const }
  },
})

export const list = defineTool({
  name: 'review_list',
  title: 'List reviews',
  description: 'The rounds of review of a task, oldest first, with what was handed in.',
  input: z.strictObject({ task_id: TaskId }),
  output: z.strictObject({ reviews: z.array(ReviewView) }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    return { reviews: (await reviewStore(ctx.view).ofTask(input.task_id)).map(reviewView) }
  },
})

/** Of the caller's own work; whether another's may be handed in is decided later. */
async function uncommitted(ctx: LookContext, ref: string): Promise<number> {
  const task = await requireTask(ctx, ref)
  if (ctx.principal.kind === 'agent' && ctx.principal.scope.task !== task.id) return 0
  const work = await workOf(ctx.view, task.id)
  const place = work && (await placeOf(ctx.view, work))
  if (!place || !work.base_commit) return 0
  // A repository that is away keeps nobody from handing in.
  const state = await ctx.ports.git.state(place, work.base_commit).catch(() => undefined)
  return state?.dirty ?? 0
}

/** One round: the row, the status and the event in one step. */
export async function requestReview(
  ctx: RunContext,
  task: TaskRow,
  handedIn: { summary: string; reviewer_prompt?: string; requested_by: string },
): Promise<ReviewRow> {
  const store = reviewStore(ctx.tx)
  const review: ReviewRow = {
    id: ctx.id('review'),
    task_id: task.id,
    project_id: task.project_id,
    round: (await store.ofTask(task.id)).length + 1,
    summary: handedIn.summary,
    reviewer_prompt: handedIn.reviewer_prompt ?? null,
    requested_by: handedIn.requested_by,
    requested_at: ctx.now,
    ...UNDECIDED,
  }
  await store.insert(review)
  await transition(ctx, task, 'REVIEW', null)
  await openPr(ctx, task, { summary: review.summary, by: review.requested_by })
  ctx.emit(
    reviewRequested(
      { ...about(task), subject: review.id },
      { handle: handleOf(task), round: review.round, requested_by: review.requested_by },
    ),
  )
  return review
}

/** Of a round in which nobody has decided. */
export const UNDECIDED = {
  decision: null,
  decided_by: null,
  decided_at: null,
  feedback: null,
  head_commit: null,
  outcome: null,
  merge_commit: null,
  reason: null,
} as const

function reviewView({ project_id: _, head_commit: __, requested_at, decided_at, ...row }: ReviewRow): z.output<typeof ReviewView> {
  return { ...row, requested_at: iso(requested_at), decided_at: isoOrNull(decided_at) }
}
