import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import { NotHere } from '../../kernel/error.ts'
import type { RunContext } from '../../kernel/tool.ts'
import { logOf } from '../command.ts'
import { environmentOfWork, leaseOfWork, makeReady } from '../setup/index.ts'
import { Elsewhere, makeWorktree, placeOf, type WorkRow, workOf, workPlan } from '../work/index.ts'
import { addressOf, HOURS, isElsewhere } from './rules.ts'
import { type PreviewRow, previewStore } from './store.ts'
import '../../ports/listeners.ts'
import '../../ports/runner.ts'
import { ended as previewEnded, started as previewStarted } from './reports.ts'

const ofPreview = z.strictObject({ preview_id: z.string() })

/** A busy repository may be free at the third attempt. */
const FAILS_BEFORE_GIVING_UP = 3
/** Daemons that are killed in the middle of it do not count. */
const MANY = 100
export const GRACE_MS = 3_000
const HOUR_MS = 3_600_000
const OUTPUT_BYTES = 1_024 * 1_024 * 1_024

export const launchPreview = defineEffect({
  type: 'preview.start',
  payload: ofPreview,
  attempts: MANY,
  // Its process is known by the row.
  async do(ctx, { preview_id }) {
    try {
      await launch(ctx, preview_id)
    } catch (error) {
      // The daemon that has the worktree takes it at one of the next attempts.
      if (error instanceof Elsewhere || ctx.attempt < FAILS_BEFORE_GIVING_UP || ctx.signal.aborted) throw error
      await notStarted(ctx, preview_id, `It could not be started: ${(error as Error).message}`)
    }
  },
})

async function notStarted(ctx: EffectContext, preview_id: string, reason: string): Promise<void> {
  await ctx.report(previewEnded, { preview_id, state: 'failed', reason: reason.slice(0, 4_000), log: null })
}

/** As it waits for the setup of its worktree. */
export const launching = (preview_id: string) => launchPreview({ preview_id }, { queue: preview_id })

async function launch(ctx: EffectContext, preview_id: string): Promise<void> {
  const row = await previewStore(ctx.view).find(preview_id)
  if (row?.state !== 'starting' || row.stop_asked_at !== null) return
  const work = await workOf(ctx.view, row.task_id)
  if (work?.state !== 'made') return notStarted(ctx, row.id, 'Its worktree was taken away.')
  await placeOf(ctx, work)
  const place = await makeWorktree(ctx, await workPlan(ctx, work))
  const ready = await makeReady(ctx, { work, place, by: row.id, next: launching(row.id) })
  if (ready === 'later') return
  if (ready !== 'ready') return notStarted(ctx, row.id, ready.problem)
  await begin(ctx, row, work, place)
}

async function begin(ctx: EffectContext, row: PreviewRow, work: WorkRow, place: { path: string; repo: string }): Promise<void> {
  const { runner, listeners, daemon } = ctx.ports
  const { port: first_port, ports } = await leaseOfWork(ctx, work)
  const last_port = first_port + ports - 1
  const { state } = await runner.look(row.id)
  if (state === 'absent' || state === 'prepared') {
    // Its answer would be taken for that of the preview.
    const taken = await listeners.answering(between(first_port, last_port))
    if (taken !== undefined) return notStarted(ctx, row.id, takenPort(taken))
    await runner.start(row.id, {
      argv: ['/bin/sh', '-c', row.command],
      cwd: place.path,
      repo: place.repo,
      env: { PORT: String(first_port), BROWSER: 'none', ...(await environmentOfWork(ctx, work)) },
      inherit: [],
      // At the end of their input, several of these programs end themselves.
      stdin: 'open',
      wallClockMs: (await ctx.setting<number>(HOURS)) * HOUR_MS,
      outputBytes: OUTPUT_BYTES,
      graceMs: GRACE_MS,
    })
  }
  await ctx.report(previewStarted, { preview_id: row.id, host: daemon.host, first_port, last_port })
}

function takenPort(port: number): string {
  return `A program answers on port ${port} already, which belongs to this worktree. Perhaps its agent has started it: look at ${addressOf(port)}, or end it and start the preview again.`
}

export function between(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
}

/** Ends the whole tree. Also of one that is over: what it left behind goes too. */
export const stopPreview = defineEffect({
  type: 'preview.stop',
  payload: ofPreview,
  attempts: MANY,
  async do(ctx, { preview_id }) {
    const row = await previewStore(ctx.view).find(preview_id)
    if (row) await end(ctx, row, 'It was stopped.')
  },
})

/** What was asked for first holds. The end itself is told by what ends it. */
export async function askToStop(ctx: RunContext, task: string): Promise<PreviewRow | undefined> {
  const row = await previewStore(ctx.tx).livingOf(task)
  if (!row) return undefined
  if (row.stop_asked_at === null) await previewStore(ctx.tx).update(row.id, { stop_asked_at: ctx.now })
  ctx.enqueue(stopPreview({ preview_id: row.id }, { queue: row.id }))
  return row
}

async function end(ctx: EffectContext, row: PreviewRow, reason: string): Promise<void> {
  if (isElsewhere(ctx, row)) throw new NotHere('That preview', row.host as string)
  await ctx.ports.runner.stop(row.id, 'stopped', GRACE_MS)
  const { log } = await logOf(ctx, row.id, { waitMs: 0 })
  await ctx.report(previewEnded, { preview_id: row.id, state: 'ended', reason, log })
  await ctx.ports.runner.forget(row.id)
}

/** Nobody looks at a worktree that is taken away. */
export async function endPreviewOf(ctx: EffectContext, work: WorkRow): Promise<void> {
  const row = await previewStore(ctx.view).livingOf(work.task_id)
  if (row) await end(ctx, row, 'Its worktree was taken away.')
}
