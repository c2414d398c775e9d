import { z } from 'zod'
import type { EffectContext } from '../../kernel/effect.ts'
import type { Tx } from '../../kernel/storage.ts'
import { defineTool, type Reading, type RunContext } from '../../kernel/tool.ts'
import { BASE_STRATEGIES, GitRefusal, type LineHead, type LineOf } from '../../ports/git.ts'
import { HUMAN, sendLetter } from '../agent/index.ts'
import { takeTurn } from '../handle.ts'
import { projectStore, type RepoRow } from '../project/index.ts'
import { taskStore } from '../task/index.ts'
import { type WorkRow, wasWorkedIn } from '../work/index.ts'
import { lineHeld, lineMoved } from './schema.ts'
import { type LineRow, mergeStore } from './store.ts'

export type Line = Pick<LineRow, 'repo_id' | 'target' | 'project_id' | 'made_from' | 'strategy'>

export function lineOf(
  repo: Pick<RepoRow, 'path'>,
  { target, made_from, strategy }: Pick<LineRow, 'target' | 'made_from' | 'strategy'>,
): LineOf {
  // What was merged into a branch of ours is on no remote yet.
  return made_from ? { repo: repo.path, target, base: made_from, strategy } : { repo: repo.path, target, strategy }
}

/** Where the line was told to stand last. Its ref can be moved by whoever works in the repository. */
export async function lineHeadOf({ view }: Reading, repo: string, target: string): Promise<string | null> {
  return (await mergeStore(view).line(repo, target))?.head ?? null
}

/** … and what is about to land: cut off before that was told, it has landed. */
export async function knownHeads(tx: Tx, { repo_id, target }: Line): Promise<string[]> {
  const line = await mergeStore(tx).line(repo_id, target)
  return [line?.head, line?.landing].filter((commit) => typeof commit === 'string')
}

/** Where the line stands, with what people committed on its branch; that is told. One that somebody else moved is held. */
export async function lineNow(ctx: EffectContext, repo: RepoRow, line: Line): Promise<LineHead> {
  const { repo_id, target, project_id, made_from, strategy } = line
  for (;;) {
    const known = await knownHeads(ctx.view, line)
    const at = await ctx.ports.git.line({ ...lineOf(repo, line), known })
    const told = { repo_id, target, project_id, made_from, strategy, head: at.head }
    if (at.state === 'ready' && at.moved) await ctx.report(stands, told)
    if (at.state !== 'foreign') return at
    // It may have landed between the two looks: then that was told by now.
    if ((await knownHeads(ctx.view, line)).join() !== known.join()) continue
    await ctx.report(foreign, told)
    return at
  }
}

/**
 * Where a line stands is recorded before its first worker can write to the repository: later, a forged branch could not be told from
 * an honest one. What git refuses here it refuses again when the worktree is made, and says so there.
 */
export async function beginLine(ctx: EffectContext, work: WorkRow, makeBranch: () => Promise<void>): Promise<void> {
  const { repo_id, project_id, strategy, base_branch, base_from } = work
  const repo = await projectStore(ctx.view).repo(repo_id)
  const isReview = (await taskStore(ctx.view).find(work.task_id))?.reviews_task_id
  if (!repo || isReview || (await lineHeadOf(ctx, repo_id, base_branch))) return makeBranch()
  const look = (target: string, made_from: string | null) =>
    lineNow(ctx, repo, { repo_id, target, project_id, made_from, strategy }).catch((error) => {
      if (!(error instanceof GitRefusal)) throw error
    })
  // A branch of ours then begins at what is known of the other.
  if (base_from) await look(base_from, null)
  await makeBranch()
  await look(base_branch, base_from)
}

/** Of a line that is held because of where it stands. */
export function movedElsewhere({ target, head }: Pick<LineRow, 'target' | 'head'>, found: string): string {
  const ref = `refs/signalbox/line/${target}`
  const back = head ? `\`git update-ref ${ref} ${head}\`` : `\`git update-ref -d ${ref}\``
  return `The line of ${target} is held: somebody has moved ${ref} to ${found}, which was not approved. Put it back with ${back}, then let it go on with merge_retry. If you have rewritten ${target} yourself, let the line begin anew there: merge_retry with anew.`
}

const internal = { impact: 'write', profile: 'maintainer', internal: true, output: z.strictObject({}) } as const
const Told = z.strictObject({
  repo_id: z.string(),
  target: z.string(),
  project_id: z.string(),
  made_from: z.string().nullable(),
  strategy: z.enum(BASE_STRATEGIES),
  head: z.string(),
})

