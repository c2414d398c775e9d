import { z } from 'zod'
import { Refusal, refuse } from '../../kernel/error.ts'
import { inScope, type Principal } from '../../kernel/policy.ts'
import { text } from '../../kernel/schema.ts'
import { defineTool, type LookContext, type RunContext } from '../../kernel/tool.ts'
import { sendLetter } from '../agent/index.ts'
import { TaskId } from '../ids.ts'
import { lineHeadOf } from '../merge/index.ts'
import { projectStore } from '../project/index.ts'
import { approve, headOf, isAtLimit, requestReview, reviewStore, toDecide, uncommitted } from '../review/index.ts'
import { Body, checkOwnTask, epicOf, handleOf, isDuty, requireTask, reviewedBy, type TaskRow, Title, withinTask } from '../task/index.ts'
import { aimAt, isOurs, placeOf, type WorkRow, workOf } from '../work/index.ts'
import { openPr, prUrl } from './pull-requests.ts'
import { type PrRow, prStore } from './store.ts'
import '../../ports/daemon.ts'

const OWN_FOLDER = '.signalbox/'
const FEW_BYTES = 1_000
const MOST_NAMED = 10

const Wanted = z.strictObject({
  task_id: TaskId.optional().describe('Default: the task that is yours, or the work that you were started to review'),
  title: Title,
  description: Body,
  base_branch: text(200).optional().describe('What it is to be merged into; default: the branch of its epic, else where it began'),
})

interface Seen {
  head: string | null
  address: string
}

export const createPr = defineTool({
  name: 'pr_create',
  title: 'Create a pull request',
  description: 'Hand in your work as a pull request. By its reviewer: approve it. When the rounds are used up, a person decides.',
  input: Wanted,
  output: z.strictObject({
    pr_id: z.string(),
    pr_number: z.int().describe('Counted in its repository'),
    pr_url: z.string(),
    branch: z.string(),
    base: z.string(),
    task_id: TaskId,
    review_id: z.string(),
    status: z.enum(['in_review', 'waits_for_human', 'approved']),
    message: z.string(),
  }),
  example: { task_id: 'T-1', title: 'Log in with a passkey', description: 'A wrong one is refused; all tests pass.' },
  impact: 'write',
  // A planner may hand in documents of its own task.
  profile: 'planner',
  // What a reviewer reviews is not its own task: who may is said below.
  scope: 'open',
  async prepare(ctx, { task_id, base_branch }): Promise<Seen | Refusal> {
    const reviewed = await reviewedBy(ctx.view, ctx.principal)
    const id = task_id ?? reviewed ?? ctx.principal.scope.task
    const head = id ? await lookedAt(ctx, await requireTask(ctx, id), reviewed, base_branch) : null
    return head instanceof Refusal ? head : { head, address: await ctx.ports.daemon.address() }
  },
  async run(ctx: RunContext, input: z.output<typeof Wanted>, { head, address }: Seen) {
    const reviewed = await reviewedBy(ctx.tx, ctx.principal)
    const id = input.task_id ?? reviewed ?? ctx.principal.scope.task
    if (!id) return refuse('INVALID_INPUT', 'Which task? None is assigned to you: give task_id.')
    const task = await requireTask(ctx, id)
    const done = reviewed ? await approveAs(ctx, task, input, head) : await handInAs(ctx, task, input, head)
    if (done instanceof Refusal) return done
    const { pr, review_id, status } = done
    const { id: pr_id, number: pr_number, head: branch, base } = pr
    return { pr_id, pr_number, pr_url: prUrl(pr, address), branch, base, task_id: task.id, review_id, status, message: MESSAGES[status] }
  },
})

const MESSAGES = {
  in_review: 'It waits for its review.',
  waits_for_human: 'The rounds of review are used up: a person decides about it.',
  approved: 'It is approved and in the merge line; merge.landed tells when it is in. That ends the review.',
} as const

type Done = { pr: PrRow; review_id: string; status: keyof typeof MESSAGES }

/** Of the round that the caller was started for, and no other. */
async function approveAs(ctx: RunContext, task: TaskRow, input: z.output<typeof Wanted>, head: string | null): Promise<Done | Refusal> {
  const handedIn = await toDecide(ctx, task.id)
  if (handedIn instanceof Refusal) return handedIn
  const { round } = handedIn
  const into = (await workOf(ctx.tx, task.id))?.base_branch
  if (input.base_branch !== undefined && input.base_branch !== into)
    return refuse('INVALID_INPUT', `${handleOf(task)} was handed in to be merged into ${into}.`, { hint: 'Leave out base_branch.' })
  const merge = await approve(ctx, task, round, head)
  if (merge instanceof Refusal) return merge
  const pr = await openPr(ctx, task, { summary: input.description, title: input.title, by: ctx.principal.id })
  return pr ? { pr, review_id: round.id, status: 'approved' } : noWork(task)
}

