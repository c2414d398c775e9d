import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createGit, type GitOptions } from '../adapters/git-cli/index.ts'
import { startedBeside } from '../adapters/git-cli/starter.ts'
import type { Git } from '../ports/git.ts'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** One for all tests of a worker: each would take as long to begin as twenty commands of git. */
const exec = startedBeside(at('../../dist/git-starter.js'))

/** Real git, as the daemon has it: its own folder is beside that of the worktrees. */
export function realGit(options: Omit<GitOptions, 'own'>): Git {
  return createGit({ exec, own: join(dirname(options.worktrees), 'git'), ...options })
}

/**
 * What a git command of the test's own prints; throws when it fails. It is started by a small process, too: to fork a worker of vitest
 * takes three times as long as most of what git does.
 */
export function gitNow(cwd: string, args: string[], env: NodeJS.ProcessEnv = process.env): string {
  pipes ??= openPipes()
  const request = Buffer.from(`${JSON.stringify({ cwd, args: [...WITHOUT_UPKEEP, ...args], env })}\n`)
  for (let sent = 0; sent < request.length; ) sent += writeSync(pipes.asked, request, sent)
  const chunks: Buffer[] = []
  do chunks.push(readSome(pipes.answered))
  while (chunks.at(-1)?.at(-1) !== LINE_FEED)
  const { status, stdout, stderr, error } = JSON.parse(Buffer.concat(chunks).toString())
  if (status !== 0) throw new Error(`git ${args.join(' ')} in ${cwd}: ${error ?? stderr} (${status})`)
  return stdout
}

const LINE_FEED = 10
/** Each commit would start a second git that looks whether there is anything to tidy up. */
const WITHOUT_UPKEEP = ['-c', 'maintenance.auto=false']
let pipes: { asked: number; answered: number } | undefined

function openPipes() {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-git-now-'))
  const [asked, answered] = [join(folder, 'asked'), join(folder, 'answered')]
  execFileSync('mkfifo', [asked, answered])
  spawn(process.execPath, ['--max-semi-space-size=1', at('git-now.mjs'), asked, answered], {
    stdio: ['ignore', 'ignore', 'inherit'],
  }).unref()
  // Each waits for the other end; so both are open when the folder goes.
  const opened = { asked: openSync(asked, 'w'), answered: openSync(answered, 'r') }
  rmSync(folder, { recursive: true })
  return opened
}

function readSome(from: number): Buffer {
  const chunk = Buffer.alloc(65_536)
  const bytes = readSync(from, chunk)
  if (!bytes) throw new Error('the process that starts git for tests is gone')
  return chunk.subarray(0, bytes)
}
