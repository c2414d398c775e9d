import { killLine, lineSummary } from '../chaos/kill-line.ts'
import { manySeeds } from './many-seeds.ts'

manySeeds('[F24] a merge line with SIGKILL of daemon and checks', {
  seeds: 200,
  strikes: 8,
  play: (seed, strikes) => killLine(seed, { strikes, tasks: 9 }),
  summary: lineSummary,
})
