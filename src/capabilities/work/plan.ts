import { NotHere, type Refusal, refuse } from '../../kernel/error.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { LookContext, Reading, RunContext } from '../../kernel/tool.ts'
import type { BaseStrategy, Git, Place } from '../../ports/git.ts'
import { takeTurn } from '../handle.ts'
import { projectStore, type RepoRow } from '../project/index.ts'
import { epicOf, handleOf, type TaskRow, taskStore } from '../task/index.ts'
import { nameOf } from './names.ts'
import type { WorkPlan } from './schema.ts'
import { type WorkRow, workStore } from './store.ts'
import '../../ports/daemon.ts'

type Task = Pick<TaskRow, 'id' | 'number' | 'title' | 'project_id' | 'base_branch' | 'epic_id'>

const MOST_REPOS = 50

/** The task's work, planned now if it has none; one that was taken away is to be made again, with its old branch. */
export async function planWork(ctx: RunContext, task: Task, repoId?: string): Promise<WorkRow | Refusal> {
  await takeTurn(ctx.tx, `work:${task.id}`)
  const store = workStore(ctx.tx)
  const known = await store.ofTask(task.id)
  if (known && repoId && known.repo_id !== repoId)
    return refuse('CONFLICT', `${handleOf(task)} has its work in another repository already.`, {
      next_tool: 'work_list',
      next_arguments: {},
    })
  if (known) await requireRepo(ctx.tx, known)
  if (known && known.state !== 'removed') return known
  if (known) {
    const again = { state: 'planned' as const, updated_at: ctx.now }
    await store.update(known.id, again)
    return { ...known, ...again }
  }
  const epic = await epicOf(ctx, task)
  if (epic?.repo_id && repoId && epic.repo_id !== repoId)
    return refuse('CONFLICT', `${epic.handle} is done in another repository.`, { hint: 'Leave out repo_id.' })
  const repo = await chooseRepo(ctx.tx, task, epic?.repo_id ?? repoId)
  if ('body' in repo) return repo
  const id = ctx.id('work')
  const row: WorkRow = {
    id,
    task_id: task.id,
    repo_id: repo.id,
    project_id: task.project_id,
    // By the task: whoever makes one can say where its work will be.
    ...nameOf(task.id, task.title),
    path: null,
    host: null,
    base_branch: epic?.branch ?? task.base_branch ?? repo.base_branch,
    base_from: epic?.base_branch ?? null,
    base_commit: null,
    strategy: ctx.setting<BaseStrategy>('general.worktree_base_ref_strategy'),
    state: 'planned',
    created_at: ctx.now,
    updated_at: ctx.now,
  }
  await store.insert(row)
  return row
}

async function chooseRepo(tx: Tx, task: Task, repoId: string | undefined) {
  const repos = await projectStore(tx).repos(task.project_id, '', MOST_REPOS)
  const [only, another] = repos
  const chosen = repoId ? repos.find(({ id }) => id === repoId) : another ? undefined : only
  if (chosen) return chosen
  if (!only)
    return refuse('RESOURCE_NOT_FOUND', `The project of ${handleOf(task)} has no repository.`, { hint: 'Register one with repo_add.' })
  const handles = repos.map(({ handle }) => handle)
  return refuse('INVALID_INPUT', `Which repository is ${handleOf(task)} to be done in?`, { hint: 'Give repo_id.', suggestions: handles })
}

/** It is to be merged into another branch than the one that it began at. */
export async function aimAt(ctx: RunContext, row: WorkRow, base_branch: string): Promise<void> {
  await workStore(ctx.tx).update(row.id, { base_branch, updated_at: ctx.now })
}

/** What it is shown from: once it was put on top of something else, that. */
export async function beginsAt(ctx: RunContext, row: WorkRow, base_commit: string): Promise<void> {
  await workStore(ctx.tx).update(row.id, { base_commit, updated_at: ctx.now })
}

