import { z } from 'zod'
import { Refusal, refuse } from '../../kernel/error.ts'
import { isEvent } from '../../kernel/event.ts'
import { inScope } from '../../kernel/policy.ts'
import { redactText } from '../../kernel/redact.ts'
import { iso, PageToken, text } from '../../kernel/schema.ts'
import { Shared } from '../../kernel/shared.ts'
import { defineTool, type LookContext, type RunContext, type WatchContext } from '../../kernel/tool.ts'
import type { Place, WorkState } from '../../ports/git.ts'
import { ProjectId, TaskId } from '../ids.ts'
import { currentProject } from '../project/index.ts'
import { fullView, handleOf, requireTask, type TaskRow, TaskView, taskStore, whereabouts } from '../task/index.ts'
import { watchUntil } from '../until.ts'
import { takeAway, undoWork } from './effects.ts'
import { handedIn as handedInAt } from './handed-in.ts'
import { lineHead } from './line.ts'
import { placeOf, workPlan } from './plan.ts'
import { workPullRequests } from './pull-requests.ts'
import { checkMayReadFiles, reasonToKeep, requireFree } from './rules.ts'
import { FileChange, PullRequest, RescueView, WorkPlace, WorkView, workFailed, workRestored } from './schema.ts'
import { type WorkRow, workStore } from './store.ts'
import '../../ports/daemon.ts'

const MOST_BYTES = 1_000_000
const MOST_COLLECTED = 200
const AT_ONCE = 4
const UNDO_MS = 120_000
const FilePath = text(1_000).describe('Below the worktree')
const Latest = z.boolean().default(false).describe('Of work in REVIEW: its branch as it is now, with commits made after it was handed in')
const Shown = z.string().nullable().describe('The commit that is shown: approve that one. null: the worktree as it is now')

export const diff = defineTool({
  name: 'diff_get',
  title: 'Read the changes of a task',
  description:
    'What a task changed since it began, as a list of files and a patch: with uncommitted changes; of a task in REVIEW, the commit that was handed in.',
  input: z.strictObject({
    task_id: TaskId,
    path: FilePath.optional(),
    max_bytes: z.int().min(100).max(MOST_BYTES).default(100_000).describe('Cut the patch there, at a whole line'),
    latest: Latest,
  }),
  output: z.strictObject({
    task_id: TaskId,
    branch: z.string(),
    base_commit: z.string(),
    files: z.array(FileChange),
    patch: z.string(),
    cut: z.boolean(),
    commit: Shown,
    moved_to: z.string().nullable().describe('Its branch was moved after it was handed in, and is there now; latest shows that'),
  }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const found = await readable(ctx, input.task_id, input.latest)
    if ('body' in found) return found
    const { row, place, from, at } = found
    const follows = (await ctx.ask(lineHead, row.repo_id, row.base_branch)) ?? undefined
    const asked = { from, follows, at, path: input.path, bytes: input.max_bytes }
    const { files, text: patch, cut, commit, tip } = await ctx.ports.git.diff(place, asked)
    const moved_to = at !== undefined && tip !== commit ? tip : null
    return { task_id: row.task_id, branch: row.branch, base_commit: from, files, patch: shownTo(ctx, patch), cut, commit, moved_to }
  },
})

export const readFile = defineTool({
  name: 'file_read',
  title: 'Read a file of a task',
  description: 'A file as it is in the worktree of a task now; of a task in REVIEW, as it was handed in.',
  input: z.strictObject({
    task_id: TaskId,
    path: FilePath,
    max_bytes: z.int().min(1).max(MOST_BYTES).default(100_000),
    latest: Latest,
  }),
  output: z.strictObject({
    task_id: TaskId,
    path: z.string(),
    encoding: z.enum(['utf8', 'base64']),
    content: z.string(),
    size_bytes: z.int(),
    cut: z.boolean(),
    commit: Shown,
  }),
  example: { task_id: 'T-1', path: 'README.md' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const found = await readable(ctx, input.task_id, input.latest)
    if ('body' in found) return found
    const { row, place, at } = found
    const file = (await ctx.ports.git.file(place, input.path, input.max_bytes, at)) ?? noFile(input.path)
    const { encoding, content } = decoded(file.bytes, file.cut)
    const shown = encoding === 'utf8' ? shownTo(ctx, content) : content
    return { task_id: row.task_id, path: input.path, encoding, content: shown, size_bytes: file.size, cut: file.cut, commit: file.commit }
  },
})

