import type { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { iso, isoOrNull } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import { fromJson } from '../../kernel/unreadable.ts'
import { type JobArguments, jobHandle } from './rules.ts'
import type { JobView } from './schema.ts'
import { type JobRow, jobStore } from './store.ts'

export async function requireJob(view: Tx, id: string): Promise<JobRow> {
  const job = await jobStore(view).find(id)
  if (!job) throw refuse('RESOURCE_NOT_FOUND', `There is no job "${id}".`, { next_tool: 'job_list', next_arguments: {} })
  return job
}

export async function jobView(view: Tx, job: JobRow, now: number): Promise<z.output<typeof JobView>> {
  const { id, task_id, action, state, run_id, lives, submitted_by } = job
  const pending = state === 'queued'
  return {
    id,
    handle: jobHandle(job),
    task_id,
    action,
    harness: fromJson(job.arguments, ({ harness }: JobArguments) => harness ?? null),
    state,
    code: pending ? 'START_PENDING' : job.code,
    reason: pending ? (job.reason ?? 'It waits for a free place.') : job.reason,
    position: pending ? (await jobStore(view).inLine(1_000)).findIndex((other) => other.id === id) + 1 || null : null,
    run_id,
    lives,
    cancel_requested: job.cancel_asked_at !== null,
    submitted_by,
    not_before: pending && job.not_before > now ? iso(job.not_before) : null,
    created_at: iso(job.created_at),
    started_at: isoOrNull(job.started_at),
    ended_at: isoOrNull(job.ended_at),
  }
}
