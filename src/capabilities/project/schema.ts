import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { iso, Timestamp } from '../../kernel/schema.ts'
import { ProjectId, RepoId } from '../ids.ts'
import { CONFIG, Needs } from './config.ts'
import type { ProjectRow, RepoRow } from './store.ts'

export const ProjectView = z.strictObject({
  id: ProjectId,
  handle: z.string(),
  name: z.string(),
  description: z.string(),
  created_at: Timestamp,
  updated_at: Timestamp,
})

export const RepoView = z.strictObject({
  id: RepoId,
  handle: z.string(),
  project_id: z.string(),
  path: z.string(),
  base_branch: z.string(),
  remote: z.string().nullable(),
  checks: z.string().nullable(),
  setup: z.string().nullable().describe('Makes a fresh checkout ready: runs before an agent begins, and before checks'),
  files: z.array(z.string()).describe('Ignored files that are copied from your checkout into worktrees'),
  check_files: z.array(z.string()).describe('The same, into checkouts for checks'),
  cleanup: z.string().nullable().describe('Runs before a worktree is removed, and after checks'),
  dev: z.string().nullable().describe('Starts the program in a worktree for a preview'),
  head: z.string().nullable(),
  synced_at: Timestamp,
  created_at: Timestamp,
})

export const ProposalView = z.strictObject({
  ...Needs.shape,
  because: z.array(z.string()).describe('The files that suggest it'),
  problem: z.string().nullable().describe(`Why ${CONFIG} was not read`),
})

export const projectCreated = defineEvent('project.created', z.strictObject({ handle: z.string(), name: z.string() }))
export const repoAdded = defineEvent('repo.added', z.strictObject({ handle: z.string(), path: z.string(), base_branch: z.string() }))
export const projectDeleted = defineEvent('project.deleted', z.strictObject({ handle: z.string(), name: z.string() }))
export const repoRemoved = defineEvent('repo.removed', z.strictObject({ handle: z.string(), path: z.string() }))
/** Told when its worktrees have found it again, or why they have not. */
export const repoMoved = defineEvent(
  'repo.moved',
  z.strictObject({ from: z.string(), path: z.string(), request: z.string(), problem: z.string().nullable() }),
)
export const repoSynced = defineEvent('repo.synced', z.strictObject({ head: z.string().nullable(), remote: z.string().nullable() }))

export const repoUpdated = defineEvent(
  'repo.updated',
  z.strictObject({ base_branch: z.string(), checks: z.string().nullable(), setup: z.string().nullable() }),
)

export function projectView({ deleted_at: _, ...row }: ProjectRow): z.output<typeof ProjectView> {
  return { ...row, created_at: iso(row.created_at), updated_at: iso(row.updated_at) }
}

export function repoView({ removed_from: _, ...row }: RepoRow): z.output<typeof RepoView> {
  const [files, check_files] = [row.files, row.check_files].map((list) => JSON.parse(list) as string[]) as [string[], string[]]
  return { ...row, files, check_files, synced_at: iso(row.synced_at), created_at: iso(row.created_at) }
}
