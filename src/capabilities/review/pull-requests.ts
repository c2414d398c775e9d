import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { defineEvent } from '../../kernel/event.ts'
import { iso, isoOrNull, Timestamp } from '../../kernel/schema.ts'
import { defineTool, type Reading, type RunContext } from '../../kernel/tool.ts'
import { sendLetter } from '../agent/index.ts'
import { nextNumber } from '../handle.ts'
import { EpicId, PrId, TaskId } from '../ids.ts'
import { lineRef, type MovedMerge, mergeStore } from '../merge/index.ts'
import { handleOf, isDuty, type Status, type TaskRow, taskStore } from '../task/index.ts'
import { workOf } from '../work/index.ts'
import { type PrRow, prStore } from './store.ts'
import '../../ports/daemon.ts'

const MOST_TOLD = 1_000
const AT_WORK: Status[] = ['IN_PROGRESS', 'REVIEW']

export const PrView = z.strictObject({
  id: PrId,
  number: z.int().describe('Counted in its repository'),
  repo_id: z.string(),
  project_id: z.string(),
  task_id: z.string().nullable(),
  epic_id: z.string().nullable(),
  head: z.string(),
  base: z.string(),
  title: z.string(),
  description: z.string(),
  state: z.enum(['OPEN', 'MERGED', 'CLOSED']),
  merge_commit: z.string().nullable(),
  url: z.string().describe('Where it is on the dashboard'),
  created_by: z.string(),
  created_at: Timestamp,
  updated_at: Timestamp,
  merged_at: Timestamp.nullable(),
})

export const prOpened = defineEvent('pr.opened', z.strictObject({ number: z.int(), head: z.string(), base: z.string(), title: z.string() }))
export const prMerged = defineEvent('pr.merged', z.strictObject({ number: z.int(), commit: z.string() }))

export const prClosed = defineEvent('pr.closed', z.strictObject({ number: z.int(), reason: z.string() }))

export const getPr = defineTool({
  name: 'pr_get',
  title: 'Read a pull request',
  description: 'The pull request of the work on a task, or of a finished epic. Give one of the three.',
  input: z
    .strictObject({ task_id: TaskId.optional(), epic_id: EpicId.optional(), pr_id: PrId.optional() })
    .refine((input) => Object.values(input).filter(Boolean).length === 1, 'name exactly one of task_id, epic_id, pr_id'),
  output: z.strictObject({ pr: PrView }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { task_id, epic_id, pr_id }) {
    const store = prStore(ctx.view)
    const row = task_id ? await store.ofTask(task_id) : epic_id ? await store.ofEpic(epic_id) : await store.find(pr_id as string)
    if (!row)
      return refuse('RESOURCE_NOT_FOUND', 'There is no pull request for that yet.', {
        hint: 'That of a task comes with review_request, that of an epic when it is handed in.',
      })
    return { pr: prView(row, await ctx.ports.daemon.address()) }
  },
})

/** The one of a task with work of its own; again when it is handed in again. */
export async function openPr(
  ctx: RunContext,
  task: TaskRow,
  handedIn: { summary: string; by: string; title?: string },
): Promise<PrRow | undefined> {
  const work = await workOf(ctx.tx, task.id)
  if (!work) return undefined
  const known = await prStore(ctx.tx).ofTask(task.id)
  const { branch: head, base_branch: base, repo_id, project_id } = work
  const title = handedIn.title ?? `${handleOf(task)} ${task.title}`
  const told = { title, description: handedIn.summary, base, state: 'OPEN' as const, updated_at: ctx.now }
  if (known) {
    await prStore(ctx.tx).update(known.id, told)
    return { ...known, ...told }
  }
  return insertPr(ctx, { repo_id, project_id, task_id: task.id, epic_id: task.epic_id, head, ...told, created_by: handedIn.by })
}