export function workOf(tx: Tx, taskId: string): Promise<WorkRow | undefined> {
  return workStore(tx).ofTask(taskId)
}

export function worksOf(tx: Tx, tasks: string[]): Promise<WorkRow[]> {
  return workStore(tx).ofTasks(tasks)
}

/** Whether agents can have written to a repository. */
export async function wasWorkedIn(tx: Tx, repo: string): Promise<boolean> {
  return (await workStore(tx).firstIn(repo)) !== undefined
}

async function requireRepo(tx: Tx, row: WorkRow): Promise<RepoRow> {
  const repo = await projectStore(tx).repo(row.repo_id)
  if (!repo) throw new Error(`work ${row.id} has no repository`)
  if (repo.removed_from === null) return repo
  throw refuse('RESOURCE_NOT_FOUND', `Its repository (${repo.removed_from}) was removed.`, {
    hint: 'Register it again with repo_add: its branches and what was saved are still there.',
  })
}

/** Throws when the repository that a task is to be done in is not there: better now than when somebody is to be started in it. */
export async function requireRepoThere(ctx: LookContext, taskId: string, repoId?: string): Promise<void> {
  const work = await workOf(ctx.view, taskId)
  if (work && madeElsewhere(ctx, work)) return
  const task = await taskStore(ctx.view).find(taskId)
  const wanted = work?.repo_id ?? repoId
  const repos = task ? await projectStore(ctx.view).repos(task.project_id, '', MOST_REPOS) : []
  const repo = wanted ? repos.find(({ id }) => id === wanted) : repos.length === 1 ? repos[0] : undefined
  if (repo?.head) await ctx.ports.git.has(repo.path, repo.head)
}

/** Undefined before it was made. Throws when it is on the disk of another daemon. */
export async function placeOf(ctx: Pick<LookContext, 'view' | 'ports'>, row: WorkRow): Promise<Place | undefined> {
  const repo = await requireRepo(ctx.view, row)
  if (row.path === null) return undefined
  const place = { repo: repo.path, path: row.path, branch: row.branch }
  await requireHere(ctx, row, place)
  return place
}

/** Thrown by an effect, it is tried again until the daemon that has it takes it. */
export async function requireHere(ctx: Pick<LookContext, 'ports'>, row: WorkRow, place: Place): Promise<void> {
  if (await isElsewhere(ctx, row, place)) throw new Elsewhere(row.host as string)
}

export class Elsewhere extends NotHere {
  constructor(host: string) {
    super('The worktree of that task', host)
  }
}

/** Of daemons that share a database, another one made it. */
export function madeElsewhere({ ports: { daemon } }: Pick<LookContext, 'ports'>, { host }: WorkRow): boolean {
  return daemon.shared && host !== null && host !== daemon.host
}

/** A daemon whose machine was given another name finds its own worktrees all the same. */
async function isElsewhere(ctx: Pick<LookContext, 'ports'>, row: WorkRow, place: Place): Promise<boolean> {
  if (!madeElsewhere(ctx, row)) return false
  return ctx.ports.git.state(place, row.base_commit ?? 'HEAD').then(
    ({ state }) => state !== 'present',
    () => true,
  )
}

/** Where its worktree is, or will be. */
export function worktreePath(git: Pick<Git, 'placeFor'>, { path, repo_handle, name }: WorkPlan): string {
  return path ?? git.placeFor({ repo_handle, name })
}

/** What an effect takes along. */
export async function workPlan(ctx: Reading, row: WorkRow): Promise<WorkPlan> {
  const repo = await requireRepo(ctx.view, row)
  const { id: work_id, name, path, branch, base_branch: base, strategy } = row
  const task = row.base_from === null ? undefined : await taskStore(ctx.view).find(row.task_id)
  const base_from = (task && (await epicOf(ctx, task))?.branch_from) ?? row.base_from
  return { work_id, repo: repo.path, repo_handle: repo.handle, name, path, branch, base, base_from, strategy }
}
