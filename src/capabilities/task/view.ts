import type { z } from 'zod'
import { iso } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { Reading } from '../../kernel/tool.ts'
import { fromJson } from '../../kernel/unreadable.ts'
import type { Step } from '../need/index.ts'
import { type Attended, attended } from './attention.ts'
import { type Blocker, handleOf, isOpen } from './rules.ts'
import { type Attention, type NoteView, PRIORITIES, type Status, type TaskSummary, type TaskView } from './schema.ts'
import { type NoteRow, type TaskRow, taskStore } from './store.ts'

const SHOWN_NOTES = 20

export async function summaries(ctx: Reading, rows: TaskRow[]): Promise<z.output<typeof TaskSummary>[]> {
  const blockers = await taskStore(ctx.view).blockers(rows.map((row) => row.id))
  const told = await attended(ctx, rows)
  return rows.map((row) =>
    summary(
      row,
      blockers.filter((b) => b.task_id === row.id),
      told.get(row.id),
    ),
  )
}

export async function fullView(ctx: Reading, row: TaskRow, notes = SHOWN_NOTES): Promise<z.output<typeof TaskView>> {
  const store = taskStore(ctx.view)
  const [{ blockers, dependents }, shown, told] = await Promise.all([
    store.neighbours(row.id),
    notes ? store.notes(row.id, notes) : [],
    attended(ctx, [row]),
  ])
  // Fewer than were asked for are all there are.
  const count = shown.length < notes ? shown.length : await store.countNotes(row.id)
  return {
    ...freshView(row, blockers, told.get(row.id)),
    dependents: dependents.map(reference),
    notes: shown.map(noteView),
    note_count: count,
  }
}

/** Of a task that was made just now: nobody can have written about it or wait for it yet. */
export function freshView(row: TaskRow, blockers: Blocker[], told?: Attended): z.output<typeof TaskView> {
  return {
    ...summary(row, blockers, told),
    description: row.description,
    acceptance_criteria: fromJson<string[]>(row.acceptance_criteria),
    base_branch: row.base_branch,
    closed_reason: row.closed_reason,
    created_by: row.created_by,
    dependencies: blockers.map(reference),
    dependents: [],
    notes: [],
    note_count: 0,
  }
}

export function noteView(row: NoteRow): z.output<typeof NoteView> {
  return { id: row.id, author: row.author, body: row.body, at: iso(row.at) }
}

function summary(row: TaskRow, blockers: Blocker[], told: Attended | undefined): z.output<typeof TaskSummary> {
  const open = blockers.filter(isOpen)
  return {
    id: row.id,
    handle: handleOf(row),
    project_id: row.project_id,
    title: row.title,
    status: row.status,
    task_type: row.task_type,
    priority: PRIORITIES[row.priority] ?? 'medium',
    assignee_id: row.assignee_id,
    parent_id: row.parent_id,
    epic_id: row.epic_id,
    lead: row.lead === 1,
    blocked_by: open.map(handleOf),
    ...attentionOf(row, open.length > 0, told),
    version: row.version,
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}

/** An open task for which nothing moves next would be a bug: everything else falls to the human. */
export function attentionOf(row: TaskRow, blocked: boolean, told: Attended | undefined) {
  const what = (
    attention: z.output<typeof Attention>,
    detail: string | null = null,
  ): { attention: z.output<typeof Attention>; attention_detail: string | null; attention_steps?: Step[] } => ({
    attention,
    attention_detail: detail,
  })
  if (row.status === 'DONE') return what(null)
  if (told) return { ...what(told.attention, told.detail), ...(told.steps ? { attention_steps: told.steps } : {}) }
  if (blocked) return what('dependency')
  return what(row.status === 'IN_PROGRESS' && row.assignee_id ? 'running' : 'human')
}

/** Those that wait for others. */
export async function openBlockers(view: Tx, rows: TaskRow[]): Promise<Set<string>> {
  const blockers = await taskStore(view).blockers(rows.map((row) => row.id))
  return new Set(blockers.filter(isOpen).map(({ task_id }) => task_id))
}

function reference(row: { id: string; number: number; status: Status }) {
  return { id: row.id, handle: handleOf(row), status: row.status }
}
