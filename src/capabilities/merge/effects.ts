import { createHash } from 'node:crypto'
import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import type { TypedTool } from '../../kernel/tool.ts'
import { type Build, GitRefusal, type LineOf, type MergeMethod } from '../../ports/git.ts'
import { type Belonging, confirming, listed, projectStore, proposalAt, type RepoRow, repoView, stillProposed } from '../project/index.ts'
import { committedCopies, environmentOf, lineHolder } from '../setup/index.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { Elsewhere, madeElsewhere, workOf } from '../work/index.ts'
import { type Commands, endChecks, greenBy, runChecks, type Verdict } from './checks.ts'
import { nextInLine } from './order.ts'
import {
  conflict,
  landed,
  follows as lineFollows,
  hold as lineHold,
  built as markBuilt,
  red as markRed,
  stuck,
  withdrawn,
} from './reports.ts'
import { knownHeads, type Line, lineHeadOf, lineNow, lineOf, movedElsewhere, passed } from './stands.ts'
import { isOpen, type MergeRow, mergeStore } from './store.ts'
import { goOn, named } from './words.ts'

/** Daemons that are killed in the middle of it do not count. */
const ATTEMPTS = 100
/** What git refuses so often is told; a lock that somebody holds may be free by then. */
const REFUSALS = 4
const MOST_FILES = 100
/** What changes while the checks run has them run again; so often in a row, then the line takes a breath. */
const MOST_LOOKS = 20
/** A check that fails is asked once more: one that is red by chance blames nobody. */
const TRIES = 2
/** So many of the last that were taken out of a line may have left something running. */
const MOST_LEFT = 20

export const queueOf = (repo: string, target: string) => `line:${repo}:${target}`

/** Works off one line: builds, checks and lands one after the other, until none waits or the line is held. */
export const workOffLine = defineEffect({
  type: 'line.work',
  // Not strict: what an older version has enqueued says more.
  payload: z.object({ repo_id: z.string(), target: z.string() }),
  attempts: ATTEMPTS,
  // Each step knows its earlier self: by the row, the trailers of the commit, and the name of the check.
  async do(ctx, { repo_id, target }) {
    const store = mergeStore(ctx.view)
    // A daemon that was killed may have had no time to end them.
    await endChecks(ctx, (await store.withdrawn(repo_id, target, MOST_LEFT)).flatMap(checkNamesOf))
    for (;;) {
      if ((await store.line(repo_id, target))?.held) return
      const merge = nextInLine(await store.inLine(repo_id, target))
      if (!merge) return
      const repo = await projectStore(ctx.view).repo(repo_id)
      if (!repo) throw new Error(`the repository ${repo_id} is not there`)
      try {
        await new Passage(ctx, repo, merge).go()
      } catch (error) {
        const passes = error instanceof GitRefusal && error.reason === 'busy' && ctx.attempt < REFUSALS
        if (!(error instanceof GitRefusal) || passes) throw error
        await requireHere(ctx, merge)
        const told = { merge_id: merge.id, reason: error.message.slice(0, 2_000) }
        // Of no use to the next either: the repository has lost something.
        if (error.reason === 'damaged') await ctx.report(lineHold, { ...told, log: null })
        else await ctx.report(stuck, told)
      }
    }
  },
})

/** On the host that has the work git may find what it did not find here. */
async function requireHere(ctx: EffectContext, { task_id }: MergeRow): Promise<void> {
  const work = await workOf(ctx.view, task_id)
  if (work && madeElsewhere(ctx, work)) throw new Elsewhere(work.host as string)
}

export const followQueue = (repo: string, target: string) => `follow:${repo}:${target}`

/** The user's branch goes where its line is, as far as that harms nobody. */
export const followLine = defineEffect({
  type: 'line.follow',
  payload: z.strictObject({ repo_id: z.string(), target: z.string(), request: z.string() }),
  attempts: ATTEMPTS,
  async do(ctx, { repo_id, target, request }) {
    const repo = await projectStore(ctx.view).repo(repo_id)
    const line = await mergeStore(ctx.view).line(repo_id, target)
    if (!repo || repo.removed_from !== null || !line) return
    const followed = await follow(ctx, repo, line, 'with what people committed')
    const head = (await ctx.ports.git.inspect(repo.path))?.head ?? null
    await ctx.report(lineFollows, { repo_id, target, request, head, ...followed })
  },
})

