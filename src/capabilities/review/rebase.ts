import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import { Refusal, refuse } from '../../kernel/error.ts'
import { defineTool, type RunContext, type WatchContext } from '../../kernel/tool.ts'
import { GitRefusal } from '../../ports/git.ts'
import { TaskId } from '../ids.ts'
import { lineNow } from '../merge/index.ts'
import { projectStore } from '../project/index.ts'
import { about, epicOf, handleOf, taskStore } from '../task/index.ts'
import { watchUntil } from '../until.ts'
import { beginsAt, placeOf, requireFree, workOf } from '../work/index.ts'
import { another, headOf, toDecide } from './decide.ts'
import { REBASE_RESULTS, reviewRebased } from './schema.ts'
import { reviewStore } from './store.ts'

const REBASE_MS = 60_000
const MOST_FILES = 100
/** Daemons that are killed in the middle of it do not count. */
const ATTEMPTS = 100
/** What git refuses so often is told; a lock that somebody holds may be free by then. */
const REFUSALS = 4

export const rebaseWork = defineTool({
  name: 'review_rebase',
  title: 'Rebase work that was handed in',
  description:
    'Put the commits of work in REVIEW on top of what has landed since. A conflict is named with its files, and changes nothing.',
  input: z.strictObject({ task_id: TaskId }),
  output: z.strictObject({
    task_id: TaskId,
    status: z.enum([...REBASE_RESULTS, 'pending']).describe('even: it had all of it already'),
    commit: z.string().nullable().describe('Where its branch is now'),
    conflicts: z.array(z.string()),
    message: z.string(),
    cursor: z.string().describe('Where to go on waiting with event_wait'),
  }),
  example: { task_id: 'T-1' },
  impact: 'write',
  outcome: ({ status }) => (status === 'pending' ? status : status === 'rebased' || status === 'even' ? 'done' : 'failed'),
  profile: 'operator',
  prepare: (ctx, { task_id }) => headOf(ctx, task_id),
  async run(ctx: RunContext, { task_id }: { task_id: string }, seen?: { head: string | null }) {
    const handedIn = await toDecide(ctx, task_id)
    if (handedIn instanceof Refusal) return handedIn
    const { task, round } = handedIn
    if (round.decision === 'approve' && round.outcome === null)
      return refuse('CONFLICT', `${handleOf(task)} was approved: it is merged with what has landed by itself.`)
    const work = await workOf(ctx.tx, task.id)
    if (!work?.base_commit) return refuse('CONFLICT', `${handleOf(task)} has no branch of its own.`)
    await requireFree(ctx, work)
    // It would count as handed in from then on.
    if (seen?.head && round.handed_in && seen.head !== round.handed_in) return another(task, round, seen.head, round.handed_in)
    const request = ctx.id('rebase')
    // After feedback that is on its way, which moves the same branch.
    ctx.enqueue(rebaseOntoLine({ review_id: round.id, request }, { queue: `feedback:${task.id}` }))
    return { task_id: task.id, review_id: round.id, request }
  },
  watch: (ctx, _input, begun: Begun) => came(ctx, begun),
})

interface Begun {
  task_id: string
  review_id: string
  request: string
}

export const rebaseOntoLine = defineEffect({
  type: 'review.rebase',
  payload: z.strictObject({ review_id: z.string(), request: z.string() }),
  attempts: ATTEMPTS,
  // Once more it is even, or goes on where it was cut off.
  async do(ctx, { review_id, request }) {
    try {
      await ctx.report(rebased, { review_id, request, ...NOTHING, ...(await onto(ctx, review_id)) })
    } catch (error) {
      if (!(error instanceof GitRefusal) || (error.reason === 'busy' && ctx.attempt < REFUSALS)) throw error
      await ctx.report(rebased, { review_id, request, ...NOTHING, result: 'failed', reason: error.message.slice(0, 2_000) })
    }
  },
})