export const stands = defineTool({
  ...internal,
  name: 'line_stands',
  title: 'A line has taken something in',
  description: 'People have committed on its branch. Whoever they are: a person is told.',
  input: Told,
  async run(ctx, { head, ...line }) {
    const store = mergeStore(ctx.tx)
    const before = (await store.line(line.repo_id, line.target))?.head ?? null
    if (before === head) return {}
    await store.saveLine({ ...line, head, landing: null, updated_at: ctx.now })
    if (before === null) return tellOfBegin(ctx, line, head)
    const { repo_id, target, project_id } = line
    ctx.emit(lineMoved({ subject: repo_id, project: project_id }, { repo_id, target, from: before, to: head }))
    await tellOfMove(ctx, line, before, head)
    return {}
  },
})

/** Of a line that nothing is known of, though agents were at work in the repository before. */
async function tellOfBegin(
  ctx: RunContext,
  { repo_id, target, project_id, made_from }: Line,
  head: string,
): Promise<Record<string, never>> {
  const below = made_from ? await lineHeadOf(ctx, repo_id, made_from) : null
  if (below === head || !(await wasWorkedIn(ctx.tx, repo_id))) return {}
  const repo = await projectStore(ctx.tx).repo(repo_id)
  const subject = `The line of ${target} of ${repo?.handle ?? repo_id} begins`
  const body = `The line of ${target} begins at ${head}, and agents were at work in ${repo?.path ?? repo_id} before. What it has:\n\n    git log ${below ? `${below}..` : ''}${head}\n\nIf you know these commits, there is nothing to do. If you do not: agents can write to the repository, and nobody has approved them.`
  await sendLetter(ctx, { from: 'system', to: HUMAN, subject, body, about: { project_id, epic_id: null, task_id: null } })
  return {}
}

/** Each time: somebody who has not read the last letter would not hear of what came after it. */
async function tellOfMove(ctx: RunContext, { repo_id, target, project_id }: Line, from: string, to: string): Promise<void> {
  const repo = await projectStore(ctx.tx).repo(repo_id)
  const subject = `${target} of ${repo?.handle ?? repo_id} was moved`
  const body = `Somebody has committed on ${target}, past the merge line, and its line has taken that in. What came, in ${repo?.path ?? repo_id}:\n\n    git log ${from}..${to}\n\nIf that was you, there is nothing to do. If it was not: agents can write to the repository, and nobody has approved it.`
  await sendLetter(ctx, { from: 'system', to: HUMAN, subject, body, about: { project_id, epic_id: null, task_id: null } })
}

export const foreign = defineTool({
  ...internal,
  name: 'line_foreign',
  title: 'A line was moved by somebody else',
  description: 'It stands where Signalbox has not put it: nothing lands and nothing follows until a person has put it back.',
  input: Told,
  async run(ctx, { head, ...line }) {
    const store = mergeStore(ctx.tx)
    const before = await store.line(line.repo_id, line.target)
    const reason = movedElsewhere({ target: line.target, head: before?.head ?? null }, head)
    if (before?.held === reason) return {}
    await store.saveLine({ ...line, held: reason, updated_at: ctx.now })
    const { repo_id, target, project_id } = line
    ctx.emit(lineHeld({ subject: repo_id, project: project_id }, { repo_id, target, reason }))
    const about = { project_id, epic_id: null, task_id: null }
    await sendLetter(ctx, { from: 'system', to: HUMAN, subject: `Nothing lands on ${target}`, body: reason, importance: 'high', about })
    return {}
  },
})

export const passed = defineTool({
  ...internal,
  name: 'merge_passed',
  title: 'Approved work has passed its checks',
  description: 'It is about to land, unless it was taken out: a line that stands there was not moved by somebody else.',
  input: z.strictObject({ merge_id: z.string(), commit: z.string(), checks: z.string().nullable() }),
  output: z.strictObject({ lands: z.boolean() }),
  async run(ctx, { merge_id, commit, checks }) {
    const store = mergeStore(ctx.tx)
    await takeTurn(ctx.tx, `merge:${merge_id}`)
    const merge = await store.find(merge_id)
    if (merge?.state !== 'checking' || merge.built !== commit) return { lands: false }
    const { repo_id, target, project_id, made_from, strategy } = merge
    const line = { repo_id, target, project_id, made_from, strategy }
    const green = checks === null ? {} : { green: commit, green_by: checks }
    await store.saveLine({ ...line, landing: commit, ...green, updated_at: ctx.now })
    return { lands: true }
  },
})
