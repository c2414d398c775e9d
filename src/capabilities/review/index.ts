import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { handIn, handInNews, handIns, inReview } from '../job/index.ts'
import { taskEnds } from '../task/index.ts'
import { workPullRequest } from '../work/index.ts'
import { handInFor, handInsOf, whyWaiting } from './hand-ins.ts'
import { keepHandedIn } from './keep.ts'
import { migrations } from './migrations.ts'
import { closePr, getPr, PrView, prClosed, prMerged, prOpened, pullRequestOf } from './pull-requests.ts'
import { ReviewView, reviewRefused, reviewRequested, reviewTimedOut } from './schema.ts'
import { DECISIONS, FEEDBACK_PRIORITIES, FEEDBACK_STATES, FEEDBACK_TYPES, prStore, READERS } from './store.ts'
import { timedOut } from './timeout.ts'
import { list, request } from './tools.ts'

export const review = defineCapability({
  name: 'review',
  tools: [request, list, getPr, timedOut],
  migrations,
  values: {
    reviews: { decision: DECISIONS, outcome: ReviewView.shape.outcome.unwrap().options, reader: READERS },
    pull_requests: { state: PrView.shape.state.options },
    feedbacks: { feedback_type: FEEDBACK_TYPES, priority: FEEDBACK_PRIORITIES, state: FEEDBACK_STATES, actionable_items: JSON_TEXT },
  },
  events: [reviewRequested, reviewRefused, reviewTimedOut, prOpened, prMerged, prClosed],
  effects: [keepHandedIn],
  answers: [
    answer(taskEnds, (ctx, task) => closePr(ctx, task, task.closed_reason ?? 'Its task is gone.')),
    answer(workPullRequest, pullRequestOf),
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

export { keepCommit } from './keep.ts'
export { isAtLimit, tally } from './limit.ts'
export { closePr, insertPr, openPr, PrView, prMerged, prUrl, prView } from './pull-requests.ts'
export { type ReviewerFacts, readerProgram, reviewerNews, roundReviewer } from './reviewer.ts'
export { beingMerged, isBeingMerged } from './rules.ts'
export { reviewRefused, reviewRequested, reviewTimedOut } from './schema.ts'
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
export { requestReview, UNDECIDED, uncommitted } from './tools.ts'
