// Starts git for tests that wait for it: reads { cwd, args, env } as a line from one pipe, writes what came of it as a line into another.
import { spawnSync } from 'node:child_process'
import { openSync, readSync, writeSync } from 'node:fs'

const [asked, answered] = [openSync(process.argv[2], 'r'), openSync(process.argv[3], 'w')]
const chunk = Buffer.alloc(65_536)
for (let rest = ''; ; ) {
  const bytes = readSync(asked, chunk)
  // The worker has ended.
  if (!bytes) break
  rest += chunk.toString('latin1', 0, bytes)
  if (!rest.endsWith('\n')) continue
  const { cwd, args, env } = JSON.parse(Buffer.from(rest, 'latin1').toString())
  rest = ''
  const { status, stdout, stderr, error } = spawnSync('git', args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 2 ** 28 })
  const answer = Buffer.from(`${JSON.stringify({ status, stdout: `${stdout}`, stderr: `${stderr}`, error: error?.message })}\n`)
  for (let at = 0; at < answer.length; ) at += writeSync(answered, answer, at)
}