async function handInAs(ctx: RunContext, task: TaskRow, input: z.output<typeof Wanted>, head: string | null): Promise<Done | Refusal> {
  const denied = mayHandIn(ctx.principal, task)
  if (denied) return denied
  if (isDuty(task)) return refuse('CONFLICT', `${handleOf(task)} is no work to be reviewed.`)
  if (task.status !== 'IN_PROGRESS')
    return refuse('INVALID_TRANSITION', `${handleOf(task)} is ${task.status}; only work IN_PROGRESS is handed in.`, {
      next_tool: 'task_get',
      next_arguments: { task_id: handleOf(task) },
    })
  const work = await workOf(ctx.tx, task.id)
  if (!work || head === null) return noWork(task)
  const elsewhere = await aimed(ctx, task, work, input.base_branch)
  if (elsewhere) return elsewhere
  const isForHuman = isAtLimit(ctx, await reviewStore(ctx.tx).ofTask(task.id))
  const { title, description: summary } = input
  const reader = isForHuman ? ('human' as const) : null
  const round = await requestReview(ctx, task, { summary, title, head, reader, requested_by: ctx.principal.id })
  if (round instanceof Refusal) return round
  const pr = await prStore(ctx.tx).ofTask(task.id)
  if (!pr) throw new Error(`${task.id} was handed in without a pull request`)
  if (isForHuman) await tellHuman(ctx, task, title)
  return { pr, review_id: round.id, status: isForHuman ? 'waits_for_human' : 'in_review' }
}

/** Of an epic it lands on the branch of that. */
async function aimed(ctx: RunContext, task: TaskRow, work: WorkRow, branch: string | undefined): Promise<Refusal | undefined> {
  if (branch === undefined || branch === work.base_branch) return undefined
  const epic = await epicOf(ctx, task)
  if (epic)
    return refuse('INVALID_INPUT', `The tasks of ${epic.handle} are merged into ${epic.branch}.`, { hint: 'Leave out base_branch.' })
  await aimAt(ctx, work, branch)
  return undefined
}

/** The commit that it is about, unless git says that nobody could merge it. Of the work of others nothing is told. */
async function lookedAt(ctx: LookContext, task: TaskRow, reviewed: string | undefined, branch: string | undefined) {
  const denied = reviewed ? undefined : mayHandIn(ctx.principal, task)
  if (denied) return denied
  const work = await workOf(ctx.view, task.id)
  const place = work && (await placeOf(ctx, work))
  if (!place || !work.base_commit || (reviewed && reviewed !== task.id)) return null
  const state = await ctx.ports.git.state(place, work.base_commit)
  const left = reviewed ? undefined : uncommitted(state.dirty)
  if (left) return left
  const unknown = branch === undefined || branch === work.base_branch ? undefined : await noSuchBranch(ctx, work, branch)
  if (unknown) return unknown
  const head = reviewed ? (await headOf(ctx, task.id)).head : state.head
  const follows = (await lineHeadOf(ctx, work.repo_id, work.base_branch)) ?? undefined
  const { files } = await ctx.ports.git.diff(place, { from: work.base_commit, follows, bytes: FEW_BYTES })
  if (head !== work.base_commit && files.some(({ path }) => !path.startsWith(OWN_FOLDER))) return head
  return refuse('CONFLICT', `${handleOf(task)} has changed nothing: a pull request would be empty.`, {
    hint: 'Commit the work on its branch first. If nothing is to be changed, say so in a task_note and end.',
  })
}

async function noSuchBranch(ctx: LookContext, work: WorkRow, branch: string): Promise<Refusal | undefined> {
  // Merged into somebody's work it would be in that worktree, reviewed by nobody; into its own, nowhere.
  if (isOurs(branch)) return refuse('INVALID_INPUT', `${branch} is the branch of a task or an epic: nothing is merged into it from here.`)
  const repo = await projectStore(ctx.view).repo(work.repo_id)
  const { branches = [] } = (repo && (await ctx.ports.git.inspect(repo.path))) ?? {}
  if (branches.includes(branch)) return undefined
  return refuse('INVALID_INPUT', `There is no branch ${branch} that it could be merged into.`, {
    suggestions: branches.filter((name) => !isOurs(name)).slice(0, MOST_NAMED),
  })
}

function mayHandIn(principal: Principal, task: TaskRow): Refusal | undefined {
  return inScope(principal, 'task', task.id, withinTask(task)) ?? checkOwnTask(principal, task)
}

async function tellHuman(ctx: RunContext, task: TaskRow, title: string): Promise<void> {
  const { project_id, epic_id } = task
  await sendLetter(ctx, {
    from: ctx.principal.id,
    to: 'human',
    subject: `Pull request waits for you: ${handleOf(task)}`,
    body: `The rounds of review of ${handleOf(task)} are used up, and its worker has made a pull request of it: ${title}. Approve it, send it back with feedback, or give it up.`,
    importance: 'high',
    about: { project_id, epic_id, task_id: task.id },
  })
}

function noWork(task: TaskRow): Refusal {
  return refuse('CONFLICT', `${handleOf(task)} has no branch of its own: there is nothing to make a pull request of.`, {
    next_tool: 'work_get',
    next_arguments: { task_id: handleOf(task) },
  })
}
