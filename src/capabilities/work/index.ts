// TEMPORARY: stands in until the real one is merged.

import { z } from 'zod'
import { tables } from '../../db/tables.ts'
import { defineCapability } from '../../kernel/capability.ts'
import type { EffectContext } from '../../kernel/effect.ts'
import { type Refusal, refuse } from '../../kernel/error.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { RunContext } from '../../kernel/tool.ts'
import { defineTool } from '../../kernel/tool.ts'
import type { Place } from '../../ports/git.ts'
import { slug } from '../handle.ts'
import { projectStore } from '../project/index.ts'
import type { TaskRow } from '../task/index.ts'

export interface WorkRow {
  id: string
  task_id: string
  repo_id: string
  path: string
  branch: string
  base_branch: string
  base_commit: string | null
}
export const workStore = (tx: Tx) => {
  const db = tables<{ works: WorkRow }>(tx)
  return {
    find: (id: string) => db.selectFrom('works').selectAll().where('id', '=', id).executeTakeFirst(),
    of: (task: string) => db.selectFrom('works').selectAll().where('task_id', '=', task).executeTakeFirst(),
    insert: (row: WorkRow) => db.insertInto('works').values(row).execute(),
    made: (id: string, base: string) => db.updateTable('works').set({ base_commit: base }).where('id', '=', id).execute(),
  }
}
export const workOf = (tx: Tx, task: string) => workStore(tx).of(task)
export async function placeOf(tx: Tx, row: WorkRow): Promise<Place> {
  const repo = await projectStore(tx).repo(row.repo_id)
  return { repo: repo?.path ?? '', path: row.path, branch: row.branch }
}
export async function planWork(ctx: RunContext, task: TaskRow, repoId?: string): Promise<WorkRow | Refusal> {
  const known = await workStore(ctx.tx).of(task.id)
  if (known) return known
  const [repo] = repoId ? [await projectStore(ctx.tx).repo(repoId)] : await projectStore(ctx.tx).repos(task.project_id, '', 2)
  if (!repo) return refuse('INVALID_INPUT', 'The project has no repository.', { next_tool: 'repo_add' })
  const row = {
    id: ctx.id('work'),
    task_id: task.id,
    repo_id: repo.id,
    path: `${process.env.SIGNALBOX_HOME}/worktrees/${repo.handle}/${task.id.slice(-12)}`,
    branch: `signalbox/task-${ctx.id('x').slice(-8)}-${slug(task.title, 'task')}`,
    base_branch: repo.base_branch,
    base_commit: null,
  }
  await workStore(ctx.tx).insert(row)
  return row
}
export async function makeWorktree(ctx: EffectContext, row: WorkRow): Promise<void> {
  const place = await placeOf(ctx.view, row)
  const { base } = await ctx.ports.git.add({ ...place, base: row.base_branch, strategy: 'local' })
  await ctx.report('work_made', { work_id: row.id, base_commit: base })
}
const made = defineTool({
  name: 'work_made',
  title: 'm',
  description: 'm',
  input: z.strictObject({ work_id: z.string(), base_commit: z.string() }),
  output: z.strictObject({}),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, i) {
    await workStore(ctx.tx).made(i.work_id, i.base_commit)
    return {}
  },
})
export const work = defineCapability({
  name: 'work',
  tools: [made],
  migrations: [
    {
      name: 'works',
      up: ({ text, strict }) => [
        `CREATE TABLE works (id ${text} PRIMARY KEY NOT NULL, task_id ${text} NOT NULL, repo_id ${text} NOT NULL, path ${text} NOT NULL, branch ${text} NOT NULL, base_branch ${text} NOT NULL, base_commit ${text}) ${strict}`,
      ],
    },
  ],
})