/** A secret that a work has copied into a file of its own goes to no reviewer's model. A person sees what would land. */
function shownTo({ principal }: LookContext, text: string): string {
  return principal.kind === 'agent' ? redactText(text) : text
}

export const get = defineTool({
  name: 'work_get',
  title: 'Read a task and its place',
  description: 'A task with its worktree, branch and pull request, once it has them.',
  input: z.strictObject({ task_id: TaskId.optional().describe('Default: the task that is yours') }),
  output: z.strictObject({ task: TaskView, work: WorkPlace.nullable(), pull_request: PullRequest.nullable() }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const id = input.task_id ?? ctx.principal.scope.task
    if (!id) return refuse('INVALID_INPUT', 'Which task? None is assigned to you: give task_id.')
    const row = await workStore(ctx.view).ofTask(id)
    return {
      task: await fullView(ctx, await requireTask(ctx, id)),
      work: row ? placeView(row) : null,
      pull_request: (await ctx.ask(workPullRequests, [id], await ctx.ports.daemon.address())).get(id) ?? null,
    }
  },
})

export const list = defineTool({
  name: 'work_list',
  title: 'List worktrees',
  description: 'Worktrees of tasks with their size on disk, what is in them, and why each is kept or may go.',
  input: z.strictObject({
    project_id: ProjectId.optional().describe('Default: the current project'),
    limit: z.int().min(1).max(50).default(20),
    after: PageToken.optional(),
  }),
  output: z.strictObject({ works: z.array(WorkView), next: z.string().nullable() }),
  example: {},
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { project_id, limit, after }) {
    const project = project_id ?? (await currentProject(ctx.view, ctx.principal))
    const rows = await workStore(ctx.view).list(project, after ?? '', limit)
    const works = []
    // A few at a time: one after the other a long list takes seconds, all at once it would be fifty processes.
    for (let i = 0; i < rows.length; i += AT_ONCE)
      works.push(...(await Promise.all(rows.slice(i, i + AT_ONCE).map((row) => view(ctx, row)))))
    return { works, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null }
  },
})

export const listRescues = defineTool({
  name: 'rescue_list',
  title: 'List what was saved of a task',
  description: 'Trees that were saved before something was removed or replaced, newest first.',
  input: z.strictObject({ task_id: TaskId }),
  output: z.strictObject({ task_id: TaskId, rescues: z.array(RescueView) }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const found = await readable(ctx, input.task_id)
    if ('body' in found) return found
    const saved = await ctx.ports.git.rescues(found.place.repo, found.row.name)
    return { task_id: found.row.task_id, rescues: saved.map((rescue) => ({ ...rescue, at: iso(rescue.at) })) }
  },
})

export const undo = defineTool({
  name: 'work_undo',
  title: 'Bring saved work back',
  description: 'Put a saved tree back into the worktree of a task; what is there now is saved first. Default: the newest one.',
  input: z.strictObject({ task_id: TaskId, ref: text(300).optional().describe('From rescue_list') }),
  output: z.strictObject({ task_id: TaskId, ref: z.string().nullable(), restored: z.boolean(), message: z.string() }),
  example: { task_id: 'T-1' },
  impact: 'destructive',
  profile: 'operator',
  async run(ctx, { task_id, ref }) {
    const { task, row } = await requireWork(ctx.tx, task_id)
    if (row.state === 'planned' && row.path === null) return notMade(task)
    await requireFree(ctx, row)
    if (ref !== undefined && !ref.startsWith(`refs/signalbox/rescue/${row.name}/`))
      return refuse('INVALID_INPUT', `${ref} was not saved of ${handleOf(task)}.`, {
        next_tool: 'rescue_list',
        next_arguments: { task_id },
      })
    const request = ctx.id('undo')
    const plan = await workPlan(ctx, row)
    ctx.enqueue(undoWork({ plan, ref: ref ?? null, asked_at: ctx.now, request }, { queue: row.repo_id }))
    return { work_id: row.id, request }
  },
  watch: (ctx, { task_id }, { work_id, request }: { work_id: string; request: string }) => undone(ctx, task_id, work_id, request),
})

