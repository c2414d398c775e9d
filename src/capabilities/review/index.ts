import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { handIn, handInNews, handIns, inReview } from '../job/index.ts'
import { isOutdated, mayDecide, mergeMoves } from '../merge/index.ts'
import { attention, taskSteps } from '../task/index.ts'
import { handedIn } from '../work/index.ts'
import { abandonWork } from './abandon.ts'
import { reviewAttention } from './attention.ts'
import { decide, submit } from './decide.ts'
import { deliverFeedback } from './deliver.ts'
import { feedback as giveFeedback } from './feedback.ts'
import { sent } from './feedback-sent.ts'
import { handInFor, handInsOf, whyWaiting } from './hand-ins.ts'
import { keepHandedIn } from './keep.ts'
import { migrations } from './migrations.ts'
import { hasNewerRound, mayDecideAbout, outcomeOf } from './outcome.ts'
import { queue } from './queue.ts'
import { watcher } from './reactor.ts'
import { rebased, rebaseOntoLine, rebaseWork } from './rebase.ts'
import { reconcileReview } from './reconcile.ts'
import { handedInOf } from './rules.ts'
import {
  ReviewView,
  reviewAbandoned,
  reviewDecided,
  reviewerEnded,
  reviewerStarted,
  reviewFeedback,
  reviewRebased,
  reviewRefused,
  reviewRequested,
  reviewTimedOut,
} from './schema.ts'
import { toReview } from './steps.ts'
import { DECISIONS, FEEDBACK_PRIORITIES, FEEDBACK_STATES, FEEDBACK_TYPES, READERS } from './store.ts'
import { timedOut } from './timeout.ts'
import { list, request } from './tools.ts'

/** Rounds: handing in work, who reads it, what they say and decide, and the end of what leads nowhere. */
export const review = defineCapability({
  name: 'review',
  tools: [
    request,
    list,
    queue,
    decide,
    submit,
    giveFeedback,
    rebaseWork,
    abandonWork,

    timedOut,
    rebased,
    sent,
    reconcileReview,
  ],
  migrations,
  values: {
    reviews: { decision: DECISIONS, outcome: ReviewView.shape.outcome.unwrap().options, reader: READERS },
    feedbacks: { feedback_type: FEEDBACK_TYPES, priority: FEEDBACK_PRIORITIES, state: FEEDBACK_STATES, actionable_items: JSON_TEXT },
  },
  events: [
    reviewRequested,
    reviewRefused,
    reviewTimedOut,
    reviewDecided,
    reviewRebased,
    reviewFeedback,
    reviewAbandoned,
    reviewerStarted,
    reviewerEnded,
  ],
  effects: [keepHandedIn, rebaseOntoLine, deliverFeedback],
  reactors: [watcher],
  answers: [
    answer(attention, reviewAttention, 'round'),
    answer(taskSteps, toReview, 'review'),
    answer(handedIn, handedInOf),
    answer(mergeMoves, outcomeOf),
    answer(mayDecide, mayDecideAbout),
    answer(isOutdated, hasNewerRound),
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
})

export { approve, headOf, toDecide } from './decide.ts'
export { isAtLimit } from './limit.ts'
export { givenUp, roundBegins } from './points.ts'
export { isCurrent } from './rules.ts'
export { reviewStore } from './store.ts'
export { requestReview, uncommitted } from './tools.ts'