/** What has landed has landed, whatever keeps the branch from following it. */
async function follow(
  ctx: EffectContext,
  repo: RepoRow,
  line: Line,
  how?: 'with what people committed',
): Promise<{ behind: number; reason: string | null }> {
  try {
    // Else branch and line would stay apart until something else lands.
    const at = how && (await lineNow(ctx, repo, line))
    const followed = await ctx.ports.git.follow({ ...lineOf(repo, line), known: await knownHeads(ctx.view, line) })
    if (at?.state === 'foreign') {
      const head = await lineHeadOf(ctx, repo.id, line.target)
      return { behind: followed.state === 'even' ? 0 : followed.by, reason: movedElsewhere({ ...line, head }, at.head) }
    }
    return followed.state === 'even' ? { behind: 0, reason: null } : { behind: followed.by, reason: followed.message.slice(0, 2_000) }
  } catch (error) {
    if (!(error instanceof GitRefusal)) throw error
    return { behind: 1, reason: error.message.slice(0, 2_000) }
  }
}

/** The checkouts for the checks of a repository that is removed. What is gone with its folder is gone. */
export const dropCheckouts = defineEffect({
  type: 'line.drop',
  payload: z.strictObject({ repo: z.string(), target: z.string() }),
  attempts: REFUSALS,
  async do(ctx, { repo, target }) {
    if (await ctx.ports.git.inspect(repo)) await ctx.ports.git.dropScratch(repo, scratchOf(target))
  },
})

/** Behind what the line still does there. */
const lines: Belonging = {
  open: async () => [],
  async end(ctx, { repo: id, project }) {
    const repo = id && (await projectStore(ctx.tx).repo(id))
    if (!repo) return
    for (const { target } of await mergeStore(ctx.tx).lines(project, id))
      ctx.enqueue(dropCheckouts({ repo: repo.path, target }, { queue: queueOf(id, target) }))
  },
}

export const linesOfRepo = async () => lines

interface Wanted {
  merge: MergeRow
  /** What the commit says. */
  said: Pick<Build, 'message' | 'trailers'>
  /** The command that has to pass. */
  checks: string | null
  /** The command that makes its checkout ready. */
  setup: string | null
}

function checkNamesOf({ id, built, built_on }: MergeRow): string[] {
  return [built, built_on].flatMap((commit) => (commit ? checkNames(id, commit) : []))
}

function checkNames(merge: string, commit: string): string[] {
  return Array.from({ length: TRIES }, (_, tried) => `check-${merge}-${commit.slice(0, 12)}-${tried + 1}`)
}

/** Checks may need an `.env`, too; those that worktrees get are not copied for them. */
function noFiles(handle: string, { files, check_files }: { files: string[]; check_files: string[] }): string | undefined {
  const command = confirming(handle, { check_files: check_files.length ? check_files : files })
  return command && `Checks get no files that git ignores. If they need these, run:\n${command}\nOr correct`
}

/** One merge on its way through the line. */
class Passage {
  readonly #ctx: EffectContext
  readonly #repo: RepoRow
  readonly #merge: MergeRow
  readonly #line: LineOf

  constructor(ctx: EffectContext, repo: RepoRow, merge: MergeRow) {
    this.#ctx = ctx
    this.#repo = repo
    this.#merge = merge
    this.#line = lineOf(repo, merge)
  }

