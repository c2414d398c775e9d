import { z } from 'zod'
import { defineCapability, setting } from '../../kernel/capability.ts'
import { whereabouts } from '../task/index.ts'
import { decide, submit } from './decide.ts'
import { followLine, workOffLine } from './effects.ts'
import { retry, status } from './line.ts'
import { migrations } from './migrations.ts'
import { createPr } from './pr-create.ts'
import { queue } from './queue.ts'
import { built, conflict, follows, hold, landed, red, stuck, withdrawn } from './reports.ts'
import {
  lineFollowed,
  lineFreed,
  lineHeld,
  mergeChecking,
  mergeConflicted,
  mergeLanded,
  mergeQueued,
  mergeRed,
  mergeStuck,
  mergeWithdrawn,
  reviewDecided,
} from './schema.ts'
import { mergeStore } from './store.ts'
import { syncRepo } from './sync.ts'

/** What becomes of work that was handed in: decisions about it, and the line in which it is merged. */
export const merge = defineCapability({
  name: 'merge',
  tools: [queue, decide, submit, createPr, status, retry, syncRepo, built, landed, conflict, red, stuck, withdrawn, hold, follows],
  migrations,
  events: [
    reviewDecided,
    mergeQueued,
    mergeChecking,
    mergeLanded,
    mergeConflicted,
    mergeRed,
    mergeStuck,
    mergeWithdrawn,
    lineHeld,
    lineFreed,
    lineFollowed,
  ],
  effects: [workOffLine, followLine],
  settings: {
    'merge.checks_minutes': setting(z.number().min(0.01).max(1_440), 30, 'How long the checks of a merge may take'),
  },
  things: [
    {
      kind: 'merge',
      async find(tx, ref) {
        const row = await mergeStore(tx).find(ref)
        return row && { id: row.id, within: await whereabouts(tx, row) }
      },
    },
  ],
})

export { reviewAttention } from './attention.ts'
export { toDecide } from './decide.ts'
export { back, isCurrent, isReviewerOf } from './rules.ts'
export { reviewDecided } from './schema.ts'
