import { killRuns, runsSummary } from '../chaos/kill-runs.ts'
import { manySeeds } from './many-seeds.ts'

const AGENTS = 4

manySeeds('[F17] SIGKILL of daemon, runner and agent between start and report', {
  seeds: 200,
  strikes: 6,
  play: (seed, strikes) => killRuns(seed, strikes, AGENTS),
  summary: runsSummary,
})