const NOTHING = { commit: null, base: null, files: [], reason: null }

type Told = z.input<typeof Rebased>

async function onto(ctx: EffectContext, review_id: string): Promise<Partial<Told> & Pick<Told, 'result'>> {
  const { git } = ctx.ports
  const round = await reviewStore(ctx.view).find(review_id)
  const task = round && (await taskStore(ctx.view).find(round.task_id))
  const work = task && (await workOf(ctx.view, task.id))
  const [place, repo] = work ? [await placeOf(ctx, work), await projectStore(ctx.view).repo(work.repo_id)] : []
  if (!task || !work || !place || !repo || task.status !== 'REVIEW') return { result: 'failed', reason: 'It is no longer in REVIEW.' }
  const epic = await epicOf(ctx, task)
  const target = epic?.branch ?? work.base_branch
  const line = { repo_id: repo.id, target, project_id: task.project_id, made_from: epic?.base_branch ?? null, strategy: work.strategy }
  const at = await lineNow(ctx, repo, line)
  if (at.state === 'foreign') return { result: 'failed', reason: `The line of ${target} is held: merge_status says why.` }
  if (at.state === 'apart')
    return { result: 'failed', reason: `${target} and its line both went on: merge them first (${at.files.join(', ')}).` }
  const done = await git.rebase(place, at.head, work.name)
  return done.result === 'conflict'
    ? { result: done.result, files: done.files.slice(0, MOST_FILES) }
    : { result: done.result, commit: done.head, base: at.head }
}

const Rebased = z.strictObject({
  review_id: z.string(),
  request: z.string(),
  result: z.enum(REBASE_RESULTS),
  commit: z.string().nullable(),
  base: z.string().nullable().describe('What has landed, below it'),
  files: z.array(z.string()),
  reason: z.string().nullable(),
})

export const rebased = defineTool({
  name: 'review_rebased',
  title: 'Work was rebased',
  description: 'Its branch is on top of what has landed, or it is said why not.',
  input: Rebased,
  output: z.strictObject({}),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { review_id, base, ...told }) {
    const round = await reviewStore(ctx.tx).find(review_id)
    const task = round && (await taskStore(ctx.tx).find(round.task_id))
    const work = task && (await workOf(ctx.tx, task.id))
    if (!round || !task || !work) throw refuse('RESOURCE_NOT_FOUND', `There is no review "${review_id}".`)
    // Shown from there, it has all that it will bring, and nothing else.
    if (base !== null) await beginsAt(ctx, work, base)
    // The same work, elsewhere: it is still what was handed in.
    if (told.result === 'rebased' && round.handed_in !== null) await reviewStore(ctx.tx).update(round.id, { handed_in: told.commit })
    ctx.emit(
      reviewRebased({ ...about(task), subject: round.id }, { handle: handleOf(task), round: round.round, onto: work.base_branch, ...told }),
    )
    return {}
  },
})

const MESSAGES: Record<(typeof REBASE_RESULTS)[number], string> = {
  rebased: 'Its commits are on top of what has landed.',
  even: 'It has all that has landed already.',
  conflict: 'Nothing was changed: what has landed changed the same places. Send it back with review_feedback, and name these files.',
  failed: 'Nothing was changed.',
}

async function came(ctx: WatchContext, { task_id, review_id, request }: Begun) {
  const { found: told, cursor } = await watchUntil(ctx, {
    about: { subject: review_id },
    types: [reviewRebased],
    withinMs: REBASE_MS,
    recent: 20,
    look: (events) => events.map(({ data }) => data as z.output<typeof reviewRebased.data>).find((data) => data.request === request),
  })
  if (!told)
    return { task_id, status: 'pending' as const, commit: null, conflicts: [], message: 'review.rebased tells when it is done.', cursor }
  const message = [MESSAGES[told.result], told.reason].filter(Boolean).join(' ')
  return { task_id, status: told.result, commit: told.commit, conflicts: told.files, message, cursor }
}
