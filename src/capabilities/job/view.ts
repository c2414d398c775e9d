import type { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { iso, isoOrNull } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { LookContext } from '../../kernel/tool.ts'
import { fromJson } from '../../kernel/unreadable.ts'
import { shownLimits } from './budget.ts'
import { type JobArguments, jobHandle } from './rules.ts'
import { isLiving, type JobView, MICROS, type RunView } from './schema.ts'
import { type JobRow, jobStore, type RunRow } from './store.ts'
import '../../ports/harness.ts'

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

export function runView(ctx: LookContext, run: RunRow): z.output<typeof RunView> {
  const { id, job_id, task_id, agent_id, kind, harness, model, state, life, host, pid, turns, approvals } = run
  const { input_tokens, output_tokens, cached_tokens } = run
  const can = state === 'running' ? ctx.ports.harnesses.get(harness)?.can : undefined
  return {
    id,
    job_id,
    task_id,
    agent_id,
    kind,
    harness,
    model,
    state,
    life,
    host,
    pid,
    turns,
    input_tokens,
    output_tokens,
    cached_tokens,
    cost_usd: run.cost_micros / MICROS,
    estimated: run.estimated === 1,
    limits: fromJson(run.limits, shownLimits),
    heard_at: iso(run.heard_at),
    can_message: can?.message ?? false,
    can_interrupt: can?.interrupt ?? false,
    paused: isLiving(run) && run.paused === 1,
    approvals,
    resets_at: isoOrNull(run.resets_at),
    outcome: state === 'ended' ? (run.failure ?? run.exit_detail ?? run.exit_reason) : null,
    exit_code: run.exit_code,
    created_at: iso(run.created_at),
    started_at: isoOrNull(run.started_at),
    ended_at: isoOrNull(run.ended_at),
  }
}
