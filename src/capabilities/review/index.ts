import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { handIn, handInNews, handIns, inReview } from '../job/index.ts'
import { isOutdated, mayDecide, mergeMoves, overtaken, summaryOf } from '../merge/index.ts'
import { attention, taskEnds } from '../task/index.ts'
import { handedIn, workPullRequest } from '../work/index.ts'
import { reviewAttention } from './attention.ts'
import { decide, submit } from './decide.ts'
import { handInFor, handInsOf, whyWaiting } from './hand-ins.ts'
import { keepHandedIn } from './keep.ts'
import { migrations } from './migrations.ts'
import { hasNewerRound, mayDecideAbout, outcomeOf, summaryFor } from './outcome.ts'
import { createPr } from './pr-create.ts'
import { askToRebase, closePr, getPr, mergePr, PrView, prClosed, prMerged, prOpened, pullRequestOf } from './pull-requests.ts'
import { queue } from './queue.ts'
import { rebased, rebaseOntoLine, rebaseWork } from './rebase.ts'
import { handedInOf } from './rules.ts'
import { ReviewView, reviewDecided, reviewRebased, reviewRefused, reviewRequested, reviewTimedOut } from './schema.ts'
import { DECISIONS, FEEDBACK_PRIORITIES, FEEDBACK_STATES, FEEDBACK_TYPES, prStore, READERS } from './store.ts'
import { timedOut } from './timeout.ts'
import { list, request } from './tools.ts'

export const review = defineCapability({
  name: 'review',
  tools: [request, list, queue, decide, submit, rebaseWork, getPr, createPr, timedOut, rebased],
  migrations,
  values: {
    reviews: { decision: DECISIONS, outcome: ReviewView.shape.outcome.unwrap().options, reader: READERS },
    pull_requests: { state: PrView.shape.state.options },
    feedbacks: { feedback_type: FEEDBACK_TYPES, priority: FEEDBACK_PRIORITIES, state: FEEDBACK_STATES, actionable_items: JSON_TEXT },
  },
  events: [reviewRequested, reviewRefused, reviewTimedOut, reviewDecided, reviewRebased, prOpened, prMerged, prClosed],
  effects: [keepHandedIn, rebaseOntoLine],
  answers: [
    answer(taskEnds, (ctx, task) => closePr(ctx, task, task.closed_reason ?? 'Its task is gone.')),
    answer(workPullRequest, pullRequestOf),
    answer(attention, reviewAttention, 'round'),
    answer(handedIn, handedInOf),
    answer(mergeMoves, outcomeOf),
    answer(mergeMoves, mergePr),
    answer(overtaken, askToRebase),
    answer(mayDecide, mayDecideAbout),
    answer(isOutdated, hasNewerRound),
    answer(summaryOf, summaryFor),
    answer(handIns, handInsOf),
    answer(handInNews, async () => [reviewRequested]),
    answer(handIn, handInFor),
    answer(inReview, whyWaiting),
  ],
  settings: {
    'review.max_iterations': setting(z.int().min(1).max(1_000), 3, 'How many rounds of review a task may have'),
    'review.auto_abandon_after': setting(
      z.int().min(1).max(1_000),
      5,
      'After how many failed rounds and refused requests together the work on a task is given up',
    ),
    'review.timeout_hours': setting(z.number().min(0.0001).max(8_760), 24, 'How long a round may stay undecided'),
    'review.harness': setting(
      z.string().max(40),
      '',
      'Which agent program reviews what is handed in; empty: none is started, a supervisor or a person decides',
    ),
    'review.model': setting(z.string().max(100), '', 'Which model that program uses; empty: its own'),
  },
  things: [
    {
      kind: 'pr',
      async find(tx, ref) {
        const row = await prStore(tx).find(ref)
        if (!row) return undefined
        const { id, project_id, task_id, epic_id } = row
        return { id, within: { project: project_id, ...(task_id ? { task: task_id } : {}), ...(epic_id ? { epic: epic_id } : {}) } }
      },
    },
  ],
})

export { toDecide } from './decide.ts'
export { keepCommit } from './keep.ts'
export { isAtLimit, tally } from './limit.ts'
export { closePr, insertPr, openPr, PrView, prMerged, prUrl, prView } from './pull-requests.ts'
export { type ReviewerFacts, readerProgram, reviewerNews, roundReviewer } from './reviewer.ts'
export { back, beingMerged, checkMayDecide, isBeingMerged, isCurrent, isReviewerOf } from './rules.ts'
export { reviewDecided, reviewRefused, reviewRequested, reviewTimedOut } from './schema.ts'
export {
  FEEDBACK_PRIORITIES,
  FEEDBACK_STATES,
  FEEDBACK_TYPES,
  type FeedbackRow,
  feedbackStore,
  type PrRow,
  prStore,
  type ReviewRow,
  reviewStore,
} from './store.ts'
export { requestReview, uncommitted } from './tools.ts'
