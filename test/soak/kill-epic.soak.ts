import { epicSummary, killEpic } from '../chaos/kill-epic.ts'
import { manySeeds } from './many-seeds.ts'

manySeeds('[EP15] an epic of twelve tasks and four workers, killed over and over', {
  seeds: 20,
  strikes: 20,
  play: (seed, strikes) => killEpic(seed, { strikes, tasks: 12, workers: 4 }),
  summary: epicSummary,
})
