import type { Refusal } from '../../kernel/error.ts'
import { definePoint } from '../../kernel/point.ts'
import type { Reading, RunContext } from '../../kernel/tool.ts'
import type { TaskRow } from '../task/index.ts'
import type { MergeRow } from './store.ts'

// Whoever has work merged knows the line, not the other way round.

export interface MovedMerge {
  /** As it is now: `state`, `reason`, `files` and `log` say what became of it. */
  merge: MergeRow
  task: TaskRow
  /** Of what has landed: where it is, also when it was there already. */
  commit?: string
}

/** In the transaction in which a merge is over (landed, conflict, red, stuck, withdrawn), or waits once more. */
export const mergeMoves = definePoint.all<(ctx: RunContext, moved: MovedMerge) => Promise<void>>('merge.moves')

/** Tells those whose work began before this landed; how many were told. */
export const overtaken = definePoint.one<(ctx: RunContext, landed: MovedMerge) => Promise<number>>('merge.overtaken', async () => 0)

/** Why the caller may neither take it out nor put it back. */
export const mayDecide = definePoint.one<(ctx: RunContext, task: TaskRow, merge: MergeRow) => Promise<Refusal | undefined>>(
  'merge.may_decide',
  async () => undefined,
)

/** Whether other work on the same task was handed in since: then nobody wants this commit any more. */
export const isOutdated = definePoint.one<(ctx: Reading, merge: MergeRow) => Promise<boolean>>('merge.is_outdated', async () => false)
