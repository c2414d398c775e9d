import type { z } from 'zod'
import type { EffectContext } from '../../kernel/effect.ts'
import { iso, isoOrNull } from '../../kernel/schema.ts'
import { handleOf, type TaskRow } from '../task/index.ts'
import type { PreviewView } from './schema.ts'
import type { PreviewRow } from './store.ts'

export const HOURS = 'preview.hours'
export const MINUTES = 'preview.answer_minutes'

export function aboutPreview(row: PreviewRow) {
  return { subject: row.id, project: row.project_id, task: row.task_id }
}

export function urlOf({ state, port }: PreviewRow): string | null {
  return state === 'ready' && port !== null ? addressOf(port) : null
}

/** By its name: a program may listen on one kind of address only. */
export function addressOf(port: number): string {
  return `http://localhost:${port}/`
}

export function isElsewhere({ ports: { daemon } }: Pick<EffectContext, 'ports'>, { host }: PreviewRow): boolean {
  return host !== null && host !== daemon.host
}

export function previewView(row: PreviewRow, task: Pick<TaskRow, 'number'>): z.output<typeof PreviewView> {
  const { id, task_id, state, command, host, reason, started_by } = row
  return {
    id,
    task_id,
    handle: handleOf(task as TaskRow),
    state,
    url: urlOf(row),
    command,
    host,
    reason,
    started_by,
    started_at: iso(row.started_at),
    ended_at: isoOrNull(row.ended_at),
  }
}
