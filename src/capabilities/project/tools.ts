import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { mention } from '../../kernel/id.ts'
import { optionalText, PageSize, PageToken, text } from '../../kernel/schema.ts'
import { defineTool } from '../../kernel/tool.ts'
import type { RepoFacts } from '../../ports/git.ts'
import { slug, uniqueHandle } from '../handle.ts'
import { ProjectId, RepoId } from '../ids.ts'
import { NEEDS } from './config.ts'
import { currentProject } from './current.ts'
import { confirming, listed, type Proposal, proposalAt, stillProposed } from './propose.ts'
import { ProjectView, ProposalView, projectCreated, projectView, RepoView, repoAdded, repoView } from './schema.ts'
import { projectStore } from './store.ts'
import { alreadyThere, Branch, gone, listText, noBranch, noWorkTree, Registration, RepoPath } from './words.ts'
import '../../ports/git.ts'

export const create = defineTool({
  name: 'project_create',
  title: 'Create a project',
  description: 'Create a project; it becomes the current one of your token.',
  input: z.strictObject({ name: text(80), description: optionalText(2_000).default('') }),
  output: z.strictObject({ project_id: ProjectId, handle: z.string(), project: ProjectView }),
  example: { name: 'Web shop' },
  impact: 'write',
  profile: 'maintainer',
  async run(ctx, input) {
    const store = projectStore(ctx.tx)
    const handle = await uniqueHandle(slug(input.name, 'project'), async (h) => Boolean(await store.project(h)))
    const row = {
      id: ctx.id('project'),
      handle,
      name: input.name,
      description: input.description,
      created_at: ctx.now,
      updated_at: ctx.now,
      deleted_at: null,
    }
    await store.insertProject(row)
    if (ctx.principal.tokenId) await store.open(ctx.principal.tokenId, row.id)
    ctx.emit(projectCreated({ subject: row.id, project: row.id }, { handle, name: row.name }))
    return { project_id: row.id, handle, project: projectView(row) }
  },
})

export const list = defineTool({
  name: 'project_list',
  title: 'List projects',
  description: 'Projects, oldest first; `current` is the one that your token has open.',
  input: z.strictObject({ project_id: ProjectId.optional().describe('Only this one'), limit: PageSize, after: PageToken.optional() }),
  output: z.strictObject({ projects: z.array(ProjectView), current: z.string().nullable(), next: z.string().nullable() }),
  example: {},
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { project_id, limit, after }) {
    const rows = await projectStore(ctx.view).projects(after ?? '', limit, project_id)
    const current = (await currentProject(ctx.view, ctx.principal)) ?? null
    return { projects: rows.map(projectView), current, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null }
  },
})

export const open = defineTool({
  name: 'project_open',
  title: 'Open a project',
  description: 'Make a project the current one of your token: calls without project_id then mean it.',
  input: z.strictObject({ project_id: mention(ProjectId) }),
  output: z.strictObject({ project: ProjectView }),
  example: { project_id: 'web-shop' },
  impact: 'write',
  profile: 'viewer',
  async run(ctx, input) {
    const store = projectStore(ctx.tx)
    const own = ctx.principal.scope.project
    if (own && own !== input.project_id) return refuse('PERMISSION_DENIED', 'You belong to another project.')
    if (ctx.principal.tokenId) await store.open(ctx.principal.tokenId, input.project_id)
    const row = await store.project(input.project_id)
    return row ? { project: projectView(row) } : refuse('RESOURCE_NOT_FOUND', 'That project is gone.')
  },
})

