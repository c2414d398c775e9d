import { z } from 'zod'
import { type Refusal, refuse } from '../../kernel/error.ts'
import { iso, isoOrNull, text } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import { defineTool, type Reading, type RunContext } from '../../kernel/tool.ts'
import { fromJson } from '../../kernel/unreadable.ts'
import { nextNumber } from '../handle.ts'
import { MergeId, RepoId, TaskId } from '../ids.ts'
import { currentProject, projectStore } from '../project/index.ts'
import { about, epicOf, handleOf, requireTask, type TaskRow, taskStore, transition } from '../task/index.ts'
import type { WorkRow } from '../work/index.ts'
import { queueOf, workOffLine } from './effects.ts'
import { inOrder } from './order.ts'
import { isOutdated, mayDecide, mergeMoves } from './points.ts'
import { LineView, lineFreed, type MergeView, mergeQueued } from './schema.ts'
import { isOpen, type LineRow, type MergeRow, mergeStore } from './store.ts'
import { behindWords } from './words.ts'

const MOST_ENDED = 20

/** Approved work joins the line of its branch. */
export async function enterLine(
  ctx: RunContext,
  task: TaskRow,
  work: WorkRow,
  approved: Pick<MergeRow, 'review_id' | 'head_commit' | 'summary'>,
): Promise<MergeRow> {
  const epic = await epicOf(ctx, task)
  const { repo_id, project_id, base_branch, strategy } = work
  const row: MergeRow = {
    id: ctx.id('merge'),
    number: await nextNumber(ctx.tx, 'merge'),
    repo_id,
    target: epic?.branch ?? base_branch,
    made_from: epic?.base_branch ?? null,
    strategy,
    project_id,
    task_id: task.id,
    ...approved,
    priority: task.priority,
    passed_over: 0,
    state: 'waiting',
    built_on: null,
    built: null,
    reason: null,
    files: '[]',
    log: null,
    submitted_by: ctx.principal.id,
    submitted_at: ctx.now,
    began_at: null,
    ended_at: null,
  }
  const store = mergeStore(ctx.tx)
  await store.insert(row)
  const { target, made_from } = row
  await store.saveLine({ repo_id, target, project_id, made_from, strategy, updated_at: ctx.now })
  ctx.emit(mergeQueued({ ...about(task), subject: row.id }, { handle: handleOf(task), into: row.target }))
  setOff(ctx, row)
  return row
}

/** Whether the branch itself has what landed, and what to do when it does not. */
export async function followed(
  tx: Tx,
  { repo_id, target }: Pick<LineRow, 'repo_id' | 'target'>,
): Promise<{ behind: number; words: string }> {
  const [line, repo] = [await mergeStore(tx).line(repo_id, target), await projectStore(tx).repo(repo_id)]
  return { behind: line?.behind ?? 0, words: line ? behindWords(line, repo?.handle ?? repo_id) : '' }
}

function setOff(ctx: RunContext, { repo_id, target }: Pick<LineRow, 'repo_id' | 'target'>): void {
  ctx.enqueue(workOffLine({ repo_id, target }, { queue: queueOf(repo_id, target) }))
}

export const status = defineTool({
  name: 'merge_status',
  title: 'Look at the merge line',
  description:
    'What waits to be merged, in the order of its turns, what is being checked, what came of the last ones, and whether the branch itself has followed.',
  input: z.strictObject({
    task_id: TaskId.optional().describe('Only the line that it is in'),
    repo_id: RepoId.optional(),
    target: text(200).optional().describe('Only that branch'),
  }),
  output: z.strictObject({ lines: z.array(LineView), cursor: z.string() }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { task_id, repo_id, target }) {
    const cursor = await ctx.cursor()
    const store = mergeStore(ctx.view)
    const of = task_id ? await store.lastOf(task_id) : undefined
    if (task_id && !of)
      return refuse('RESOURCE_NOT_FOUND', 'That task was never in a merge line.', { hint: 'It enters one when it is approved.' })
    const project = of || repo_id ? undefined : await currentProject(ctx.view, ctx.principal)
    const lines = await store.lines(project, of?.repo_id ?? repo_id)
    const wanted = of?.target ?? target
    const shown = lines.filter((line) => wanted === undefined || line.target === wanted)
    const views = await Promise.all(shown.map((line) => lineView(ctx, line)))
    return { lines: views.filter(wasUsed), cursor }
  },
})

export const retry = defineTool({
  name: 'merge_retry',
  title: 'Try a merge again',
  description: 'Put work that could not be merged back into the line, as it was approved; or let a line that is held go on.',
  input: z
    .strictObject({
      task_id: TaskId.optional(),
      merge_id: MergeId.optional(),
      repo_id: RepoId.optional().describe('With target: of a line that is held'),
      target: text(200).optional(),
      anew: z
        .boolean()
        .optional()
        .describe('With target: let the line begin anew at its branch, without what landed and the branch does not have'),
    })
    .refine(
      ({ task_id, merge_id, repo_id, target }) => [task_id, merge_id, repo_id && target].filter(Boolean).length === 1,
      'name a task_id, a merge_id, or repo_id and target',
    ),
  output: z.strictObject({ lines: z.array(LineView) }),
  example: { task_id: 'T-1' },
  impact: 'write',
  profile: 'operator',
  async run(ctx, { task_id, merge_id, repo_id, target, anew }) {
    const store = mergeStore(ctx.tx)
    if (repo_id && target) return free(ctx, await store.line(repo_id, target), target, anew ?? false)
    const merge = task_id ? await store.lastOf((await requireTask(ctx, task_id)).id) : await store.find(merge_id as string)
    if (!merge) return refuse('RESOURCE_NOT_FOUND', 'That was never in a merge line.', { next_tool: 'merge_status', next_arguments: {} })
    const refused = await again(ctx, merge)
    if (refused) return refused
    return { lines: [await lineView(ctx, (await store.line(merge.repo_id, merge.target)) as LineRow)] }
  },
})

