import { z } from 'zod'
import { type Refusal, refuse } from '../../kernel/error.ts'
import { PageSize, PageToken } from '../../kernel/schema.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { logOf } from '../command.ts'
import { takeTurn } from '../handle.ts'
import { ProjectId, TaskId } from '../ids.ts'
import { currentProject, projectStore } from '../project/index.ts'
import { handleOf, requireTask, type TaskRow, taskStore } from '../task/index.ts'
import { untilRow } from '../until.ts'
import { checkMayReadFiles, type WorkRow, workOf } from '../work/index.ts'
import { askToStop, launchPreview } from './effects.ts'
import { aboutPreview, isElsewhere, previewView } from './rules.ts'
import { PreviewView, previewEnded, previewReady, previewStarting } from './schema.ts'
import { type PreviewRow, previewStore } from './store.ts'

const START_MS = 120_000
const STOP_MS = 30_000
const MOST_WAIT_SECONDS = 25

export const start = defineTool({
  name: 'preview_start',
  title: 'Start a preview',
  description: "Run the dev command of the repository in a task's worktree, and wait until it answers. Returns the link.",
  input: z.strictObject({ task_id: TaskId }),
  output: z.strictObject({ message: z.string(), created: z.boolean(), preview: PreviewView }),
  example: { task_id: 'T-3' },
  impact: 'write',
  profile: 'pair_worker',
  outcome: ({ preview }) => (preview.state === 'starting' ? 'pending' : 'done'),
  async run(ctx, { task_id }) {
    await takeTurn(ctx.tx, `preview:${task_id}`)
    const task = await requireTask(ctx, task_id)
    const living = await previewStore(ctx.tx).livingOf(task.id)
    if (living) return { preview_id: living.id, created: false }
    const work = await workOf(ctx.tx, task.id)
    if (work?.state !== 'made') return noWorktree(task, work)
    const repo = await projectStore(ctx.tx).repo(work.repo_id)
    if (!repo?.dev) return noCommand(repo?.handle ?? 'The repository')
    const row = newPreview(ctx, work, repo.dev)
    await previewStore(ctx.tx).insert(row)
    ctx.emit(previewStarting(aboutPreview(row), { handle: handleOf(task), command: row.command }))
    ctx.enqueue(launchPreview({ preview_id: row.id }, { queue: row.id }))
    return { preview_id: row.id, created: true }
  },
  async watch(ctx, { task_id }, { preview_id, created }: { preview_id: string; created: boolean }) {
    const task = await requireTask(ctx, task_id)
    const row = await untilRow(ctx, {
      id: preview_id,
      types: [previewReady, previewEnded],
      withinMs: START_MS,
      find: () => previewStore(ctx.view).find(preview_id),
      holds: ({ state }) => state !== 'starting',
    })
    if (isOver(row)) return refuse('INVALID_AGENT_STATE', row.reason ?? 'It is over.', { hint: 'Mend that, then start it again.' })
    const preview = previewView(row, task)
    const told = row.state === 'ready' ? `${preview.handle} is shown at ${preview.url}` : `${preview.handle} has not answered yet.`
    return { message: told, created, preview }
  },
})

function noWorktree(task: TaskRow, work: WorkRow | undefined): Refusal {
  const handle = handleOf(task)
  const why = work?.state === 'removed' ? 'The worktree was taken away' : 'There is no worktree yet'
  return refuse('INVALID_TRANSITION', `${why}: nothing of ${handle} can be shown.`, {
    hint: 'It is made when an agent is started on the task.',
    next_tool: 'job_submit',
    next_arguments: { task_id: handle, action: 'start_agent' },
  })
}

function noCommand(handle: string): Refusal {
  return refuse('CONFLICT', `${handle} has no dev command.`, {
    hint: `Say how its program is started; it should listen on $PORT: signalbox repo update ${handle} --dev "npm run dev"`,
    next_tool: 'repo_update',
    next_arguments: { repo_id: handle, dev: 'npm run dev' },
  })
}

function newPreview(ctx: RunContext, work: WorkRow, command: string): PreviewRow {
  return {
    id: ctx.id('preview'),
    work_id: work.id,
    repo_id: work.repo_id,
    project_id: work.project_id,
    task_id: work.task_id,
    command,
    state: 'starting',
    host: null,
    first_port: null,
    last_port: null,
    silent_at: null,
    port: null,
    reason: null,
    log: null,
    started_by: ctx.principal.id,
    stop_asked_at: null,
    started_at: ctx.now,
    ended_at: null,
  }
}

