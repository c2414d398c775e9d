import { createHash } from 'node:crypto'
import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import { GitRefusal, type LineOf, MERGE_METHODS, type MergeMethod } from '../../ports/git.ts'
import { projectStore, type RepoRow } from '../project/index.ts'
import { reviewStore } from '../review/index.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { runChecks, type Verdict } from './checks.ts'
import { nextInLine } from './order.ts'
import { type LineRow, type MergeRow, mergeStore } from './store.ts'
import { named } from './words.ts'

/** Daemons that are killed in the middle of it do not count. */
const ATTEMPTS = 100
/** What git refuses so often is told; a lock that somebody holds may be free by then. */
const REFUSALS = 4
const MOST_FILES = 100
/** A base that moves while the checks run is checked again; so often in a row, then the line takes a breath. */
const MOST_MOVES = 20
/** A check that fails is asked once more: one that is red by chance blames nobody. */
const TRIES = 2

export const queueOf = (repo: string, target: string) => `line:${repo}:${target}`

/** Works off one line: builds, checks and lands one after the other, until none waits or the line is held. */
export const workOffLine = defineEffect({
  type: 'line.work',
  payload: z.strictObject({ repo_id: z.string(), target: z.string(), checks_minutes: z.number(), method: z.enum(MERGE_METHODS) }),
  attempts: ATTEMPTS,
  // Each step knows its earlier self: by the row, the trailers of the commit, and the name of the check.
  recognise: async () => 'not_done',
  async do(ctx, { repo_id, target, checks_minutes, method }) {
    for (;;) {
      const store = mergeStore(ctx.view)
      if ((await store.line(repo_id, target))?.held) return
      const merge = nextInLine(await store.inLine(repo_id, target))
      if (!merge) return
      const repo = await projectStore(ctx.view).repo(repo_id)
      if (!repo) throw new Error(`the repository ${repo_id} is not there`)
      try {
        await new Passage(ctx, repo, merge, { timeoutMs: checks_minutes * 60_000, method }).go()
      } catch (error) {
        if (!(error instanceof GitRefusal) || (error.reason === 'busy' && ctx.attempt < REFUSALS)) throw error
        await ctx.report('merge_stuck', { merge_id: merge.id, reason: error.message.slice(0, 2_000) })
      }
    }
  },
})

export const followQueue = (repo: string, target: string) => `follow:${repo}:${target}`

/** The user's branch goes where its line is, as far as that harms nobody. */
export const followLine = defineEffect({
  type: 'line.follow',
  payload: z.strictObject({ repo_id: z.string(), target: z.string(), request: z.string() }),
  attempts: ATTEMPTS,
  recognise: async () => 'not_done',
  async do(ctx, { repo_id, target, request }) {
    const repo = await projectStore(ctx.view).repo(repo_id)
    const line = await mergeStore(ctx.view).line(repo_id, target)
    if (!repo || !line) return
    const followed = await follow(ctx, lineOf(repo, line), 'with what people committed')
    const head = (await ctx.ports.git.inspect(repo.path))?.head ?? null
    await ctx.report('line_follows', { repo_id, target, request, head, ...followed })
  },
})

/** What has landed has landed, whatever keeps the branch from following it. */
async function follow(
  ctx: EffectContext,
  line: LineOf,
  how?: 'with what people committed',
): Promise<{ behind: number; reason: string | null }> {
  try {
    const { git } = ctx.ports
    // Else branch and line would stay apart until something else lands.
    if (how) await git.line(line)
    const followed = await git.follow(line)
    return followed.state === 'even' ? { behind: 0, reason: null } : { behind: followed.by, reason: followed.message.slice(0, 2_000) }
  } catch (error) {
    if (!(error instanceof GitRefusal)) throw error
    return { behind: 1, reason: error.message.slice(0, 2_000) }
  }
}

export function lineOf(
  repo: Pick<RepoRow, 'path'>,
  { target, made_from, strategy }: Pick<LineRow, 'target' | 'made_from' | 'strategy'>,
): LineOf {
  // What was merged into a branch of ours is on no remote yet.
  return made_from ? { repo: repo.path, target, base: made_from, strategy } : { repo: repo.path, target, strategy }
}

/** One merge on its way through the line. */
class Passage {
  readonly #ctx: EffectContext
  readonly #repo: RepoRow
  readonly #merge: MergeRow
  readonly #line: LineOf
  readonly #how: { timeoutMs: number; method: MergeMethod }

  constructor(ctx: EffectContext, repo: RepoRow, merge: MergeRow, how: { timeoutMs: number; method: MergeMethod }) {
    this.#ctx = ctx
    this.#repo = repo
    this.#merge = merge
    this.#line = lineOf(repo, merge)
    this.#how = how
  }

