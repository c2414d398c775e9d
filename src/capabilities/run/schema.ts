import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { Timestamp } from '../../kernel/schema.ts'
import { APPROVALS } from '../../ports/harness.ts'
import { RunId } from '../ids.ts'

/** `starting`: its worktree and process are being made. `running`: its process is there. */
export const RUN_STATES = ['starting', 'running', 'ended'] as const
export type RunState = (typeof RUN_STATES)[number]
/** One in a state that nobody knows would otherwise hold its place for ever. */
export const LIVING_STATES: readonly RunState[] = ['starting', 'running']

export function isLiving({ state }: { state: RunState }): boolean {
  return LIVING_STATES.includes(state)
}

/** Money in millionths of a dollar, so that sums stay exact. */
export const MICROS = 1_000_000

const Amounts = {
  minutes: z.number().gt(0).max(100_000),
  turns: z.int().min(1).max(1_000_000),
  tokens: z.int().min(1).max(1_000_000_000_000),
  cost_usd: z.number().gt(0).max(1_000_000),
}

/** What a run may use. */
export const Limits = z.strictObject({
  minutes: Amounts.minutes.optional().describe('Wall clock'),
  turns: Amounts.turns.optional(),
  tokens: Amounts.tokens.optional().describe('Input and output together'),
  cost_usd: Amounts.cost_usd.optional(),
})

export const Budget = z.strictObject({
  minutes: Amounts.minutes.nullable().optional(),
  turns: Amounts.turns.nullable().optional(),
  tokens: Amounts.tokens.nullable().optional(),
  cost_usd: Amounts.cost_usd.nullable().optional(),
})

export const Amount = z.strictObject({ minutes: z.number(), turns: z.int(), tokens: z.int(), cost_usd: z.number() })

export const RunView = z.strictObject({
  id: RunId,
  owner_kind: z.string().describe('What the run is for, such as a job'),
  owner_id: z.string(),
  job_id: z.string().nullable(),
  task_id: z.string().nullable(),
  agent_id: z.string().nullable(),
  kind: z.enum(['agent', 'checks']),
  harness: z.string(),
  model: z.string().nullable(),
  state: z.enum(RUN_STATES),
  life: z.int(),
  host: z.string().nullable(),
  pid: z.int().nullable(),
  turns: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int().describe('Of the input, what the provider had kept'),
  cost_usd: z.number(),
  estimated: z.boolean().describe('The program does not report this itself'),
  limits: Limits,
  heard_at: Timestamp.describe('When it last printed something'),
  can_message: z.boolean(),
  can_interrupt: z.boolean(),
  paused: z.boolean().describe('It was interrupted, and waits to be told how to go on'),
  approvals: z.enum(APPROVALS).describe('What becomes of what it asks permission for'),
  resets_at: Timestamp.nullable().describe('When the provider gives more, if it refused'),
  outcome: z.string().nullable(),
  exit_code: z.int().nullable(),
  created_at: Timestamp,
  started_at: Timestamp.nullable(),
  ended_at: Timestamp.nullable(),
})

const OfRun = z.strictObject({ job_id: z.string().nullable() })
export const runStarted = defineEvent('run.started', OfRun.extend({ harness: z.string(), host: z.string() }))
export const runProgressed = defineEvent('run.progressed', OfRun.extend({ turns: z.int(), entries: z.int() }))
export const runInput = defineEvent('run.input', OfRun.extend({ from: z.string() }))
export const runStopping = defineEvent('run.stopping', OfRun.extend({ why: z.enum(['stopped', 'budget']) }))
export const runEnded = defineEvent('run.ended', OfRun.extend({ reason: z.string(), detail: z.string() }))
export const budgetSet = defineEvent('budget.set', Budget)

/** What happens to a run. */
export const RUN_EVENTS = [runStarted, runProgressed, runInput, runStopping, runEnded]
