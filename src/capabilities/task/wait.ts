import { z } from 'zod'
import { type Cursor, isEvent } from '../../kernel/event.ts'
import { CursorText, iso, TimeoutSeconds, Timestamp } from '../../kernel/schema.ts'
import { defineTool, type WatchContext } from '../../kernel/tool.ts'
import { TaskId } from '../ids.ts'
import { watchUntil } from '../until.ts'
import { type Status, StatusName, TaskSummary, taskDeleted, taskMoved } from './schema.ts'
import { type TaskRow, taskStore } from './store.ts'
import { summaries } from './view.ts'

const WaitCode = z.enum(['TASK_CHANGED', 'ALREADY_AT_STATUS', 'CHANGED_SINCE_CURSOR', 'WAIT_TIMEOUT', 'WAIT_INTERRUPTED', 'TASK_DELETED'])

export const wait = defineTool({
  name: 'task_wait',
  title: 'Wait for a task',
  description: 'Return when the status of a task changes. On WAIT_TIMEOUT with resume: true call again with the cursor.',
  input: z.strictObject({
    task_id: TaskId,
    timeout_seconds: TimeoutSeconds.optional(),
    wait_for_status: z.array(StatusName).min(1).max(4).nullable().optional().describe('Return only at one of these; default: any change'),
    from_updated_at: z.iso
      .datetime({ offset: true })
      .nullable()
      .optional()
      .describe('updated_at as you know it: a change since then returns at once'),
    cursor: CursorText.optional(),
  }),
  output: z.strictObject({
    changed: z.boolean(),
    timed_out: z.boolean(),
    task_id: TaskId,
    previous_status: StatusName,
    current_status: StatusName,
    changed_at: Timestamp.nullable(),
    task: TaskSummary.nullable(),
    code: WaitCode,
    resume: z.boolean().describe('The time you asked for is not over: call again with the cursor'),
    cursor: z.string(),
  }),
  example: { task_id: 'T-1', wait_for_status: ['REVIEW', 'DONE'], timeout_seconds: 600 },
  impact: 'read',
  profile: 'viewer',
  core: true,
  async watch(ctx, input) {
    let cursor = input.cursor ?? (await ctx.cursor())
    const start = await rowOf(ctx, input.task_id)
    const targets = input.wait_for_status ?? undefined
    const about = { task: start.id, types: [taskMoved.type, taskDeleted.type] }
    // A resumed wait began at its cursor: the status then is what the first event since then came from.
    const [first] = await ctx.tail(cursor, about, 1)
    const previous = (first?.data.from ?? start.status) as Status
    const answer = (code: z.output<typeof WaitCode>, row: TaskRow, resume = false) => result(ctx, previous, row, code, cursor, resume)

    if (start.deleted_at !== null) return answer('TASK_DELETED', start)
    if (targets?.includes(start.status)) return answer('ALREADY_AT_STATUS', start)
    if (input.from_updated_at && start.status_changed_at > Date.parse(input.from_updated_at)) return answer('CHANGED_SINCE_CURSOR', start)

    const seen = await watchUntil(ctx, {
      about: { task: start.id },
      types: [taskMoved, taskDeleted],
      withinMs: timeoutMs(ctx, input.timeout_seconds),
      from: cursor,
      look(events) {
        if (events.some((event) => isEvent(event, taskDeleted))) return 'TASK_DELETED' as const
        const reached = targets ? events.some((event) => targets.includes(event.data.to as Status)) : events.length > 0
        return reached ? ('TASK_CHANGED' as const) : undefined
      },
    })
    cursor = seen.cursor
    const row = await rowOf(ctx, start.id)
    if (seen.found) return answer(seen.found, row)
    return answer(seen.ended === 'interrupted' ? 'WAIT_INTERRUPTED' : 'WAIT_TIMEOUT', row, seen.ended !== 'timeout')
  },
})

async function rowOf(ctx: WatchContext, id: string): Promise<TaskRow> {
  const row = await taskStore(ctx.view).find(id)
  if (!row) throw new Error(`task ${id} vanished`)
  return row
}

async function result(ctx: WatchContext, previous: Status, row: TaskRow, code: z.output<typeof WaitCode>, cursor: Cursor, resume: boolean) {
  const changed = code === 'TASK_CHANGED' || code === 'CHANGED_SINCE_CURSOR' || code === 'TASK_DELETED'
  const [task] = row.deleted_at === null ? await summaries(ctx, [row]) : []
  return {
    changed,
    timed_out: code === 'WAIT_TIMEOUT',
    task_id: row.id,
    previous_status: previous,
    current_status: row.status,
    changed_at: changed ? iso(row.status_changed_at) : null,
    task: task ?? null,
    code,
    resume,
    cursor,
  }
}

function timeoutMs(ctx: WatchContext, seconds: number | undefined): number {
  const longest = ctx.setting<number>('general.tasks_wait_max_timeout_seconds')
  return Math.min(seconds ?? ctx.setting<number>('general.tasks_wait_default_timeout_seconds'), longest) * 1_000
}