/** Without a merge; handing in again opens it again. */
export async function closePr(ctx: RunContext, task: TaskRow, reason: string): Promise<void> {
  const pr = await prStore(ctx.tx).ofTask(task.id)
  if (pr?.state !== 'OPEN') return
  await prStore(ctx.tx).update(pr.id, { state: 'CLOSED', updated_at: ctx.now })
  ctx.emit(prClosed({ subject: pr.id, project: pr.project_id, task: pr.task_id }, { number: pr.number, reason }))
}

type NewPr = Pick<PrRow, 'repo_id' | 'project_id' | 'task_id' | 'epic_id' | 'head' | 'base' | 'title' | 'description' | 'created_by'>

export async function insertPr(ctx: RunContext, wanted: NewPr): Promise<PrRow> {
  const row: PrRow = {
    ...wanted,
    id: ctx.id('pr'),
    number: await nextNumber(ctx.tx, `pr:${wanted.repo_id}`),
    state: 'OPEN',
    merge_commit: null,
    created_at: ctx.now,
    updated_at: ctx.now,
    merged_at: null,
  }
  await prStore(ctx.tx).insert(row)
  const { number, head, base, title } = row
  ctx.emit(prOpened({ subject: row.id, project: row.project_id, task: row.task_id }, { number, head, base, title }))
  return row
}

export function prView(row: PrRow, address: string): z.output<typeof PrView> {
  return {
    ...row,
    url: prUrl(row, address),
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
    merged_at: isoOrNull(row.merged_at),
  }
}

export async function pullRequestOf({ view }: Reading, task: string, address: string) {
  const row = await prStore(view).ofTask(task)
  return row && { id: row.id, number: row.number, state: row.state, url: prUrl(row, address) }
}

/** A pull request of ours is shown by the page of what it is about. */
export function prUrl(row: Pick<PrRow, 'task_id' | 'epic_id'>, address: string): string {
  return `${address}${row.task_id ? `/task/${row.task_id}` : `/epic/${row.epic_id}`}`
}

/** With what has landed its pull request is merged. */
export async function mergePr(ctx: RunContext, { task, commit }: MovedMerge): Promise<void> {
  const pr = commit === undefined ? undefined : await prStore(ctx.tx).ofTask(task.id)
  if (!pr || commit === undefined) return
  await prStore(ctx.tx).update(pr.id, { state: 'MERGED', merge_commit: commit, merged_at: ctx.now, updated_at: ctx.now })
  ctx.emit(prMerged({ subject: pr.id, project: pr.project_id, task: pr.task_id }, { number: pr.number, commit }))
}

/** Those whose pull requests into the same branch are open. What is in the line needs nobody: it is merged with what landed by itself. */
export async function askToRebase(ctx: RunContext, { merge: { repo_id, target }, task: landed }: MovedMerge): Promise<number> {
  const filter = { project: landed.project_id, statuses: AT_WORK, exclude: [landed.id] }
  const others = await taskStore(ctx.tx).list(filter, 'number', undefined, MOST_TOLD)
  const prs = await prStore(ctx.tx).ofTasks(others.map(({ id }) => id))
  const pending = new Set(prs.filter((pr) => pr.state === 'OPEN' && pr.repo_id === repo_id && pr.base === target).map((pr) => pr.task_id))
  for (const { task_id } of await mergeStore(ctx.tx).inLine(repo_id, target)) pending.delete(task_id)
  let sent = 0
  for (const task of others) {
    if (!task.assignee_id || isDuty(task) || !pending.has(task.id)) continue
    const body = `${handleOf(landed)} (${landed.title}) was merged into ${target}. Your work on ${handleOf(task)} began before that: merge or rebase onto ${lineRef(target)} before you go on, so that nothing of it conflicts.`
    const where = { project_id: task.project_id, epic_id: task.epic_id, task_id: task.id }
    await sendLetter(ctx, { from: 'system', to: task.assignee_id, subject: 'Rebase Required', body, about: where })
    sent++
  }
  return sent
}