  async go(): Promise<void> {
    const { git } = this.#ctx.ports
    const { id, head_commit } = this.#merge
    const said = await this.#said()
    if (!said) return this.#withdraw()
    for (let moves = 0; moves < MOST_MOVES; moves++) {
      const at = await git.line(this.#line)
      if (at.state === 'apart') return this.#hold(apart(this.#line.target, at.files))
      const before = this.#merge.state === 'checking' && this.#merge.built_on === at.head ? this.#merge.built : null
      const built = before
        ? { result: 'built' as const, commit: before }
        : await git.build({ line: this.#line, commit: head_commit, onto: at.head, keep: id, method: this.#how.method, ...said })
      if (built.result === 'conflict') return this.#tell('merge_conflict', { files: built.files.slice(0, MOST_FILES) })
      if (built.result === 'nothing') return this.#landed(at.head, false)
      if (built.result === 'landed') return this.#landed(built.commit, true)
      if (!before) await this.#stopEarlier()
      if (!before) await this.#tell('merge_built', { on: at.head, commit: built.commit })
      const red = await this.#check(built.commit, at.head)
      if (red === 'held') return
      if (red) return this.#tell('merge_red', { reason: red.reason, log: red.log })
      // Closed, deleted or moved while the checks ran: it is wanted no more.
      if (!(await this.#said())) return this.#withdraw()
      if (await git.land(this.#line, at.head, built.commit, id)) return this.#landed(built.commit, true)
    }
    throw new Error(`${this.#line.target} was moved ${MOST_MOVES} times while this was checked.`)
  }

  #withdraw(): Promise<void> {
    return this.#tell('merge_withdrawn', { reason: 'The task is no longer to be merged.' })
  }

  /** Told when the branch itself has it too, as far as it can: whoever hears that it has landed looks for it there. */
  async #landed(commit: string, moved: boolean): Promise<void> {
    const { behind, reason } = await follow(this.#ctx, this.#line)
    const checked = moved ? (this.#repo.checks ?? null) : null
    await this.#tell('merge_landed', { commit, moved, checked, behind, behind_reason: reason })
  }

  /** Undefined when it may land. */
  async #check(commit: string, base: string): Promise<Verdict | 'held' | undefined> {
    const { checks } = this.#repo
    if (!checks) return undefined
    const verdict = await this.#verdict(checks, commit)
    if (verdict.green) return undefined
    // Whoever lands on a tree that was red before is not to blame for it.
    const line = await mergeStore(this.#ctx.view).line(this.#repo.id, this.#line.target)
    if (line?.green !== base || line.green_by !== checks) {
      const alone = await this.#verdict(checks, base)
      if (!alone.green) {
        await this.#hold(`The checks fail on ${this.#line.target} itself, without anything that waits: ${alone.reason}`, alone.log)
        return 'held'
      }
    }
    return verdict
  }

  async #verdict(command: string, commit: string): Promise<Verdict> {
    const { git, runner } = this.#ctx.ports
    const names = this.#checkNames(commit)
    let verdict: Verdict | undefined
    for (const name of names) {
      if (verdict?.green) break
      const { state } = await runner.look(name)
      // One that a daemon before this one began is not to find its folder cleaned; each that begins finds the tree and nothing else.
      const begun = state === 'running' || state === 'ended'
      const cwd = begun ? undefined : (await git.scratch(this.#line.repo, scratchOf(this.#line.target), commit)).path
      verdict = await runChecks(this.#ctx, { name, command, cwd, timeoutMs: this.#how.timeoutMs })
    }
    // Not before: whoever comes back after the first would take the second for it.
    for (const name of names) await runner.forget(name)
    return verdict as Verdict
  }

  #checkNames(commit: string): string[] {
    return Array.from({ length: TRIES }, (_, tried) => `check-${this.#merge.id}-${commit.slice(0, 12)}-${tried + 1}`)
  }

  /** Checks of a tree that nobody asks about any more would go on in the folder of the next. */
  async #stopEarlier(): Promise<void> {
    const { runner } = this.#ctx.ports
    const { built, built_on } = this.#merge
    for (const name of [built, built_on].flatMap((commit) => (commit ? this.#checkNames(commit) : []))) {
      const { state } = await runner.look(name)
      if (state === 'absent') continue
      if (state === 'running') await runner.stop(name, 'stopped', 0)
      await runner.forget(name)
    }
  }

  /** What the commit says; undefined when it is decided otherwise by now. */
  async #said() {
    const task = await taskStore(this.#ctx.view).find(this.#merge.task_id)
    const review = await reviewStore(this.#ctx.view).find(this.#merge.review_id)
    if (!task || !review || task.status !== 'REVIEW' || task.deleted_at !== null) return undefined
    const message = `${handleOf(task)} ${task.title}\n\n${review.summary}`
    return { message, trailers: { 'Signalbox-Task': task.id, 'Signalbox-Review': review.id } }
  }

  async #hold(reason: string, log?: string): Promise<void> {
    await this.#ctx.report('line_hold', { merge_id: this.#merge.id, reason, log: log ?? null })
  }

  async #tell(tool: string, more: Record<string, unknown>): Promise<void> {
    await this.#ctx.report(tool, { merge_id: this.#merge.id, ...more })
  }
}

/** One for each line: two lines of one repository check at the same time. */
function scratchOf(target: string): string {
  return `line-${createHash('sha256').update(target).digest('hex').slice(0, 12)}`
}

function apart(target: string, files: string[]): string {
  return `${target} and its line both went on, and changed the same places: ${named(files.slice(0, MOST_FILES))}. Merge refs/signalbox/line/${target} into ${target}, resolve these files, commit, and let it go on with merge_retry.`
}
