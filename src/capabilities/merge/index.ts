import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { BASE_STRATEGIES, MERGE_METHODS } from '../../ports/git.ts'
import { needs } from '../need/index.ts'
import { belongings } from '../project/index.ts'
import { attention, taskEnds, taskSteps, whereabouts } from '../task/index.ts'
import { handedIn, lineBegins, lineHead } from '../work/index.ts'
import { reviewAttention } from './attention.ts'
import { cancel, withdrawEnded } from './cancel.ts'
import { decide, submit } from './decide.ts'
import { dropCheckouts, followLine, linesOfRepo, workOffLine } from './effects.ts'
import { retry, status } from './line.ts'
import { migrations } from './migrations.ts'
import { linesToMend } from './needs.ts'
import { createPr } from './pr-create.ts'
import { queue } from './queue.ts'
import { rebased, rebaseOntoLine, rebaseWork } from './rebase.ts'
import { built, conflict, follows, hold, landed, red, stuck, withdrawn } from './reports.ts'
import { handedInOf } from './rules.ts'
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
  reviewDecided,
  reviewRebased,
} from './schema.ts'
import { beginLine, foreign, lineHeadOf, passed, stands } from './stands.ts'
import { toReview } from './steps.ts'
import { MERGE_STATES, mergeStore } from './store.ts'
import { syncRepo } from './sync.ts'

/** What becomes of work that was handed in: decisions about it, and the line in which it is merged. */
export const merge = defineCapability({
  name: 'merge',
  tools: [
    queue,
    decide,
    submit,
    createPr,
    status,
    retry,
    cancel,
    syncRepo,
    rebaseWork,
    built,
    passed,
    landed,
    conflict,
    red,
    stuck,
    withdrawn,
    hold,
    stands,
    foreign,
    follows,
    rebased,
  ],
  migrations,
  values: {
    merges: { state: MERGE_STATES, strategy: BASE_STRATEGIES, files: JSON_TEXT },
    lines: { strategy: BASE_STRATEGIES },
  },
  events: [
    reviewDecided,
    reviewRebased,
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
  effects: [workOffLine, followLine, dropCheckouts, rebaseOntoLine],
  answers: [
    answer(attention, reviewAttention, 'line'),
    answer(taskSteps, toReview, 'review'),
    answer(needs, linesToMend),
    answer(taskEnds, withdrawEnded),
    answer(belongings, linesOfRepo, 'lines'),
    answer(handedIn, handedInOf),
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
export { toDecide } from './decide.ts'
export { back, checkMayDecide, isCurrent, isReviewerOf } from './rules.ts'
export { mergeStuck, mergeWithdrawn, reviewDecided } from './schema.ts'