export const collect = defineTool({
  name: 'work_collect',
  title: 'Take away finished worktrees',
  description:
    'Remove worktrees of tasks that are done or deleted. Branches stay; what is not committed is saved first, except what git ignores.',
  input: z.strictObject({ task_id: TaskId.optional().describe('Default: all of the current project that you may act on') }),
  output: z.strictObject({
    collecting: z.array(z.string()).describe('Handles of tasks whose worktree is being removed'),
    kept: z.array(z.strictObject({ handle: z.string(), reason: z.string() })),
  }),
  example: {},
  impact: 'destructive',
  profile: 'operator',
  async run(ctx, { task_id }) {
    const project = await currentProject(ctx.tx, ctx.principal)
    const rows = task_id ? [(await requireWork(ctx.tx, task_id)).row] : await workStore(ctx.tx).made(project, MOST_COLLECTED)
    const collecting: string[] = []
    const kept: { handle: string; reason: string }[] = []
    for (const row of rows) {
      const task = await taskStore(ctx.tx).find(row.task_id)
      // Of those that nobody named, others' are none of the caller's business.
      if (inScope(ctx.principal, 'task', row.task_id, await whereabouts(ctx.tx, row))) continue
      const handle = task ? handleOf(task) : row.task_id
      const reason = row.state === 'made' ? await reasonToKeep(ctx, row) : 'There is no worktree.'
      if (reason) kept.push({ handle, reason })
      else {
        await takeAway(ctx, row)
        collecting.push(handle)
      }
    }
    return { collecting, kept }
  },
})

async function undone(ctx: WatchContext, task_id: string, work_id: string, request: string) {
  const { found } = await watchUntil(ctx, {
    about: { subject: work_id },
    types: [workRestored, workFailed],
    withinMs: UNDO_MS,
    recent: 20,
    look: (events) => events.find(({ data }) => data.request === request),
  })
  if (!found) return { task_id, ref: null, restored: false, message: 'It is still being done; work.restored tells when.' }
  if (isEvent(found, workFailed)) return refuse('CONFLICT', found.data.message, { hint: 'See work_list.' })
  return { task_id, ref: String(found.data.ref), restored: true, message: 'It is back. What was there is in rescue_list.' }
}

function placeView({ name, state, path, host, branch, base_branch }: WorkRow): z.output<typeof WorkPlace> {
  return { name, state, path: state === 'made' ? path : null, host, branch, base_branch }
}

async function requireWork(tx: RunContext['tx'], taskId: string): Promise<{ task: TaskRow; row: WorkRow }> {
  const task = await taskStore(tx).find(taskId)
  if (!task) throw refuse('RESOURCE_NOT_FOUND', `There is no task "${taskId}".`, { next_tool: 'task_list', next_arguments: {} })
  const row = await workStore(tx).ofTask(task.id)
  if (!row) throw notMade(task)
  return { task, row }
}

/** A deleted task's work too: it may have to be saved. */
interface Readable {
  row: WorkRow
  place: Place
  from: string
  /** The commit, or the ref, to be read instead of the worktree. */
  at?: string
}

async function readable(ctx: LookContext, taskId: string, latest = false): Promise<Readable | Refusal> {
  const { task, row } = await requireWork(ctx.view, taskId)
  const denied = await checkMayReadFiles(ctx.view, ctx.principal, task)
  if (denied) return denied
  const place = await placeOf(ctx, row)
  if (!place || !row.base_commit) return notMade(task)
  const found = { row, place, from: row.base_commit }
  if (task.status !== 'REVIEW') return found
  // What is reviewed is what would be merged, whatever lies in the worktree beside it. Its worker could move the branch and back.
  const handedIn = latest ? null : await ctx.ask(handedInAt, task.id)
  return { ...found, at: handedIn ?? `refs/heads/${row.branch}` }
}

