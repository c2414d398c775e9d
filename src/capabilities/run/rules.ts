import type { RunContext } from '../../kernel/tool.ts'
import { stopRun } from './effects.ts'
import { runStopping } from './schema.ts'
import { type RunRow, runStore } from './store.ts'

export function aboutRun(run: RunRow) {
  return { subject: run.id, project: run.project_id, task: run.task_id }
}

/** For those who know jobs alone. */
export function jobOf({ owner_kind, owner_id }: Pick<RunRow, 'owner_kind' | 'owner_id'>): string | null {
  return owner_kind === 'job' ? owner_id : null
}

/** Tells a run to end. What was asked for first holds. */
export async function askToStop(ctx: RunContext, run: RunRow, why: 'stopped' | 'budget'): Promise<void> {
  if (run.state === 'ended' || run.stop_asked !== null) return
  await runStore(ctx.tx).update(run.id, { stop_asked: why })
  ctx.emit(runStopping(aboutRun(run), { job_id: jobOf(run), why }))
  // Behind its launch: who looks in between finds no process, and leaves the one that comes a moment later.
  ctx.enqueue(stopRun({ run_id: run.id, why }, { queue: run.id }))
}

/** How it has left the place where it ran: whoever runs there next can tell whether anything has changed. */
export async function rememberLeft(ctx: RunContext, { id }: RunRow, fingerprint: string): Promise<void> {
  await runStore(ctx.tx).update(id, { fingerprint })
}

/** It has done what it was started for, in this round. */
export async function rememberReported(ctx: RunContext, { id }: RunRow, round: number): Promise<void> {
  await runStore(ctx.tx).update(id, { reported: round })
}

/** It has used what it may. */
export async function endFor(ctx: RunContext, run: RunRow, reason: string): Promise<void> {
  if (run.stop_asked !== null) return
  await runStore(ctx.tx).update(run.id, { failure: reason })
  await askToStop(ctx, run, 'budget')
}
