import { type Refusal, refuse } from '../../kernel/error.ts'
import { definePoint } from '../../kernel/point.ts'
import type { Reading } from '../../kernel/tool.ts'
import type { TaskRow } from './store.ts'

/** What a task, and the work on it, have to know of its epic. */
export interface EpicFacts {
  id: string
  handle: string
  project_id: string
  repo_id: string | null
  /** Where its tasks begin, and what they are merged into. */
  branch: string
  /** What that branch is in the end merged into. */
  base_branch: string
  /** What that branch is made from when it is not there: the base branch, or what was last merged into it before somebody deleted it. */
  branch_from: string
  /** Whether tasks may still be added to it. */
  open: boolean
  supervisor_id: string | null
}

type EpicSource = (ctx: Reading, id: string) => Promise<EpicFacts | undefined>

/** An epic knows its tasks, not the other way round. */
export const taskEpic = definePoint.one<EpicSource>('task.epic', async () => undefined)

export async function epicOf(ctx: Reading, task: Pick<TaskRow, 'epic_id'>): Promise<EpicFacts | undefined> {
  return task.epic_id === null ? undefined : ctx.ask(taskEpic, task.epic_id)
}

/** The epic that a new task is to be in. */
export async function requireOpenEpic(ctx: Reading, id: string): Promise<EpicFacts | Refusal> {
  const epic = await ctx.ask(taskEpic, id)
  if (!epic) return refuse('RESOURCE_NOT_FOUND', `There is no epic "${id}".`, { next_tool: 'epic_list', next_arguments: {} })
  if (epic.open) return epic
  return refuse('CONFLICT', `${epic.handle} takes no more tasks.`, {
    hint: 'Bring it back to IN_PROGRESS with epic_update, as far as it is not over.',
    next_tool: 'epic_get',
    next_arguments: { epic_id: epic.handle },
  })
}
