import { fileURLToPath } from 'node:url'
import { createGit, type GitOptions } from '../adapters/git-cli/index.ts'
import { startedBeside } from '../adapters/git-cli/starter.ts'
import type { Git } from '../ports/git.ts'

/** One for all tests of a worker: each would take as long to begin as twenty commands of git. */
const exec = startedBeside(fileURLToPath(new URL('../../dist/git-starter.js', import.meta.url)))

/** Real git, as the daemon has it. */
export function realGit(options: GitOptions): Git {
  return createGit({ exec, ...options })
}