async function free(ctx: RunContext, line: LineRow | undefined, target: string, anew: boolean) {
  if (!line?.held)
    return refuse('CONFLICT', line ? `Nothing holds the line of ${target}.` : `There is no line of ${target}.`, {
      next_tool: 'merge_status',
      next_arguments: {},
    })
  if (ctx.principal.kind === 'agent') return refuse('PERMISSION_DENIED', 'A line that is held waits for a person.')
  const { repo_id, project_id } = line
  const freed = { ...line, held: null, ...(anew ? { head: null, landing: null, green: null } : {}) }
  await mergeStore(ctx.tx).saveLine({ ...freed, updated_at: ctx.now })
  ctx.emit(lineFreed({ subject: repo_id, project: project_id }, { repo_id, target }))
  setOff(ctx, line)
  return { lines: [await lineView(ctx, freed)] }
}

/** The same commit once more: nobody has looked at another one. */
async function again(ctx: RunContext, merge: MergeRow): Promise<Refusal | undefined> {
  const task = await requireTask(ctx, merge.task_id)
  const denied = await ctx.ask(mayDecide, task, merge)
  if (denied) return denied
  if (!(await isLatest(ctx, merge)) || !RETRIED.includes(merge.state))
    return refuse('CONFLICT', `${handleOf(task)} cannot be retried: ${WHY[merge.state] ?? 'it was handed in again since'}.`, {
      next_tool: isOpen(merge) ? 'merge_cancel' : 'merge_status',
      next_arguments: { task_id: handleOf(task) },
    })
  if (!mayMove(task)) return refuse('INVALID_TRANSITION', `${handleOf(task)} is ${task.status}: there is nothing to merge.`)
  if (task.status === 'IN_PROGRESS') await transition(ctx, task, 'REVIEW', 'Its merge is tried again')
  const waiting = { state: 'waiting', reason: null, log: null, built: null, built_on: null, began_at: null, ended_at: null } as const
  const number = await nextNumber(ctx.tx, 'merge')
  const next = { ...waiting, number, passed_over: 0, submitted_at: ctx.now, submitted_by: ctx.principal.id }
  await mergeStore(ctx.tx).update(merge.id, next)
  await ctx.ask(mergeMoves, { merge: { ...merge, ...next }, task })
  ctx.emit(mergeQueued({ ...about(task), subject: merge.id }, { handle: handleOf(task), into: merge.target }))
  setOff(ctx, merge)
  return undefined
}

/** What its worker has handed in since is another commit. */
async function isLatest(ctx: Reading, merge: MergeRow): Promise<boolean> {
  const last = await mergeStore(ctx.view).lastOf(merge.task_id)
  return last?.id === merge.id && !(await ctx.ask(isOutdated, merge))
}

function mayMove({ status, deleted_at }: TaskRow): boolean {
  return deleted_at === null && (status === 'REVIEW' || status === 'IN_PROGRESS')
}

const RETRIED: MergeRow['state'][] = ['stuck', 'red', 'withdrawn']
const WHY: Partial<Record<MergeRow['state'], string>> = {
  waiting: 'it is still queued',
  checking: 'it is being checked',
  landed: 'it has landed',
  conflict: 'it conflicts, and its worker has to resolve that first',
}

/** It is recorded where a line stands before anything is merged into it: that alone is nothing to be shown. */
function wasUsed({ waiting, ended, held, behind }: z.output<typeof LineView>): boolean {
  return waiting.length > 0 || ended.length > 0 || held !== null || behind > 0
}

async function lineView(ctx: Reading, line: LineRow): Promise<z.output<typeof LineView>> {
  const store = mergeStore(ctx.view)
  const { repo_id, target } = line
  const [waiting, ended] = [inOrder(await store.inLine(repo_id, target)), await store.ended(repo_id, target, MOST_ENDED)]
  const { project_id: _, updated_at: __, made_from: ___, strategy: ____, green_by: _____, landing: ______, ...shown } = line
  return {
    ...shown,
    repo: (await projectStore(ctx.view).repo(repo_id))?.handle ?? repo_id,
    waiting: await Promise.all(waiting.map((merge, i) => mergeView(ctx, merge, i + 1))),
    ended: await Promise.all(ended.map((merge) => mergeView(ctx, merge, null))),
  }
}

async function mergeView(ctx: Reading, merge: MergeRow, position: number | null): Promise<z.output<typeof MergeView>> {
  const task = await taskStore(ctx.view).find(merge.task_id)
  if (!task) throw new Error(`merge ${merge.id} has no task`)
  const { id, task_id, review_id, target, state, head_commit, built, built_on, reason, files, log, submitted_by } = merge
  return {
    id,
    position,
    task_id,
    handle: handleOf(task),
    title: task.title,
    review_id,
    target,
    state,
    head_commit,
    commit: built,
    on: built_on,
    reason,
    can_retry: RETRIED.includes(state) && mayMove(task) && (await isLatest(ctx, merge)),
    files: fromJson<string[]>(files),
    log,
    submitted_by,
    submitted_at: iso(merge.submitted_at),
    began_at: isoOrNull(merge.began_at),
    ended_at: isoOrNull(merge.ended_at),
  }
}
