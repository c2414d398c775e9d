import type { z } from 'zod'
import { iso, isoOrNull } from '../../kernel/schema.ts'
import type { LookContext } from '../../kernel/tool.ts'
import { fromJson } from '../../kernel/unreadable.ts'
import { shownLimits } from './budget.ts'
import { jobOf } from './rules.ts'
import { isLiving, MICROS, type RunView } from './schema.ts'
import type { RunRow } from './store.ts'
import '../../ports/harness.ts'

export function runView(ctx: LookContext, run: RunRow): z.output<typeof RunView> {
  const { id, owner_kind, owner_id, task_id, agent_id, kind, harness, model, state, life, host, pid, turns, approvals } = run
  const { input_tokens, output_tokens, cached_tokens } = run
  const can = state === 'running' ? ctx.ports.harnesses.get(harness)?.can : undefined
  return {
    id,
    owner_kind,
    owner_id,
    job_id: jobOf(run),
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
