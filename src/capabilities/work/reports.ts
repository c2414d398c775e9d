import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { text } from '../../kernel/schema.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { WorkId } from '../ids.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { workFailed, workMade, workRemoved, workRescued, workRestored } from './schema.ts'
import { type WorkRow, workStore } from './store.ts'

const Hash = z.string().regex(/^[0-9a-f]{40,64}$/)
const Saved = z.strictObject({ ref: text(300), commit: Hash }).nullable()
const Told = z.strictObject({ work_id: WorkId })

const work_id = `work_01jc${'0'.repeat(32)}`
const commit = '0'.repeat(40)
const ref = 'refs/signalbox/rescue/task-00000000-log-in/20260304T050607089Z'

export const made = defineTool({
  name: 'work_made',
  title: 'A worktree was made',
  description: 'What an effect tells when the worktree of a task is there.',
  input: z.strictObject({ work_id: WorkId, path: text(4_000), host: text(4_000), base_commit: Hash, head: Hash }),
  output: Told,
  example: {
    work_id,
    path: '/home/me/.signalbox/worktrees/web/task-00000000-log-in',
    host: 'desk:/home/me/.signalbox',
    base_commit: commit,
    head: commit,
  },
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { work_id, path, host, base_commit }) {
    const { row, about, named } = await known(ctx, work_id)
    if (row.state === 'made' && row.path === path && row.host === host) return { work_id }
    await workStore(ctx.tx).update(work_id, { path, host, base_commit: row.base_commit ?? base_commit, state: 'made', updated_at: ctx.now })
    ctx.emit(workMade(about, { ...named, path, base_commit: row.base_commit ?? base_commit }))
    return { work_id }
  },
})

export const removed = defineTool({
  name: 'work_removed',
  title: 'A worktree was taken away',
  description: 'What an effect tells when the folder of a work is gone.',
  input: z.strictObject({ work_id: WorkId, rescue: Saved }),
  output: Told,
  example: { work_id, rescue: { ref, commit } },
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { work_id, rescue }) {
    const { about, named } = await known(ctx, work_id)
    await workStore(ctx.tx).update(work_id, { state: 'removed', updated_at: ctx.now })
    if (rescue) ctx.emit(workRescued(about, { ...named, ...rescue }))
    ctx.emit(workRemoved(about, { ...named, rescue: rescue?.ref ?? null }))
    return { work_id }
  },
})

export const restored = defineTool({
  name: 'work_restored',
  title: 'A saved tree was brought back',
  description: 'What an effect tells when the files of a work are as they were saved.',
  input: z.strictObject({ work_id: WorkId, ref: text(300), rescue: Saved, request: text(100) }),
  output: Told,
  example: { work_id, ref, rescue: null, request: 'undo_01jc' },
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { work_id, ref, rescue, request }) {
    const { about, named } = await known(ctx, work_id)
    if (rescue) ctx.emit(workRescued(about, { ...named, ...rescue }))
    ctx.emit(workRestored(about, { ...named, ref, request }))
    return { work_id }
  },
})

export const failed = defineTool({
  name: 'work_failed',
  title: 'Git refused',
  description: 'What an effect tells when git will not do it, however often.',
  input: z.strictObject({ work_id: WorkId, what: text(40), message: text(2_000), request: text(100) }),
  output: Told,
  example: { work_id, what: 'undo', message: 'Nothing was saved that could be brought back.', request: 'undo_01jc' },
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { work_id, what, message, request }) {
    const { about, named } = await known(ctx, work_id)
    ctx.emit(workFailed(about, { ...named, what, message, request }))
    return { work_id }
  },
})

async function known(ctx: RunContext, id: string) {
  const row = await workStore(ctx.tx).find(id)
  const task = row && (await taskStore(ctx.tx).find(row.task_id))
  if (!row || !task) throw refuse('RESOURCE_NOT_FOUND', `There is no work "${id}".`)
  return { row, about: aboutWork(row), named: { handle: handleOf(task), branch: row.branch } }
}

export function aboutWork(row: WorkRow) {
  return { subject: row.id, project: row.project_id, task: row.task_id }
}
