import { definePoint } from '../../kernel/point.ts'
import type { RunContext } from '../../kernel/tool.ts'
import type { TaskRow } from '../task/index.ts'

// A pull request knows the rounds, not the other way round.

export interface BegunRound {
  summary: string
  by: string
  /** Where who handed it in has named it. */
  title?: string
}

/** In the transaction in which work is handed in. */
export const roundBegins = definePoint.all<(ctx: RunContext, task: TaskRow, round: BegunRound) => Promise<void>>('review.round_begins')

/** In the transaction in which the work on a task is given up. */
export const givenUp = definePoint.all<(ctx: RunContext, task: TaskRow, reason: string) => Promise<void>>('review.given_up')
