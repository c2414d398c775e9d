import { defineCapability } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { jobEnded, runStarted } from '../job/index.ts'
import { reviewDecided, reviewerNews, roundReviewer } from '../review/index.ts'
import { attention } from '../task/index.ts'
import { abandonWork } from './abandon.ts'
import { feedbackAttention } from './attention.ts'
import { deliverFeedback } from './effects.ts'
import { watcher } from './reactor.ts'
import { reconcileReview } from './reconcile.ts'
import { sent } from './reports.ts'
import { reviewerFacts } from './reviewer.ts'
import { reviewAbandoned, reviewerEnded, reviewerStarted, reviewFeedback } from './schema.ts'
import { feedback as giveFeedback } from './tools.ts'

/** After these a reviewer may be there, or is not coming any more. */
const NEWS = [reviewerStarted, reviewerEnded, reviewAbandoned, reviewDecided, runStarted, jobEnded]

/** What comes back from a review: who reads the work, what they say about it, and the end of what leads nowhere. */
export const feedback = defineCapability({
  name: 'feedback',
  tools: [giveFeedback, abandonWork, sent, reconcileReview],
  events: [reviewFeedback, reviewAbandoned, reviewerStarted, reviewerEnded],
  effects: [deliverFeedback],
  reactors: [watcher],
  answers: [answer(attention, feedbackAttention, 'round'), answer(roundReviewer, reviewerFacts), answer(reviewerNews, async () => NEWS)],
})
