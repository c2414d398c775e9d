import type { EffectContext } from '../../kernel/effect.ts'
import type { Place } from '../../ports/git.ts'
import { type CommandEnd, runCommand } from '../command.ts'
import { projectStore, repoUpdated } from '../project/index.ts'
import type { WorkRow } from '../work/index.ts'
import { environmentOfWork } from './ports.ts'
import { LIMIT, lastLines, PASSED } from './rules.ts'
import { cleaned, undone } from './tools.ts'

/** One that cannot be run so often must not keep a worktree for ever. */
const FAILURES = 6

interface Cleaning {
  name: string
  command: string
  path: string
  repo: string
  env: Record<string, string>
  isWanted?(command: string): Promise<boolean>
}

/** Says how it failed, for a person. Undefined when it passed, or is wanted no more. */
export async function clean(ctx: EffectContext, { name, command, path, repo, env, isWanted }: Cleaning): Promise<string | undefined> {
  const ended = await runCommand(ctx, {
    name,
    command,
    cwd: async () => path,
    repo,
    env,
    inherit: await ctx.setting<string[]>(PASSED),
    limit: LIMIT,
    mayEnd: isWanted ? [repoUpdated] : [],
    isWanted: isWanted ?? (async () => true),
  }).catch((error) => cannotRun(ctx, error))
  return ended === 'stale' || ended.green ? undefined : cleanupFailed(command, ended)
}

function cannotRun(ctx: EffectContext, error: Error): CommandEnd {
  if (ctx.attempt < FAILURES || ctx.signal.aborted) throw error
  return { green: false, how: `could not be run: ${error.message}`, log: '' }
}

function cleanupFailed(command: string, ended: CommandEnd): string {
  return `Cleanup failed: \`${command}\` ${ended.how}.${lastLines(ended.log)}`.slice(0, 4_000)
}

/** Before a worktree is taken away: whatever it has outside of itself, such as a database. What fails is told, and does not keep it. */
export async function cleanUpWork(ctx: EffectContext, work: WorkRow, place: Place): Promise<void> {
  const find = () => projectStore(ctx.view).repo(work.repo_id)
  const command = (await find())?.cleanup ?? null
  if (command === null) return
  const { state } = await ctx.ports.git.state(place, work.base_commit ?? `refs/heads/${place.branch}`)
  if (state !== 'present') return
  // Whoever begins there after this sets it up anew.
  await ctx.report(undone, { work_id: work.id, request: ctx.effectId })
  const name = `cleanup_${ctx.effectId}`
  const isWanted = async (asked: string) => (await find())?.cleanup === asked
  const env = await environmentOfWork(ctx, work)
  const failure = await clean(ctx, { name, command, path: place.path, repo: place.repo, env, isWanted })
  await ctx.report(cleaned, { repo_id: work.repo_id, work_id: work.id, command, failure: failure ?? null, request: ctx.effectId })
  await ctx.ports.runner.forget(name)
}
