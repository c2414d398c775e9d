import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { text } from '../../kernel/schema.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { takeTurn } from '../handle.ts'
import { MergeId, TaskId } from '../ids.ts'
import { about, handleOf, requireTask, type TaskRow } from '../task/index.ts'
import { mayDecide, mergeMoves } from './points.ts'
import { mergeWithdrawn } from './schema.ts'
import { isOpen, type MergeRow, mergeStore } from './store.ts'

export const cancel = defineTool({
  name: 'merge_cancel',
  title: 'Take work out of the merge line',
  description: 'Take approved work out of the merge line, also while it is checked: its checks are ended, and it can be decided anew.',
  input: z
    .strictObject({ task_id: TaskId.optional(), merge_id: MergeId.optional(), reason: text(500).optional() })
    .refine(({ task_id, merge_id }) => (task_id === undefined) !== (merge_id === undefined), 'name a task_id or a merge_id'),
  output: z.strictObject({ merge_id: z.string(), task_id: TaskId, message: z.string() }),
  example: { task_id: 'T-1', reason: 'Its checks hang.' },
  impact: 'write',
  profile: 'operator',
  async run(ctx, { task_id, merge_id, reason = 'It was taken out of the merge line.' }) {
    const store = mergeStore(ctx.tx)
    const merge = task_id ? await store.lastOf(task_id) : await store.find(merge_id as string)
    if (!merge) return refuse('RESOURCE_NOT_FOUND', 'That was never in a merge line.', { next_tool: 'merge_status', next_arguments: {} })
    const task = await requireTask(ctx, merge.task_id)
    const denied = await ctx.ask(mayDecide, task, merge)
    if (denied) return denied
    const handle = handleOf(task)
    if (!(await withdraw(ctx, task, reason)))
      return refuse('CONFLICT', `${handle} is not in the merge line: ${OVER[merge.state] ?? 'it is over'}.`, {
        next_tool: 'merge_status',
        next_arguments: { task_id: handle },
      })
    const message = `${handle} is out of the merge line, and its checks are ended. It is still in REVIEW: try it again, approve it anew, or send it back.`
    return { merge_id: merge.id, task_id: task.id, message }
  },
})

const OVER: Partial<Record<MergeRow['state'], string>> = {
  landed: 'it has landed',
  conflict: 'it conflicts, and went back to its worker',
  red: 'its checks failed, and it went back to its worker',
  stuck: 'git would not merge it',
  withdrawn: 'it was taken out',
}

/** Out of the line in this very step. Checks that run are ended by who runs them. Undefined when it is in none. */
export async function withdraw(ctx: RunContext, task: TaskRow, reason: string): Promise<MergeRow | undefined> {
  const merge = await openMergeOf(ctx, task.id)
  if (!merge) return undefined
  const ended = { state: 'withdrawn', reason, began_at: merge.began_at ?? ctx.now, ended_at: ctx.now } as const
  await mergeStore(ctx.tx).update(merge.id, ended)
  const withdrawn = { ...merge, ...ended }
  await ctx.ask(mergeMoves, { merge: withdrawn, task })
  ctx.emit(mergeWithdrawn({ ...about(task), subject: merge.id }, { handle: handleOf(task), into: merge.target, reason }))
  return withdrawn
}

/** What is to be merged, and is over by then. */
export async function withdrawEnded(ctx: RunContext, task: TaskRow): Promise<void> {
  await withdraw(ctx, task, task.deleted_at === null ? 'Its task was closed.' : 'Its task was deleted.')
}

/** Without a turn, one who takes it out and one who tells that it has landed could each overwrite the other. */
async function openMergeOf(ctx: RunContext, task: string): Promise<MergeRow | undefined> {
  const found = await mergeStore(ctx.tx).lastOf(task)
  if (!found || !isOpen(found)) return undefined
  await takeTurn(ctx.tx, `merge:${found.id}`)
  const merge = await mergeStore(ctx.tx).find(found.id)
  return merge && isOpen(merge) ? merge : undefined
}
