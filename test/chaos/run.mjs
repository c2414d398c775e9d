// `npm run chaos`: kills the daemon under 16 writers, again and again.
//
//   npm run chaos                      a new seed
//   npm run chaos -- --seed 42         one seed again, as a failure printed it
//   npm run chaos -- --kills 30        more often than five times
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { seed: { type: 'string' }, kills: { type: 'string' } } })
const root = fileURLToPath(new URL('../..', import.meta.url))
const env = {
  ...process.env,
  ...(values.seed ? { SIGNALBOX_SEED: values.seed } : {}),
  ...(values.kills ? { SIGNALBOX_KILLS: values.kills } : {}),
}
const args = ['node_modules/vitest/vitest.mjs', 'run', 'test/chaos/kill-daemon.test.ts']
process.exitCode = spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).status ?? 1
