import { killReview, reviewSummary } from '../chaos/kill-review.ts'
import { manySeeds } from './many-seeds.ts'

manySeeds('[F17] [F24] SIGKILL of daemon, runner and agent between start, review, feedback and merge', {
  seeds: 200,
  strikes: 8,
  play: (seed, strikes) => killReview(seed, { strikes, tasks: 3 }),
  summary: reviewSummary,
})
