import { spawnSync } from 'node:child_process'

/** Tests that start the real daemon run dist: a stale one would test yesterday's code. */
export function setup(): void {
  const { status } = spawnSync(process.execPath, ['scripts/bootstrap.mjs', '--built'], { stdio: 'inherit' })
  const anEntryIsMissing = 3
  if (status !== 0 && status !== anEntryIsMissing) throw new Error('dist could not be built; the error is above')
}