export const stop = defineTool({
  name: 'preview_stop',
  title: 'Stop a preview',
  description: 'End the preview of a task with everything that it has started. The worktree stays as it is.',
  input: z.strictObject({ task_id: TaskId }),
  output: z.strictObject({ stopped: z.boolean().describe('False: it is still being ended'), preview: PreviewView }),
  example: { task_id: 'T-3' },
  impact: 'write',
  profile: 'pair_worker',
  async run(ctx, { task_id }) {
    const task = await requireTask(ctx, task_id)
    const row = await askToStop(ctx, task.id)
    if (row) return { preview_id: row.id }
    return refuse('RESOURCE_NOT_FOUND', `No preview of ${handleOf(task)} is running.`, {
      next_tool: 'preview_get',
      next_arguments: { task_id: handleOf(task) },
    })
  },
  async watch(ctx, { task_id }, { preview_id }: { preview_id: string }) {
    const find = () => previewStore(ctx.view).find(preview_id)
    const row = await untilRow(ctx, { id: preview_id, types: [previewEnded], withinMs: STOP_MS, find, holds: isOver })
    return { stopped: isOver(row), preview: previewView(row, await requireTask(ctx, task_id)) }
  },
})

export const get = defineTool({
  name: 'preview_get',
  title: 'Read a preview',
  description: 'The newest preview of a task, its link, and what its program prints.',
  input: z.strictObject({
    task_id: TaskId,
    after: z.int().min(0).optional().describe('`mark` of an earlier answer: waits until more is printed, or the preview has ended'),
    wait_seconds: z.int().min(0).max(MOST_WAIT_SECONDS).default(MOST_WAIT_SECONDS).describe('With `after`: how long at the most'),
  }),
  output: z.strictObject({
    preview: PreviewView.nullable(),
    log: z.string().describe('What it printed last'),
    mark: z.int().nullable().describe('While it runs here: where `log` ends'),
    dev: z.string().nullable().describe('The command that the next one would run'),
    worktree: z.boolean().describe('Whether there is a worktree to run it in'),
  }),
  example: { task_id: 'T-3' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { task_id, after, wait_seconds }) {
    const task = await requireTask(ctx, task_id)
    const denied = await checkMayReadFiles(ctx.view, ctx.principal, task)
    if (denied) return denied
    const row = await previewStore(ctx.view).lastOf(task.id)
    const work = await workOf(ctx.view, task.id)
    const repo = work && (await projectStore(ctx.view).repo(work.repo_id))
    const next = { dev: repo?.dev ?? null, worktree: work?.state === 'made' }
    if (!row || isOver(row) || row.host === null || isElsewhere(ctx, row))
      return { preview: row ? previewView(row, task) : null, log: row?.log ?? '', mark: null, ...next }
    const { log, mark } = await logOf(ctx, row.id, { after, waitMs: wait_seconds * 1_000 })
    const now = (await previewStore(ctx.view).find(row.id)) ?? row
    return { preview: previewView(now, task), log: now.log ?? log, mark: isOver(now) ? null : mark, ...next }
  },
})

export const list = defineTool({
  name: 'preview_list',
  title: 'List previews',
  description: 'Previews that are starting or ready.',
  input: z.strictObject({
    project_id: ProjectId.optional().describe('Default: the current project'),
    limit: PageSize,
    after: PageToken.optional(),
  }),
  output: z.strictObject({ previews: z.array(PreviewView), next: z.string().nullable() }),
  example: {},
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { project_id, limit, after }) {
    const project = project_id ?? (await currentProject(ctx.view, ctx.principal))
    const rows = await previewStore(ctx.view).living(project, after ?? '', limit)
    const previews: z.output<typeof PreviewView>[] = []
    for (const row of rows) {
      const task = await taskStore(ctx.view).find(row.task_id)
      if (task) previews.push(previewView(row, task))
    }
    return { previews, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null }
  },
})

function isOver({ state }: PreviewRow): boolean {
  return state === 'ended' || state === 'failed'
}