function notMade(task: TaskRow): Refusal {
  return refuse('RESOURCE_NOT_FOUND', `${handleOf(task)} has no worktree yet.`, { hint: 'It gets one when somebody starts to work on it.' })
}

function noFile(path: string): never {
  throw refuse('RESOURCE_NOT_FOUND', `There is no file "${path}" in the worktree.`, { hint: 'diff_get lists those that changed.' })
}

async function asked<T>(question: () => Promise<T>): Promise<T | Refusal> {
  return question().catch((error) => {
    if (error instanceof Refusal) return error
    throw error
  })
}

/** As text when all of it is; one that was cut may end in the middle of a character. */
function decoded(bytes: Buffer, cut: boolean): { encoding: 'utf8' | 'base64'; content: string } {
  try {
    if (bytes.includes(0)) throw new TypeError('binary')
    return { encoding: 'utf8', content: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: cut }) }
  } catch {
    return { encoding: 'base64', content: bytes.toString('base64') }
  }
}

async function view(ctx: LookContext, row: WorkRow): Promise<z.output<typeof WorkView>> {
  const task = await taskStore(ctx.view).find(row.task_id)
  const place = await asked(() => placeOf(ctx, row))
  const { now, size } = place && !('body' in place) ? await lookAt(ctx, row, place) : { now: place, size: null }
  const seen = now && !('body' in now) ? now : undefined
  const ahead = seen?.ahead ?? null
  const keep = await reasonToKeep(ctx, row)
  const trouble = now && 'body' in now ? now.body.message : undefined
  const { id, task_id, repo_id, state, path, host, branch, base_branch, base_commit } = row
  return {
    id,
    task_id,
    handle: task ? handleOf(task) : task_id,
    repo_id,
    state,
    path,
    host,
    branch,
    base_branch,
    base_commit,
    on_disk: seen?.state ?? 'unknown',
    size_bytes: size,
    dirty: seen?.dirty ?? null,
    ahead,
    collectable: state === 'made' && keep === undefined && seen !== undefined && seen.state !== 'foreign',
    reason: trouble ?? keep ?? whyItMayGo(row, seen?.dirty ?? 0, ahead ?? 0),
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}

interface Seen {
  now: WorkState | Refusal
  size: number | null
}

/** By what looks: several daemons in one process have each their own. */
const looks = new WeakMap<LookContext['ports']['git'], Shared<Seen>>()

/** A worktree with tens of thousands of files takes seconds: of many who ask for the list one looks. */
function lookAt(ctx: LookContext, row: WorkRow, place: Place): Promise<Seen> {
  const { git } = ctx.ports
  const shared = looks.get(git) ?? new Shared<Seen>()
  looks.set(git, shared)
  return shared.ask(row.id, async () => {
    const now = await stateOf(ctx, row, place)
    return { now, size: !('body' in now) && now.state === 'present' ? await git.size(place) : null }
  })
}

/** Against the base branch; where that is only on the remote, against the commit that it began at. */
async function stateOf(ctx: LookContext, row: WorkRow, place: Place): Promise<WorkState | Refusal> {
  const state = await asked(() => ctx.ports.git.state(place, `refs/heads/${row.base_branch}`))
  const { base_commit } = row
  return 'body' in state && base_commit ? asked(() => ctx.ports.git.state(place, base_commit)) : state
}

function whyItMayGo(row: WorkRow, dirty: number, ahead: number): string {
  if (row.state === 'planned') return 'It is not made yet.'
  if (row.state === 'removed') return 'It was taken away; its branch is there.'
  const landed = ahead
    ? `its branch keeps ${ahead} commits that ${row.base_branch} does not have`
    : `all its commits are on ${row.base_branch}`
  return `Nobody needs it: ${landed}${dirty ? `, and ${dirty} files that are not committed will be saved` : ''}.`
}
