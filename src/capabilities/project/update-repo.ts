import { z } from 'zod'
import { defineEffect } from '../../kernel/effect.ts'
import { type Refusal, refuse } from '../../kernel/error.ts'
import { defineTool, type LookContext, type RunContext, type WatchContext } from '../../kernel/tool.ts'
import { GitRefusal, type RepoFacts } from '../../ports/git.ts'
import { RepoId } from '../ids.ts'
import { watchUntil } from '../until.ts'
import { RepoView, repoMoved, repoUpdated, repoView } from './schema.ts'
import { projectStore, type RepoRow } from './store.ts'
import { alreadyThere, Branch, gone, listText, noBranch, noWorkTree, Registration, RepoPath } from './words.ts'

const ATTEMPTS = 5
const MOVE_MS = 60_000

const Wanted = z.strictObject({
  repo_id: RepoId,
  path: RepoPath.optional().describe('Where it is now, when it was moved'),
  ...Registration,
  base_branch: Branch.optional(),
})

export const updateRepo = defineTool({
  name: 'repo_update',
  title: 'Change a repository',
  description:
    'Change the commands, the copied files, the base branch or the path of a repository; null takes a command or the files away.',
  input: Wanted,
  output: z.strictObject({ repo: RepoView, message: z.string() }),
  example: { repo_id: 'web-shop', checks: 'npm test' },
  impact: 'write',
  profile: 'maintainer',
  by: 'person',
  async prepare(ctx, { repo_id, path, base_branch }): Promise<Seen | Refusal> {
    const row = await projectStore(ctx.view).repo(repo_id)
    if (!row || (path === undefined && base_branch === undefined)) return {}
    const facts = await ctx.ports.git.inspect(path ?? row.path)
    if (!facts) return path === undefined ? gone(row) : noWorkTree(path)
    const base = base_branch ?? row.base_branch
    return (
      (path === undefined ? undefined : await notMoved(ctx, row, facts)) ??
      (facts.branches.includes(base) ? { facts } : noBranch(facts, base))
    )
  },
  async run(ctx: RunContext, { repo_id, ...fields }: z.output<typeof Wanted>, { facts }: Seen = {}) {
    const store = projectStore(ctx.tx)
    const before = await store.repo(repo_id)
    if (!before) return refuse('RESOURCE_NOT_FOUND', 'That repository is gone.')
    const given = Object.fromEntries(
      Object.entries(fields).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, isList(name) ? listText(value as string[] | null) : value]],
      ),
    ) as Partial<RepoRow>
    if (!Object.keys(given).length)
      return refuse('INVALID_INPUT', 'Nothing to change: give checks, setup, cleanup, dev, files, check_files, base_branch or path.')
    const path = fields.path !== undefined && facts ? facts.top : before.path
    const known = path === before.path ? undefined : await store.repoAt(path)
    if (known) return alreadyThere(known)
    const after: RepoRow = { ...before, ...given, path }
    await store.updateRepo(before.id, { ...given, path })
    const about = { subject: before.id, project: before.project_id }
    ctx.emit(repoUpdated(about, { base_branch: after.base_branch, checks: after.checks, setup: after.setup }))
    const request = path === before.path ? null : ctx.id('move')
    // In the line of its worktrees: what is made or taken away there comes after it.
    if (request) ctx.enqueue(moveRepo({ repo_id: before.id, from: before.path, path, request }, { queue: before.id }))
    return { repo_id: before.id, request }
  },
  watch: (ctx, _input, begun: { repo_id: string; request: string | null }) => changed(ctx, begun),
})

const isList = (name: string) => name === 'files' || name === 'check_files'

interface Seen {
  facts?: RepoFacts
}

/** A clone beside it, or another repository, has none of the work that belongs to it. */
async function notMoved(ctx: LookContext, row: RepoRow, facts: RepoFacts): Promise<Refusal | undefined> {
  const { git } = ctx.ports
  if (facts.top === row.path) return undefined
  const other = await projectStore(ctx.view).repoAt(facts.top)
  if (other) return alreadyThere(other)
  if ((await git.inspect(row.path))?.top === row.path)
    return refuse('CONFLICT', `${row.handle} is still at ${row.path}.`, { hint: 'Register another repository with repo_add.' })
  if (row.head === null || (await git.has(facts.top, row.head))) return undefined
  return refuse(
    'CONFLICT',
    `${facts.top} is another repository: it does not have ${row.head.slice(0, 12)}, where ${row.handle} was last.`,
    {
      hint: 'Unregister the old one with repo_remove, and register this one with repo_add.',
    },
  )
}

export const moveRepo = defineEffect({
  type: 'repo.move',
  payload: z.strictObject({ repo_id: z.string(), from: z.string(), path: z.string(), request: z.string() }),
  attempts: ATTEMPTS,
  async do(ctx, told) {
    const problem = await ctx.ports.git.moved(told.path).then(
      () => null,
      (error) => {
        if (!(error instanceof GitRefusal) || (error.reason === 'busy' && ctx.attempt < ATTEMPTS)) throw error
        return error.message.slice(0, 2_000)
      },
    )
    await ctx.report(moved, { ...told, problem })
  },
})

export const moved = defineTool({
  name: 'repo_moved',
  title: 'A repository was moved',
  description: 'Its worktrees find it again, or it is said why not.',
  input: z.strictObject({
    repo_id: z.string(),
    from: z.string(),
    path: z.string(),
    request: z.string(),
    problem: z.string().nullable(),
  }),
  output: z.strictObject({}),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { repo_id, ...told }) {
    const repo = await projectStore(ctx.tx).repo(repo_id)
    ctx.emit(repoMoved({ subject: repo_id, project: repo?.project_id ?? null }, told))
    return {}
  },
})

async function changed(ctx: WatchContext, { repo_id, request }: { repo_id: string; request: string | null }) {
  const told = request ? await whatCame(ctx, repo_id, request) : undefined
  const repo = await projectStore(ctx.view).repo(repo_id)
  if (!repo) throw new Error(`the repository ${repo_id} is not there`)
  return { repo: repoView(repo), message: messageOf(repo, request, told?.problem) }
}

async function whatCame(ctx: WatchContext, repo_id: string, request: string) {
  const { found } = await watchUntil(ctx, {
    about: { subject: repo_id },
    types: [repoMoved],
    withinMs: MOVE_MS,
    recent: 10,
    look: (events) => events.map(({ data }) => data as z.output<typeof repoMoved.data>).find((data) => data.request === request),
  })
  return found
}

function messageOf({ handle, path }: RepoRow, request: string | null, problem: string | null | undefined): string {
  if (request === null) return `${handle} is changed.`
  if (problem === undefined) return `${handle} is at ${path} now; repo.moved tells when its worktrees have found it again.`
  if (problem) return `${handle} is at ${path} now, but its worktrees have not found it again: ${problem}`
  return `${handle} is at ${path} now, and its worktrees have found it again.`
}
