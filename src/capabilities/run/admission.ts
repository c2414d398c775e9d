import { z } from 'zod'
import { definePoint } from '../../kernel/point.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import type { Approvals } from '../../ports/harness.ts'
import { takeTurn } from '../handle.ts'
import { approvalsFor } from './approvals.ts'
import type { Allowance } from './budget.ts'
import { launching } from './effects.ts'
import { type RunRow, runStore } from './store.ts'

const LOOKED_AT = 500
const MINUTE_MS = 60_000

/** Somebody who wants a run. */
export interface Waiting {
  owner: { kind: string; id: string }
  project_id: string
  priority: number
  created_at: number
  not_before: number
}

/** Those of one kind, in the order in which they begin. */
export const inLine = definePoint.all<(ctx: RunContext, limit: number) => Promise<Waiting[]>>('run.in_line')
/** Begins a run (`beginRun`). False when it cannot begin, now or ever. */
export const runBegins = definePoint.first<(ctx: RunContext, waiting: Waiting) => Promise<boolean | undefined>>(
  'run.begins',
  async () => false,
)

/**
 * Begins what may begin now: by priority, then first come, first served. A project without a free place does not hold up
 * the others. Nobody at work is ever put out for it. Two at once would each see the last place free. Returns when the next one's time comes.
 */
export async function admit(ctx: RunContext): Promise<number | undefined> {
  await takeTurn(ctx.tx, 'admission')
  const inOneProject = ctx.setting<number>('runs.max_per_project')
  const living = await runStore(ctx.tx).living()
  const places = ctx.setting<number>('runs.max_per_host') * (await runStore(ctx.tx).hosts())
  let free = places - [...living.values()].reduce((sum, n) => sum + n, 0)
  let later: number | undefined
  for (const waiting of inOneLine(await ctx.ask(inLine, LOOKED_AT))) {
    if (free <= 0) return undefined
    const { project_id, not_before } = waiting
    const inProject = living.get(project_id) ?? 0
    if (not_before > ctx.now) later = Math.min(later ?? not_before, not_before)
    if (not_before > ctx.now || inProject >= inOneProject) continue
    if (!(await ctx.ask(runBegins, waiting))) continue
    living.set(project_id, inProject + 1)
    free--
  }
  return later
}

/** Nobody passes another of its own kind: a clock that was set back says nothing about who came first. */
function* inOneLine(lines: Waiting[][]): Generator<Waiting> {
  const left = lines.map((line) => [...line])
  for (;;) {
    const heads = left.flatMap((line) => line[0] ?? [])
    const [first] = heads.sort((a, b) => b.priority - a.priority || a.created_at - b.created_at)
    if (!first) return
    left.find((line) => line[0] === first)?.shift()
    yield first
  }
}

export const admitNow = defineTool({
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  name: 'run_admit',
  title: 'Look at the line again',
  description: 'Something that waited for its time, or for a place, may begin.',
  input: z.strictObject({}),
  output: z.strictObject({}),
  later: 'job.admit',
  async run(ctx) {
    const later = await admit(ctx)
    // By the clock of the database it was time, by ours not quite.
    if (later !== undefined && later - ctx.now < MINUTE_MS) ctx.later(admitNow, {}, { delayMs: later - ctx.now + 1 })
    return {}
  },
})

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
