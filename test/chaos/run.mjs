// `npm run chaos`: kills the daemon under 16 writers, again and again; or daemon, runners and agents while agents work,
// review, lead an epic, or while work is merged.
//
//   npm run chaos                      a few new seeds of all
//   npm run chaos -- --only runs       only that one: writers, runs, review, epic or line
//   npm run chaos -- --seed 42         one seed again, as a failure printed it
//   npm run chaos -- --kills 30        more often than five times
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { seed: { type: 'string' }, kills: { type: 'string' }, only: { type: 'string' } } })
const root = fileURLToPath(new URL('../..', import.meta.url))
const env = {
  ...process.env,
  ...(values.seed ? { SIGNALBOX_SEED: values.seed } : {}),
  ...(values.kills ? { SIGNALBOX_KILLS: values.kills } : {}),
}
const suites = {
  writers: 'test/chaos/kill-daemon.test.ts',
  runs: 'test/chaos/kill-runs.test.ts',
  review: 'test/chaos/kill-review.test.ts',
  epic: 'test/chaos/kill-epic.test.ts',
  line: 'test/chaos/kill-line.test.ts',
}
const chosen = values.only ? [suites[values.only]] : Object.values(suites)
if (chosen.includes(undefined)) {
  console.error(`There is no suite "${values.only}"; there are ${Object.keys(suites).join(', ')}.`)
  process.exit(2)
}
const args = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'whole', ...chosen]
process.exitCode = spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).status ?? 1
