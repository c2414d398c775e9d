import type { RunContext } from '../../kernel/tool.ts'
import type { Approvals } from '../../ports/harness.ts'
import { approvalsFor } from './approvals.ts'
import type { Allowance } from './budget.ts'
import { launching } from './effects.ts'
import { type RunRow, runStore } from './store.ts'

export interface NewRun {
  owner: { kind: string; id: string }
  task_id: string | null
  project_id: string
  /** Null: a command, and nobody who acts. */
  agent_id: string | null
  harness: string
  model: string | null
  options: Record<string, unknown>
  approvals: Approvals | undefined
  allowed: Allowance
  /** What the program resumes by. */
  session: string | null
  life: number
}

/** It has a place from now on; its process comes after the commit. */
export async function beginRun(ctx: RunContext, wanted: NewRun): Promise<RunRow> {
  const { owner, options, approvals: _, allowed, ...rest } = wanted
  const row: RunRow = {
    ...rest,
    id: ctx.id('run'),
    owner_kind: owner.kind,
    owner_id: owner.id,
    token_id: null,
    kind: wanted.agent_id === null ? 'checks' : 'agent',
    options: JSON.stringify(options),
    approvals: approvalOf(ctx, wanted),
    host: null,
    state: 'starting',
    pid: null,
    process_started: null,
    boot: null,
    spool_offset: 0,
    step: 0,
    harness_state: '{}',
    inputs: 0,
    limits: JSON.stringify(allowed),
    turns: 0,
    input_tokens: 0,
    output_tokens: 0,
    cached_tokens: 0,
    cost_micros: 0,
    estimated: 0,
    open_calls: 0,
    paused: 0,
    heard_at: ctx.now,
    stop_asked: null,
    reported: 0,
    failure: null,
    resets_at: null,
    ok: null,
    exit_reason: null,
    exit_code: null,
    exit_signal: null,
    exit_detail: null,
    fingerprint: null,
    created_at: ctx.now,
    started_at: null,
    ended_at: null,
  }
  await runStore(ctx.tx).insert(row)
  ctx.enqueue(launching(row.id))
  return row
}

/** A question is about a task. */
function approvalOf(ctx: RunContext, { harness, approvals, task_id }: NewRun): Approvals {
  const wanted = approvalsFor(ctx, harness, approvals)
  return wanted === 'ask' && task_id === null ? 'deny' : wanted
}
