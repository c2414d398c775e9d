import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { ProjectId, RepoId } from '../ids.ts'
import { endAll, named, stillOpen } from './belongings.ts'
import { projectDeleted, repoRemoved } from './schema.ts'
import { projectStore, type RepoRow } from './store.ts'
import '../../ports/git.ts'

const MOST_REPOS = 1_000
const person = { impact: 'destructive', profile: 'maintainer', by: 'person' } as const

export const removeRepo = defineTool({
  ...person,
  name: 'repo_remove',
  title: 'Unregister a repository',
  description:
    'Unregister a repository. Nothing in its folder is touched: branches and saved trees stay. Its worktrees are taken away, what is not committed is saved first.',
  input: z.strictObject({
    repo_id: RepoId,
    close_tasks: z
      .boolean()
      .default(false)
      .describe('Close the tasks that have unlanded work in it and cancel its epics; whoever is at work on them is ended'),
  }),
  output: z.strictObject({ repo_id: z.string(), message: z.string() }),
  example: { repo_id: 'web-shop' },
  async prepare(ctx, { repo_id }) {
    const row = await projectStore(ctx.view).repo(repo_id)
    return { isThere: row !== undefined && (await ctx.ports.git.inspect(row.path))?.top === row.path }
  },
  async run(ctx, { repo_id, close_tasks }, { isThere }) {
    const row = await projectStore(ctx.tx).repo(repo_id)
    if (!row) return refuse('RESOURCE_NOT_FOUND', 'That repository is gone.')
    const { handle, path } = row
    const open = await stillOpen(ctx, { project: row.project_id, repo: row.id })
    if (open.length && !close_tasks)
      return refuse('CONFLICT', `${handle} has work that has not landed: ${named(open)}.`, {
        hint: 'Land or close these first. With close_tasks they are closed, whoever is at work on them is ended, and what is not committed is saved.',
      })
    await unregister(ctx, row)
    const kept = isThere
      ? `Nothing in ${path} was touched: branches and saved trees are still there, and repo_add brings all of it back. Its worktrees are taken away, except where somebody is still at work; work_collect takes those.`
      : `Its folder ${path} is not there, so its worktrees stay where they are.`
    return { repo_id: row.id, message: [`${handle} is no longer registered.`, kept, ...closed('Closed', open)].join(' ') }
  },
})

export const deleteProject = defineTool({
  ...person,
  name: 'project_delete',
  title: 'Delete a project',
  description:
    'Take a project and its tasks off the board for good, and unregister its repositories. Nothing in their folders is touched: branches and saved trees stay.',
  input: z.strictObject({
    project_id: ProjectId,
    with_tasks: z.boolean().default(false).describe('Delete its open tasks and cancel its epics too; whoever is at work on them is ended'),
  }),
  output: z.strictObject({ project_id: z.string(), message: z.string() }),
  example: { project_id: 'web-shop' },
  async run(ctx, { project_id, with_tasks }) {
    const store = projectStore(ctx.tx)
    const project = await store.project(project_id)
    if (!project) return refuse('RESOURCE_NOT_FOUND', 'That project is gone.')
    const { id, handle, name } = project
    const open = await stillOpen(ctx, { project: id })
    if (open.length && !with_tasks)
      return refuse('CONFLICT', `${handle} is not done: ${named(open)}.`, {
        hint: 'Finish or close these first. With with_tasks they are deleted, whoever is at work on them is ended, and what is not committed is saved.',
      })
    await endAll(ctx, { project: id }, `The project ${handle} was deleted.`)
    const repos = await store.repos(id, '', MOST_REPOS)
    for (const repo of repos) await unregister(ctx, repo)
    await store.deleteProject(id, ctx.now)
    ctx.emit(projectDeleted({ subject: id, project: id }, { handle, name }))
    const untouched = repos.length ? [`Unregistered, and not touched: ${repos.map(({ path }) => path).join(', ')}.`] : []
    return { project_id: id, message: [`${handle} is deleted.`, ...untouched, ...closed('Deleted', open)].join(' ') }
  },
})

async function unregister(ctx: RunContext, row: RepoRow): Promise<void> {
  const { id, handle, path, project_id: project } = row
  await endAll(ctx, { project, repo: id }, `The repository ${handle} was removed.`)
  await projectStore(ctx.tx).unregister(row)
  ctx.emit(repoRemoved({ subject: id, project }, { handle, path }))
}

function closed(what: string, open: string[]): string[] {
  return open.length ? [`${what}: ${named(open)}.`] : []
}
