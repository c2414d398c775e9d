import type { EffectContext } from '../../kernel/effect.ts'
import { type CommandEnd, endCommands, runCommand } from '../command.ts'
import { type RepoRow, repoUpdated } from '../project/index.ts'
import { clean, hideSecretsOf, SETUP_LIMIT, SETUP_PASSED, setupCleaned, setupFailed, withPackages } from '../setup/index.ts'
import { taskDeleted, taskMoved } from '../task/index.ts'
import { mergeWithdrawn } from './schema.ts'

export interface Verdict {
  green: boolean
  /** For a person: how they ended. */
  reason: string
  log: string
  /** They did not even begin: their checkout could not be set up. */
  notReady?: true
}

export interface Check {
  /** Of this attempt at this tree: a daemon that comes back finds it by that. */
  name: string
  command: string
  commit: string
  /** Whether that has landed: then what its setup makes may be given to others. */
  hasLanded: boolean
  /** A fresh checkout of it; asked for only when it begins now. */
  checkout(): Promise<string>
  repo: RepoRow
  /** Its own ports and name. */
  env: Record<string, string>
  /** Whether anybody still asks what these commands say about this tree. */
  isWanted(commands: Commands): Promise<boolean>
}

export interface Commands {
  checks: string
  setup: string | null
}

/** What a green commit is green by: in a checkout that is made ready otherwise, the same checks may fail. Without any of that it is the command alone. */
export function greenBy({ checks, setup }: Commands, check_files: string): string {
  return setup === null && check_files === '[]' ? checks : JSON.stringify([checks, setup, check_files])
}

const LIMIT = 'merge.checks_minutes'
/** In the folder of a check that was begun: where. */
const CHECKOUT = 'checkout'
/** After any of these a check may be unwanted. */
const MAY_END = [mergeWithdrawn, repoUpdated, taskMoved, taskDeleted]

/** The registration says what is run, never the branch: work must not choose what it is checked by. */
export async function runChecks(ctx: EffectContext, check: Check): Promise<Verdict | 'stale'> {
  const verdict = await judge(ctx, check)
  await cleanUp(ctx, check)
  return verdict
}

/** Also after checks that nobody wants any more. A cleanup that fails is told, and says nothing of the work. */
async function cleanUp(ctx: EffectContext, { name, repo, env }: Check): Promise<void> {
  const { cleanup: command, id: repo_id } = repo
  const path = command === null ? '' : await ctx.ports.runner.keep(name, CHECKOUT, () => '')
  if (command === null || path === '') return
  const failure = await clean(ctx, { name: cleanupOf(name), command, path, repo: repo.path, env })
  if (failure) await ctx.report(setupCleaned, { repo_id, work_id: null, command, failure, request: name })
  await ctx.ports.runner.forget(cleanupOf(name))
}

async function judge(
  ctx: EffectContext,
  { name, command, commit, hasLanded, checkout, repo, env, isWanted }: Check,
): Promise<Verdict | 'stale'> {
  const { setup } = repo
  const common = { repo: repo.path, env, mayEnd: MAY_END, isWanted: (asked: string) => isWanted({ checks: command, setup: asked }) }
  let notReady: CommandEnd | 'stale' | undefined
  const cwd = async () => {
    // One that a daemon before this one began may still be at work there.
    await endCommands(ctx, [setupOf(name), cleanupOf(name)])
    const path = await checkout()
    await ctx.ports.runner.keep(name, CHECKOUT, () => path)
    await hideSecretsOf(ctx.ports, repo)
    const brought = await ctx.ports.git.bring(repo.path, path, JSON.parse(repo.check_files) as string[])
    if (setup === null) return path
    const inherit = await ctx.setting<string[]>(SETUP_PASSED)
    const install = { ...common, name: setupOf(name), command: setup, cwd: async () => path, inherit, limit: SETUP_LIMIT }
    const make = () => runCommand(ctx, install)
    const kept = hasLanded ? ('by_files' as const) : ('by_tree' as const)
    const fresh = { repo: repo.path, path, head: commit, gets: true, kept, by: name }
    const { ended } = await withPackages(ctx, setup, fresh, brought, make)
    await ctx.ports.runner.forget(setupOf(name))
    if (ended === 'stale' || !ended.green) {
      notReady = ended
      throw new Error('not ready')
    }
    return path
  }
  const isStillWanted = (asked: string) => isWanted({ checks: asked, setup })
  try {
    const ended = await runCommand(ctx, { ...common, name, command, cwd, limit: LIMIT, isWanted: isStillWanted })
    if (ended === 'stale') return ended
    return { green: ended.green, reason: ended.green ? 'The checks passed.' : `The checks ${ended.how}.`, log: ended.log }
  } catch (error) {
    if (notReady === undefined) throw error
    if (notReady === 'stale') return notReady
    return { green: false, reason: setupFailed(setup as string, notReady), log: notReady.log, notReady: true }
  }
}

function setupOf(name: string): string {
  return `setup-${name}`
}

function cleanupOf(name: string): string {
  return `cleanup-${name}`
}

/** Checks that nobody asks about any more would go on in the folder of the next. */
export function endChecks(ctx: EffectContext, names: string[]): Promise<void> {
  return endCommands(
    ctx,
    names.flatMap((name) => [name, setupOf(name), cleanupOf(name)]),
  )
}
