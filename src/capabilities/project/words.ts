import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { text } from '../../kernel/schema.ts'
import type { RepoFacts } from '../../ports/git.ts'
import type { RepoRow } from './store.ts'

export const RepoPath = text(1_000).regex(/^\//, 'must be an absolute path')

/** As git matches paths, from the top of the repository. */
export const Patterns = z
  .array(
    text(200).regex(/^(?![/:!])(?!.*(?:^|\/)\.\.(?:\/|$))/, 'must be a path or a pattern below the top of the repository'),
    'must be a list, such as [.env]',
  )
  .max(50)

/** The same words in both tools; null is for none. */
export const Registration = {
  checks: text(2_000).nullable().optional().describe('Command that must pass before work lands'),
  setup: text(2_000).nullable().optional().describe('Command that makes a fresh checkout ready, such as npm ci'),
  files: Patterns.nullable().optional().describe('Ignored files to copy from your checkout into worktrees, such as .env'),
  check_files: Patterns.nullable().optional().describe('The same, into checkouts for checks'),
  cleanup: text(2_000).nullable().optional().describe('Command that runs before a worktree is removed, and after checks'),
  dev: text(2_000).nullable().optional().describe('Command that starts the program in a worktree for a preview, such as npm run dev'),
}

/** As a row has a list of them. */
export function listText(patterns: string[] | null | undefined): string {
  return JSON.stringify(patterns ?? [])
}

export const Branch = text(200)
  .regex(/^(?![-/.])(?!.*(?:\.\.|@\{|\/\/|[\s~^:?*[\\]))[^\p{Cc}]+(?<!\/|\.|\.lock)$/u, 'not a branch name that git accepts')
  .describe('A branch name')

export function noWorkTree(path: string) {
  return refuse('INVALID_INPUT', `There is no git work tree at ${path}.`, {
    hint: 'Check the path; or make one there: git init, then a first commit.',
  })
}

export function noBranch({ top, branches }: RepoFacts, branch: string) {
  return refuse('INVALID_INPUT', `${top} has no branch "${branch}".`, { suggestions: branches.slice(0, 10) })
}

/** Of one that is registered, and was moved or deleted. */
export function gone({ handle, path }: Pick<RepoRow, 'handle' | 'path'>) {
  return refuse('RESOURCE_NOT_FOUND', `There is no git repository at ${path}.`, {
    hint: `If ${handle} was moved, give its new path with repo_update; if it is gone for good, unregister it with repo_remove.`,
    next_tool: 'repo_update',
    next_arguments: { repo_id: handle, path: '…' },
  })
}

export function alreadyThere({ path, handle }: Pick<RepoRow, 'path' | 'handle'>) {
  return refuse('ALREADY_EXISTS', `${path} is already registered as ${handle}.`, { next_tool: 'repo_list', next_arguments: {} })
}