export const addRepo = defineTool({
  name: 'repo_add',
  title: 'Register a repository',
  description: 'Register a git work tree on this machine with a project.',
  input: z.strictObject({
    path: RepoPath,
    project_id: ProjectId.optional().describe('Default: the current project'),
    base_branch: Branch.optional().describe('Default: the branch that is checked out'),
    ...Registration,
  }),
  output: z.strictObject({
    repo_id: RepoId,
    handle: z.string(),
    repo: RepoView,
    proposed: ProposalView.nullable().describe('What a fresh checkout seems to need'),
    message: z.string(),
  }),
  example: { path: '/home/me/web-shop', checks: 'npm test' },
  impact: 'write',
  profile: 'maintainer',
  by: 'person',
  async prepare(ctx, { path }) {
    const facts = await ctx.ports.git.inspect(path)
    if (facts?.head === null)
      return refuse('INVALID_INPUT', `${facts.top} has no commit yet.`, {
        hint: 'Make a first one with git commit: work begins at a commit.',
      })
    if (!facts?.head) return noWorkTree(path)
    return { ...facts, proposal: await proposalAt(ctx.ports.git, facts.top, facts.head) }
  },
  async run(ctx, input, { proposal, ...facts }: RepoFacts & { proposal: Awaited<ReturnType<typeof proposalAt>> }) {
    const store = projectStore(ctx.tx)
    const project = input.project_id ?? (await currentProject(ctx.tx, ctx.principal))
    if (!project) return noProject()
    const known = await store.repoAt(facts.top)
    if (known) return alreadyThere(known)
    const base = input.base_branch ?? facts.branch
    if (!base) return refuse('INVALID_INPUT', 'The repository has a detached head: name its base_branch.')
    if (!facts.branches.includes(base)) return noBranch(facts, base)
    const handle = await uniqueHandle(slug(facts.top.split('/').at(-1) ?? '', 'repo'), async (h) => Boolean(await store.repo(h)))
    // One that was removed is the same again: works and lines belong to it.
    const before = await store.removedFrom(facts.top)
    const row = {
      id: before?.id ?? ctx.id('repo'),
      handle,
      project_id: project,
      path: facts.top,
      base_branch: base,
      remote: facts.remote,
      checks: input.checks ?? null,
      setup: input.setup ?? null,
      files: listText(input.files),
      check_files: listText(input.check_files),
      cleanup: input.cleanup ?? null,
      dev: input.dev ?? null,
      head: facts.head,
      synced_at: ctx.now,
      created_at: ctx.now,
      removed_from: null,
    }
    if (before) await store.updateRepo(row.id, row)
    else await store.insertRepo(row)
    ctx.emit(repoAdded({ subject: row.id, project }, { handle, path: row.path, base_branch: base }))
    const repo = repoView(row)
    const given = NEEDS.filter((name) => input[name] !== undefined)
    const proposed = stillProposed(proposal, repo, given)
    return { repo_id: row.id, handle, repo, proposed, message: addedAs(handle, proposed) }
  },
})

function addedAs(handle: string, proposed: Proposal | null): string {
  const command = proposed && confirming(handle, proposed)
  return [
    [`${handle} is registered.`, proposed?.problem].filter(Boolean).join(' '),
    command && `A fresh checkout has only what git carries. Suggested by ${listed(proposed.because)}:\n${command}`,
  ]
    .filter(Boolean)
    .join(' ')
}

export const propose = defineTool({
  name: 'repo_propose',
  title: 'See what a repository needs',
  description:
    'What a fresh checkout seems to need, by its lockfiles, .env files and .signalbox.yaml, and is not registered yet. Changes nothing.',
  input: z.strictObject({ repo_id: RepoId }),
  output: z.strictObject({ proposed: ProposalView.nullable(), message: z.string() }),
  example: { repo_id: 'web-shop' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { repo_id }) {
    const row = await projectStore(ctx.view).repo(repo_id)
    const facts = row && (await ctx.ports.git.inspect(row.path))
    if (!row || !facts?.head) return gone(row ?? { handle: repo_id, path: 'its path' })
    const proposed = stillProposed(await proposalAt(ctx.ports.git, facts.top, facts.head), repoView(row))
    const command = proposed && confirming(row.handle, proposed)
    const needs = command ? `Suggested by ${listed(proposed.because)}:\n${command}` : 'Nothing more is proposed.'
    return { proposed, message: [proposed?.problem, needs].filter(Boolean).join(' ') }
  },
})

export const listRepos = defineTool({
  name: 'repo_list',
  title: 'List repositories',
  description: 'Repositories of a project, or of all projects.',
  input: z.strictObject({ project_id: ProjectId.optional(), limit: PageSize, after: PageToken.optional() }),
  output: z.strictObject({ repos: z.array(RepoView), next: z.string().nullable() }),
  example: { project_id: 'web-shop' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { project_id, limit, after }) {
    const rows = await projectStore(ctx.view).repos(project_id, after ?? '', limit)
    return { repos: rows.map(repoView), next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null }
  },
})

export function noProject() {
  return refuse('INVALID_INPUT', 'Which project? Your token has none open.', {
    hint: 'Give project_id, or open one with project_open; create the first one with project_create.',
    next_tool: 'project_list',
    next_arguments: {},
  })
}
