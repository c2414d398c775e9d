import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { BASE_STRATEGIES, MERGE_METHODS } from '../../ports/git.ts'
import { needs } from '../need/index.ts'
import { belongings } from '../project/index.ts'
import { attention, taskEnds, whereabouts } from '../task/index.ts'
import { lineBegins, lineHead } from '../work/index.ts'
import { lineAttention } from './attention.ts'
import { cancel, withdrawEnded } from './cancel.ts'
import { dropCheckouts, followLine, linesOfRepo, workOffLine } from './effects.ts'
import { retry, status } from './line.ts'
import { migrations } from './migrations.ts'
import { linesToMend } from './needs.ts'
import { built, conflict, follows, hold, landed, red, stuck, withdrawn } from './reports.ts'
import {
  lineFollowed,
  lineFreed,
  lineHeld,
  lineMoved,
  mergeChecking,
  mergeConflicted,
  mergeLanded,
  mergeQueued,
  mergeRed,
  mergeStuck,
  mergeWithdrawn,
} from './schema.ts'
import { beginLine, foreign, lineHeadOf, passed, stands } from './stands.ts'
import { MERGE_STATES, mergeStore } from './store.ts'
import { syncRepo } from './sync.ts'

/** The line in which approved work is merged, and the branches that follow it. It knows no rounds and no pull requests. */
export const merge = defineCapability({
  name: 'merge',
  tools: [status, retry, cancel, syncRepo, built, passed, landed, conflict, red, stuck, withdrawn, hold, stands, foreign, follows],
  migrations,
  values: {
    merges: { state: MERGE_STATES, strategy: BASE_STRATEGIES, files: JSON_TEXT },
    lines: { strategy: BASE_STRATEGIES },
  },
  events: [
    mergeQueued,
    mergeChecking,
    mergeLanded,
    mergeConflicted,
    mergeRed,
    mergeStuck,
    mergeWithdrawn,
    lineHeld,
    lineFreed,
    lineMoved,
    lineFollowed,
  ],
  effects: [workOffLine, followLine, dropCheckouts],
  answers: [
    answer(attention, lineAttention, 'line'),
    answer(needs, linesToMend),
    answer(taskEnds, withdrawEnded),
    answer(belongings, linesOfRepo, 'lines'),
    answer(lineHead, lineHeadOf),
    answer(lineBegins, beginLine),
  ],
  settings: {
    'merge.method': setting(
      z.enum(MERGE_METHODS),
      'squash',
      'How approved work lands: as one commit, or as a merge that brings its own commits along',
    ),
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

export { withdraw } from './cancel.ts'
export { enterLine, followed } from './line.ts'
export { isOutdated, type MovedMerge, mayDecide, mergeMoves, overtaken } from './points.ts'
export { ENDS, lineHeld, mergeLanded, mergeStuck, mergeWithdrawn } from './schema.ts'
export { lineHeadOf, lineNow } from './stands.ts'
export { MERGE_STATES, type MergeRow, mergeStore } from './store.ts'
export { lineRef, placesOf, printed } from './words.ts'
