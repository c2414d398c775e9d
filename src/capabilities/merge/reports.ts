import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { sendLetter } from '../agent/index.ts'
import { takeTurn } from '../handle.ts'
import { followedTo } from '../project/index.ts'
import { about, handleOf, type TaskRow, taskStore, transition } from '../task/index.ts'
import { withdraw } from './cancel.ts'
import { type MovedMerge, mergeMoves, overtaken } from './points.ts'
import { lineFollowed, lineHeld, mergeChecking, mergeConflicted, mergeLanded, mergeRed, mergeStuck } from './schema.ts'
import { type MergeRow, type MergeState, mergeStore, OPEN_STATES } from './store.ts'
import { placesOf, printed } from './words.ts'

/** What the effect tells of a merge. Each is one transaction, and says the same when it is said again. */
const internal = { impact: 'write', profile: 'maintainer', internal: true, output: z.strictObject({}) } as const
const Told = z.strictObject({ merge_id: z.string() })

export const built = defineTool({
  ...internal,
  name: 'merge_built',
  title: 'Approved work is checked',
  description: 'It was merged away from every checkout, and the checks run on that tree.',
  input: Told.extend({ on: z.string(), commit: z.string() }),
  async run(ctx, { merge_id, on, commit }) {
    const { merge, task } = await open(ctx, merge_id)
    if (!merge) return {}
    if (merge.state === 'waiting') await mergeStore(ctx.tx).passOver(merge)
    const begun = { state: 'checking', built_on: on, built: commit, began_at: merge.began_at ?? ctx.now } as const
    await mergeStore(ctx.tx).update(merge.id, begun)
    await mergeStore(ctx.tx).saveLine({ ...lineOf(merge), head: on, landing: null, updated_at: ctx.now })
    ctx.emit(mergeChecking(...aboutMerge(merge, task, { commit, on })))
    return {}
  },
})

export const landed = defineTool({
  ...internal,
  name: 'merge_landed',
  title: 'Approved work was merged',
  description: 'It is on the line: the task is done, and whoever works on what is now older is told.',
  input: Told.extend({
    commit: z.string(),
    head: z.string().describe('Where the line stands'),
    moved: z.boolean(),
    checked: z.string().nullable().describe('The checks that passed on it'),
    behind: z.int(),
    behind_reason: z.string().nullable(),
  }),
  async run(ctx, { merge_id, commit, head, moved, checked, behind, behind_reason }) {
    const { merge, task } = await open(ctx, merge_id, LANDS)
    if (!merge) return {}
    const reason = moved ? null : `There was nothing to merge: ${merge.target} has all of it already.`
    // Of what was all there already, no commit is its own.
    const own = moved ? commit : null
    const over = await end(ctx, merge, task, { state: 'landed', built: own, reason }, commit)
    const line = { head, landing: null, ...(checked === null ? {} : { green: commit, green_by: checked }), behind, behind_reason }
    await mergeStore(ctx.tx).saveLine({ ...lineOf(merge), ...line, updated_at: ctx.now })
    if (task.status !== 'DONE' && task.deleted_at === null) await transition(ctx, task, 'DONE', null)
    const rebase_requests = moved ? await ctx.ask(overtaken, over) : 0
    ctx.emit(mergeLanded(...aboutMerge(merge, task, { commit, rebase_requests })))
    return {}
  },
})

export const conflict = defineTool({
  ...internal,
  name: 'merge_conflict',
  title: 'Approved work does not fit',
  description: 'Both sides have changed these files: it goes back to its worker.',
  input: Told.extend({ files: z.array(z.string()) }),
  async run(ctx, { merge_id, files }) {
    const { merge, task } = await open(ctx, merge_id)
    if (!merge) return {}
    await end(ctx, merge, task, { state: 'conflict', reason: `Conflicts in ${placesOf(files)}`, files: JSON.stringify(files) })
    ctx.emit(mergeConflicted(...aboutMerge(merge, task, { files })))
    return {}
  },
})

export const red = defineTool({
  ...internal,
  name: 'merge_red',
  title: 'The checks fail on the merged tree',
  description: 'Twice on that tree, and not without it: it goes back to its worker with the end of what they printed.',
  input: Told.extend({ reason: z.string(), log: z.string() }),
  async run(ctx, { merge_id, reason, log }) {
    const { merge, task } = await open(ctx, merge_id)
    if (!merge) return {}
    await end(ctx, merge, task, { state: 'red', reason, log })
    ctx.emit(mergeRed(...aboutMerge(merge, task, { reason })))
    return {}
  },
})