  async go(): Promise<void> {
    const { git } = this.#ctx.ports
    const { task_id: keep, head_commit } = this.#merge
    const from = (await workOf(this.#ctx.view, this.#merge.task_id))?.base_commit ?? undefined
    const method = await this.#ctx.setting<MergeMethod>('merge.method')
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      const wanted = await this.#wanted()
      if (!wanted) return this.#withdraw()
      const at = await lineNow(this.#ctx, this.#repo, this.#merge)
      if (at.state === 'foreign') return
      if (at.state === 'apart') return this.#hold(apart(this.#line.target, at.files))
      const copies = await committedCopies(git, { ...this.#repo, path: this.#line.repo }, at.head, head_commit)
      if (copies.length) return this.#tell(stuck, { reason: copied(copies) })
      const { said, merge } = wanted
      const before = merge.state === 'checking' && merge.built_on === at.head ? merge.built : null
      const built = before
        ? { result: 'built' as const, commit: before }
        : await git.build({ line: this.#line, commit: head_commit, onto: at.head, from, keep, method, ...said })
      if (built.result === 'conflict') return this.#tell(conflict, { files: built.files.slice(0, MOST_FILES) })
      if (built.result === 'nothing' || built.result === 'landed') await git.keep(this.#line.repo, keep, null)
      if (built.result === 'nothing') return this.#landed({ commit: at.head, head: at.head, moved: false }, null)
      if (built.result === 'landed') return this.#landed({ commit: built.commit, head: at.head, moved: true }, this.#greenBy(wanted))
      if (!before) await endChecks(this.#ctx, checkNamesOf(merge))
      if (!before) await this.#tell(markBuilt, { on: at.head, commit: built.commit })
      const red = wanted.checks === null ? undefined : await this.#check(wanted, built.commit, at.head)
      if (red === 'held') return
      if (red === 'stale') continue
      // Nobody knows what its checks would have said: it is not sent back for that.
      if (red?.notReady) return this.#tell(stuck, { reason: `With this work in it, a fresh checkout cannot be set up. ${red.reason}` })
      if (red) return this.#tell(markRed, { reason: red.reason, log: red.log })
      // Taken out, closed, deleted or moved while the checks ran: it is wanted no more.
      if (!(await this.#wanted())) return this.#withdraw()
      if (!(await this.#passed(built.commit, this.#greenBy(wanted)))) return this.#withdraw()
      if (await git.land(this.#line, at.head, built.commit, keep))
        return this.#landed({ commit: built.commit, head: built.commit, moved: true }, this.#greenBy(wanted))
    }
    throw new Error(`${this.#line.target} or its checks were changed ${MOST_LOOKS} times while this was checked.`)
  }

  #withdraw(): Promise<void> {
    return this.#tell(withdrawn, { reason: 'The task is no longer to be merged.' })
  }

  async #passed(commit: string, checks: string | null): Promise<boolean> {
    const { lands } = await this.#ctx.report(passed, { merge_id: this.#merge.id, commit, checks })
    return lands === true
  }

  /** Told when the branch itself has it too, as far as it can: whoever hears that it has landed looks for it there. */
  async #landed(what: { commit: string; head: string; moved: boolean }, checked: string | null): Promise<void> {
    const { behind, reason } = await follow(this.#ctx, this.#repo, this.#merge)
    await this.#tell(landed, { ...what, checked, behind, behind_reason: reason })
  }

  #greenBy({ checks, setup }: Wanted): string | null {
    return checks === null ? null : greenBy({ checks, setup }, this.#repo.check_files)
  }

  /** Undefined when it may land. */
  async #check(wanted: Wanted, commit: string, base: string): Promise<Verdict | 'held' | 'stale' | undefined> {
    const { checks, setup } = wanted
    const command = checks as string
    const by = this.#greenBy(wanted)
    const line = await mergeStore(this.#ctx.view).line(this.#repo.id, this.#line.target)
    // Cut off before it landed: they have passed.
    if (line?.green === commit && line.green_by === by) return undefined
    const verdict = await this.#verdict({ checks: command, setup }, commit, false)
    if (verdict === 'stale') return verdict
    if (verdict.green) return undefined
    // Whoever lands on a tree that was red before is not to blame for it.
    if (line?.green === base && line.green_by === by) return verdict
    const alone = await this.#verdict({ checks: command, setup }, base, true)
    if (alone === 'stale') return alone
    if (alone.green) return verdict
    await this.#hold(await this.#whyHeld(alone, base, setup), alone.log)
    return 'held'
  }

  /** Checks that fail because nothing was installed are mended by a setup, not in the code. */
  async #whyHeld(alone: Verdict, base: string, setup: string | null): Promise<string> {
    const { target, repo: path } = this.#line
    const { handle } = this.#repo
    const thenGoOn = `then let the line go on:\n${goOn(handle, target)}`
    if (alone.notReady)
      return `A fresh checkout of ${target} cannot be set up. ${alone.reason}\nCorrect ${target} or the setup of ${handle}, ${thenGoOn}`
    const repo = await projectStore(this.#ctx.view).repo(this.#repo.id)
    const found = await proposalAt(this.#ctx.ports.git, path, base)
    const proposed = repo && stillProposed(found, repoView(repo))
    const command = setup === null && proposed?.setup ? confirming(handle, proposed) : undefined
    const mend = command
      ? `A fresh checkout has only what git carries, and ${handle} has no setup. Suggested by ${listed(proposed?.because ?? [])}:\n${command}\nRun it, ${thenGoOn}`
      : `${(repo?.check_files === '[]' && noFiles(handle, found)) || 'Correct'} ${target}, ${thenGoOn}`
    return `${target} itself fails its checks, without any of the queued work: ${alone.reason} ${mend}`
  }

  async #verdict({ checks, setup }: Commands, commit: string, hasLanded: boolean): Promise<Verdict | 'stale'> {
    const { git, runner } = this.#ctx.ports
    const names = checkNames(this.#merge.id, commit)
    let verdict: Verdict | 'stale' | undefined
    for (const name of names) {
      // Each that begins finds the tree and nothing else.
      const checkout = async () => (await git.scratch(this.#line.repo, scratchOf(this.#line.target), commit)).path
      const isWanted = async (asked: Commands) => {
        const wanted = await this.#wanted()
        return wanted?.checks === asked.checks && wanted.setup === asked.setup
      }
      const env = await environmentOf(
        this.#ctx,
        lineHolder(this.#repo.id, this.#line.target),
        `${this.#repo.handle}-checks-${scratchOf(this.#line.target).slice(-6)}`,
      )
      const repo = { ...this.#repo, path: this.#line.repo, setup }
      verdict = await runChecks(this.#ctx, { name, command: checks, commit, hasLanded, checkout, repo, env, isWanted })
      if (verdict === 'stale' || verdict.green) break
    }
    // Not before: whoever comes back after the first would take the second for it.
    for (const name of names) await runner.forget(name)
    return verdict as Verdict | 'stale'
  }

  /** As it is now; undefined when it was taken out, or its task is no longer to be merged. */
  async #wanted(): Promise<Wanted | undefined> {
    const { view } = this.#ctx
    const merge = await mergeStore(view).find(this.#merge.id)
    const task = await taskStore(view).find(this.#merge.task_id)
    if (!merge || !isOpen(merge) || !task || task.status !== 'REVIEW' || task.deleted_at !== null) return undefined
    const message = [`${handleOf(task)} ${task.title}`, merge.summary].filter(Boolean).join('\n\n')
    const said = { message, trailers: { 'Signalbox-Task': task.id, 'Signalbox-Review': merge.review_id } }
    const repo = await projectStore(view).repo(this.#repo.id)
    return { merge, said, checks: repo?.checks ?? null, setup: repo?.setup ?? null }
  }

  async #hold(reason: string, log?: string): Promise<void> {
    await this.#ctx.report(lineHold, { merge_id: this.#merge.id, reason, log: log ?? null })
  }

  async #tell<I extends z.ZodObject, O extends z.ZodObject>(
    tool: Pick<TypedTool<string, I, O>, 'name' | 'input' | 'output'>,
    more: Omit<z.input<I>, 'merge_id'>,
  ): Promise<void> {
    await this.#ctx.report(tool, { merge_id: this.#merge.id, ...more } as z.input<I>)
  }
}

/** One for each line: two lines of one repository check at the same time. */
function scratchOf(target: string): string {
  return `line-${createHash('sha256').update(target).digest('hex').slice(0, 12)}`
}

function apart(target: string, files: string[]): string {
  return `${target} and its line both went on, and changed the same places: ${named(files.slice(0, MOST_FILES))}. Merge refs/signalbox/line/${target} into ${target}, resolve these files, commit, and let it go on with merge_retry.`
}

function copied(files: string[]): string {
  return `It would land files that were only copied into the worktree: ${named(files.slice(0, 10))}. Remove them from its commits, and ask for review again.`
}
