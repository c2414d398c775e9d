import { z } from 'zod'
import { defineEffect, type EffectContext, type NewEffect } from '../../kernel/effect.ts'
import { GitRefusal, type Place } from '../../ports/git.ts'
import { endCommands, runCommand } from '../command.ts'
import { projectStore, type RepoRow, repoUpdated } from '../project/index.ts'
import { taskDeleted, taskMoved, taskStore } from '../task/index.ts'
import { Elsewhere, placeOf, type WorkRow, workStore } from '../work/index.ts'
import { withPackages } from './packages.ts'
import { environmentOfWork } from './ports.ts'
import { LIMIT, NOT_WANTED, PASSED, setupFailed } from './rules.ts'
import { setupEnded } from './schema.ts'
import { hideSecretsOf } from './secrets.ts'
import { type SetupRow, setupStore } from './store.ts'
import { begin, ended as reportEnded } from './tools.ts'

/** Daemons that are killed in the middle of it do not count. */
const ATTEMPTS = 100
/** What git refuses so often is told; a lock that somebody holds may be free by then. */
const REFUSALS = 4
/** A setup that cannot be run so often will not be: nobody waits for it for ever. */
const FAILURES = 6

export const queueOf = (host: string, repo: string) => `setup:${host}:${repo}`

interface Asked {
  work: WorkRow
  place: Place & { head: string; line?: string | null }
  /** The run or the session that is to begin there. */
  by: string
  /** Enqueued when the setup has ended, however it ended: it asks again. */
  next: NewEffect
}

/** Whether somebody may begin in this worktree. `later`: its setup runs, and `next` comes when that has ended. */
export async function makeReady(ctx: EffectContext, { work, place, by, next }: Asked): Promise<'ready' | 'later' | { problem: string }> {
  const repo = await projectStore(ctx.view).repo(work.repo_id)
  if (!repo) return 'ready'
  const { path, head } = place
  const checkout = await ctx.ports.git.idOf(path)
  const known = await setupStore(ctx.view).latest(work.id, checkout)
  // One without a command was for nobody who needs one now.
  if (known?.state === 'ready' && (known.command !== null || repo.setup === null)) return 'ready'
  if (known?.state === 'failed' && known.asked_by === by) return { problem: known.reason ?? 'The setup failed.' }
  // Whoever was let in before may have worked there, whatever the files say: also while there was no setup.
  const isFirst = known === undefined && repo.setup !== null && (await isPristine(ctx, place))
  const kept = isFirst ? ((await hasLanded(ctx, work, place)) ? 'by_files' : 'by_tree') : 'none'
  const { ready } = await ctx.report(begin, {
    work_id: work.id,
    path,
    checkout,
    head,
    kept,
    host: ctx.ports.daemon.host,
    by,
    next: JSON.stringify(next),
  })
  return ready ? 'ready' : 'later'
}

/** Nobody has worked there, and no earlier setup has left anything. */
async function isPristine({ ports: { git } }: EffectContext, place: Asked['place']): Promise<boolean> {
  const { ignored, untracked, changed } = await git.extras(place.repo, place.path)
  return !ignored.length && !untracked.length && !changed.length
}

/** By our own record of the line: a ref can be moved by whoever works in the repository, and a branch of a task is nobody's word. */
async function hasLanded(ctx: EffectContext, work: WorkRow, { head, line }: Asked['place']): Promise<boolean> {
  const repo = await projectStore(ctx.view).repo(work.repo_id)
  const task = await taskStore(ctx.view).find(work.task_id)
  const isOfALine = work.base_from !== null || work.base_branch === repo?.base_branch
  return isOfALine && task?.reviews_task_id === null && line === head
}

/** One at a time in a repository: many that begin at once would fetch the same packages beside each other. */
export const makeSetup = defineEffect({
  type: 'setup.make',
  payload: z.strictObject({ setup_id: z.string() }),
  attempts: ATTEMPTS,
  // The process is known by the row, and files that are there are not copied again.
  async do(ctx, { setup_id }) {
    const row = await setupStore(ctx.view).find(setup_id)
    if (!row) return
    await requireWorkHere(ctx, row)
    // Nobody waits for it, or it was cut off after it was told. A daemon that was killed may have left its process at work.
    if (row.state !== 'running') return endCommands(ctx, [row.id])
    const repo = await projectStore(ctx.view).repo(row.repo_id)
    const told = repo ? await setUp(ctx, row, repo).catch((error) => gaveUp(ctx, error)) : failed('Its repository is gone.')
    await ctx.report(reportEnded, { setup_id, ...told })
    await ctx.ports.runner.forget(row.id)
  },
})

/** By another name of this machine it is here all the same. */
async function requireWorkHere(ctx: EffectContext, { host, work_id }: SetupRow): Promise<void> {
  const { daemon } = ctx.ports
  if (host === daemon.host || !daemon.shared) return
  const work = await workStore(ctx.view).find(work_id)
  if (!work || !(await placeOf(ctx, work))) throw new Elsewhere(host)
}

function failed(reason: string, log: string | null = null) {
  return { state: 'failed' as const, how: null, reason: reason.slice(0, 4_000), log }
}

/** The next attempt may be luckier; after many of them whoever waits is told. */
function gaveUp(ctx: EffectContext, error: Error) {
  if (ctx.attempt < FAILURES || ctx.signal.aborted) throw error
  return failed(`The setup could not be run: ${error.message}`)
}

async function setUp(ctx: EffectContext, row: SetupRow, repo: RepoRow) {
  await hideSecretsOf(ctx.ports, repo)
  let brought: string[]
  try {
    brought = await ctx.ports.git.bring(repo.path, row.path, JSON.parse(repo.files) as string[])
  } catch (error) {
    const passes = !(error instanceof GitRefusal) || (error.reason === 'busy' && ctx.attempt < REFUSALS)
    if (passes) throw error
    return failed(`Its files could not be copied: ${error.message}`)
  }
  const { setup } = repo
  if (setup === null) return { state: 'ready' as const, how: null, reason: null, log: null }
  const isWanted = async (command: string) => {
    const task = await taskStore(ctx.view).find(row.task_id)
    const now = await projectStore(ctx.view).repo(row.repo_id)
    const { state } = (await setupStore(ctx.view).find(row.id)) ?? row
    return state === 'running' && task?.deleted_at === null && task.status !== 'DONE' && now?.setup === command
  }
  const work = await workStore(ctx.view).find(row.work_id)
  const env = work ? await environmentOfWork(ctx, work) : {}
  const inherit = await ctx.setting<string[]>(PASSED)
  const made = () =>
    runCommand(ctx, {
      name: row.id,
      command: setup,
      cwd: async () => row.path,
      repo: repo.path,
      env,
      inherit,
      limit: LIMIT,
      mayEnd: [repoUpdated, taskMoved, taskDeleted, setupEnded],
      failsUnkept: true,
      isWanted,
    })
  // One that was begun before this daemon is at work there: nothing is copied over it.
  const { state } = await ctx.ports.runner.look(row.id)
  const isNew = state === 'absent' || state === 'prepared'
  const checkout = { repo: repo.path, path: row.path, head: row.head, gets: isNew && row.kept !== 'none', kept: row.kept, by: row.id }
  const { how, ended } = await withPackages(ctx, setup, checkout, brought, made)
  if (ended === 'stale') return failed(NOT_WANTED)
  if (ended.green) return { state: 'ready' as const, how, reason: null, log: ended.log }
  return failed(setupFailed(setup, ended), ended.log)
}
