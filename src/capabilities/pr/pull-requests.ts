import type { z } from 'zod'
import { iso, isoOrNull } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { Reading, RunContext } from '../../kernel/tool.ts'
import { nextNumber } from '../handle.ts'
import type { MovedMerge } from '../merge/index.ts'
import { handleOf, type TaskRow } from '../task/index.ts'
import { workOf } from '../work/index.ts'
import { type PrView, prClosed, prMerged, prOpened } from './schema.ts'
import { type PrRow, prStore } from './store.ts'

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

type Epic = { id: string; repo_id: string; project_id: string; branch: string; base_branch: string }

/** The one to the base branch; again when the epic is handed in again. */
export async function openEpicPr(ctx: RunContext, epic: Epic, said: { title: string; description: string }): Promise<PrRow> {
  const known = await prOfEpic(ctx.tx, epic.id)
  if (known) {
    const changes = { ...said, state: 'OPEN' as const, updated_at: ctx.now }
    await prStore(ctx.tx).update(known.id, changes)
    return { ...known, ...changes }
  }
  const { repo_id, project_id, branch: head, base_branch: base } = epic
  return insertPr(ctx, { ...said, repo_id, project_id, task_id: null, epic_id: epic.id, head, base, created_by: ctx.principal.id })
}

/** With the end of an epic its pull request ends too. */
export async function endEpicPr(ctx: RunContext, epic: string, merged: boolean): Promise<void> {
  const pr = await prOfEpic(ctx.tx, epic)
  if (pr?.state !== 'OPEN') return
  const ended = { state: merged ? 'MERGED' : 'CLOSED', merged_at: merged ? ctx.now : null, updated_at: ctx.now } as const
  await prStore(ctx.tx).update(pr.id, ended)
}

export const prOfEpic = (tx: Tx, epic: string) => prStore(tx).ofEpic(epic)

/** What was last merged into the branch of an epic. */
export const lastMergedInto = (tx: Tx, epic: string) => prStore(tx).lastMerged(epic)

type NewPr = Pick<PrRow, 'repo_id' | 'project_id' | 'task_id' | 'epic_id' | 'head' | 'base' | 'title' | 'description' | 'created_by'>

async function insertPr(ctx: RunContext, wanted: NewPr): Promise<PrRow> {
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

export async function pullRequestsOf({ view }: Reading, tasks: string[], address: string) {
  const rows = await prStore(view).ofTasks(tasks)
  return new Map(rows.map((row) => [row.task_id as string, { id: row.id, number: row.number, state: row.state, url: prUrl(row, address) }]))
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
