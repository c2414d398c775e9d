import { type Refusal, refuse } from '../../kernel/error.ts'
import { inScope, type Principal, reaches } from '../../kernel/policy.ts'
import type { Reading, RunContext } from '../../kernel/tool.ts'
import { agentStore, sendLetter } from '../agent/index.ts'
import { addNote, handleOf, type TaskRow, transition, withinTask } from '../task/index.ts'
import { type ReviewRow, reviewStore, UNDECIDED } from './store.ts'

const SILENT = 'It was moved to REVIEW without a summary.'

/** Approved, and neither landed nor sent back yet. */
export function isBeingMerged(round: ReviewRow | undefined): boolean {
  return round?.decision === 'approve' && round.outcome === null
}

export function beingMerged(task: TaskRow): Refusal {
  return refuse('CONFLICT', `${handleOf(task)} was approved, and is being merged.`, {
    hint: 'Take it out of the merge line first, or write another task for what is missing.',
    next_tool: 'merge_cancel',
    next_arguments: { task_id: handleOf(task) },
  })
}

/** Of agents a supervisor decides, in whose epic it is, and not about what it did itself; and who was started to review this very round. */
export function checkMayDecide(principal: Principal, task: TaskRow, round: ReviewRow | undefined): Refusal | undefined {
  if (isReviewerOf(principal, round)) return undefined
  const outside = inScope(principal, 'task', task.id, withinTask(task))
  if (outside) return outside
  const own = principal.scope.task === task.id || task.assignee_id === principal.id || round?.requested_by === principal.id
  const isForHuman = round?.reader === 'human'
  const decides = principal.kind !== 'agent' || (!own && !isForHuman && principal.role === 'supervisor')
  if (decides && reaches(principal.profile, 'operator')) return undefined
  return refuse('PERMISSION_DENIED', `You may not decide about ${handleOf(task)}: that is for the supervisor of its epic, or a person.`, {
    ...(decides ? { hint: 'That needs the profile operator. Ask for the admin lane: `signalbox mcp --admin`.' } : {}),
  })
}

export function isReviewerOf(principal: Principal, round: ReviewRow | undefined): boolean {
  const { role, scope } = principal
  return role === 'reviewer' && scope.task !== undefined && round?.reviewer_task_id === scope.task && round.decision !== 'timed_out'
}

/** The last round is over when it was decided; what was moved to REVIEW by hand has none of its own. */
export function isCurrent(round: ReviewRow | undefined): round is ReviewRow {
  if (!round) return false
  return (
    round.decision === null ||
    round.decision === 'timed_out' ||
    (round.decision === 'approve' && (round.outcome === null || round.outcome === 'failed'))
  )
}

/** What is reviewed, or on its way through the line; null where nobody looked when it was handed in. */
export async function handedInOf({ view: tx }: Reading, task: string): Promise<string | null> {
  const [last] = await reviewStore(tx).latest([task])
  if (!isCurrent(last)) return null
  return (last.decision === 'approve' && last.outcome === null ? last.head_commit : null) ?? last.handed_in
}

/** The round that is to be decided; made for a task that somebody only moved. */
export async function currentRound(ctx: RunContext, task: TaskRow): Promise<ReviewRow> {
  const rounds = await reviewStore(ctx.tx).ofTask(task.id)
  const last = rounds.at(-1)
  if (isCurrent(last)) return last
  const round: ReviewRow = {
    id: ctx.id('review'),
    task_id: task.id,
    project_id: task.project_id,
    round: rounds.length + 1,
    summary: SILENT,
    reviewer_prompt: null,
    requested_by: task.assignee_id ?? task.created_by,
    requested_at: task.status_changed_at,
    ...UNDECIDED,
  }
  await reviewStore(ctx.tx).insert(round)
  return round
}

/** Back to its worker, with what is to be done: as a note, which every later life reads, and as a letter, which wakes it. */
export async function back(ctx: RunContext, task: TaskRow, said: { from: string; subject: string; body: string }): Promise<void> {
  await addNote(ctx, task, said.from, said.body)
  if (task.status === 'REVIEW') await transition(ctx, task, 'IN_PROGRESS', said.subject)
  const worker = task.assignee_id ? await agentStore(ctx.tx).agent(task.assignee_id) : undefined
  if (!worker) return
  const { project_id, epic_id } = task
  await sendLetter(ctx, { ...said, to: worker.id, importance: 'high', about: { project_id, epic_id, task_id: task.id } })
}