export const stuck = defineTool({
  ...internal,
  name: 'merge_stuck',
  title: 'Approved work cannot be merged',
  description: 'Git will not do it, however often: whoever decides sees why, and can decide again.',
  input: Told.extend({ reason: z.string() }),
  async run(ctx, { merge_id, reason }) {
    const { merge, task } = await open(ctx, merge_id)
    if (!merge) return {}
    await end(ctx, merge, task, { state: 'stuck', reason })
    ctx.emit(mergeStuck(...aboutMerge(merge, task, { reason })))
    return {}
  },
})

export const withdrawn = defineTool({
  ...internal,
  name: 'merge_withdrawn',
  title: 'Approved work is no longer to be merged',
  description: 'Its task was moved while it was in the line.',
  input: Told.extend({ reason: z.string() }),
  async run(ctx, { merge_id, reason }) {
    const { merge, task } = await open(ctx, merge_id)
    if (!merge) return {}
    await withdraw(ctx, task, reason)
    return {}
  },
})

export const hold = defineTool({
  ...internal,
  name: 'line_hold',
  title: 'A line is held',
  description: 'Nothing of it moves until a person has done something; nobody who waits is to blame.',
  input: Told.extend({ reason: z.string(), log: z.string().nullable() }),
  async run(ctx, { merge_id, reason, log }) {
    const { merge, task } = await open(ctx, merge_id)
    if (!merge) return {}
    await mergeStore(ctx.tx).update(merge.id, { state: 'waiting', built: null, built_on: null, log })
    await mergeStore(ctx.tx).saveLine({ ...lineOf(merge), held: reason, updated_at: ctx.now })
    ctx.emit(lineHeld({ subject: merge.repo_id, project: merge.project_id }, { repo_id: merge.repo_id, target: merge.target, reason }))
    const { project_id } = merge
    await sendLetter(ctx, {
      from: 'system',
      to: 'human',
      subject: `Nothing lands on ${merge.target}`,
      body: [reason, ...(log ? [printed(log)] : [])].join('\n\n'),
      importance: 'high',
      about: { project_id, epic_id: task.epic_id, task_id: null },
    })
    return {}
  },
})

export const follows = defineTool({
  ...internal,
  name: 'line_follows',
  title: 'A branch follows its line',
  description: 'Or says why it cannot, and how far it is behind.',
  input: z.strictObject({
    repo_id: z.string(),
    target: z.string(),
    request: z.string(),
    head: z.string().nullable().describe('What is checked out in the repository by then'),
    behind: z.int(),
    reason: z.string().nullable(),
  }),
  async run(ctx, { repo_id, target, request, head, behind, reason }) {
    const line = await mergeStore(ctx.tx).line(repo_id, target)
    if (!line) return {}
    await mergeStore(ctx.tx).saveLine({ ...line, behind, behind_reason: reason, updated_at: ctx.now })
    await followedTo(ctx, repo_id, head)
    ctx.emit(lineFollowed({ subject: repo_id, project: line.project_id }, { repo_id, target, request, behind, reason }))
    return {}
  },
})

/** What was taken out in the moment in which it landed has landed. */
const LANDS: MergeState[] = [...OPEN_STATES, 'withdrawn']

/** No merge when its end was told before. */
async function open(
  ctx: RunContext,
  id: string,
  states: readonly MergeState[] = OPEN_STATES,
): Promise<{ merge: MergeRow | undefined; task: TaskRow }> {
  await takeTurn(ctx.tx, `merge:${id}`)
  const merge = await mergeStore(ctx.tx).find(id)
  const task = merge && (await taskStore(ctx.tx).find(merge.task_id))
  if (!merge || !task) throw refuse('RESOURCE_NOT_FOUND', `There is no merge "${id}".`)
  return { merge: states.includes(merge.state) ? merge : undefined, task }
}

async function end(ctx: RunContext, merge: MergeRow, task: TaskRow, how: Partial<MergeRow>, commit?: string): Promise<MovedMerge> {
  const ended = { ...how, began_at: merge.began_at ?? ctx.now, ended_at: ctx.now }
  await mergeStore(ctx.tx).update(merge.id, ended)
  const over = { merge: { ...merge, ...ended }, task, commit }
  await ctx.ask(mergeMoves, over)
  return over
}

function lineOf({ repo_id, target, project_id, made_from, strategy }: MergeRow) {
  return { repo_id, target, project_id, made_from, strategy }
}

function aboutMerge<More extends object>({ id, target }: MergeRow, task: TaskRow, more: More) {
  return [
    { ...about(task), subject: id },
    { handle: handleOf(task), into: target, ...more },
  ] as const
}
