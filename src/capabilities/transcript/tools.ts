import { z } from 'zod'
import { type Refusal, refuse } from '../../kernel/error.ts'
import { inScope } from '../../kernel/policy.ts'
import { iso, PageSize, PageToken, text } from '../../kernel/schema.ts'
import { defineTool, type LookContext } from '../../kernel/tool.ts'
import { RunId, TaskId } from '../ids.ts'
import { reviewedBy, taskStore, withinTask } from '../task/index.ts'
import { EntryView } from './schema.ts'
import { type EntryRow, type Place, transcriptStore } from './store.ts'

const Page = PageToken.regex(/^run_[0-9a-z]+\.[0-9]{1,15}$/, 'not a page of a transcript').optional()
const Entries = z.strictObject({ entries: z.array(EntryView), next: z.string().nullable() })

export const read = defineTool({
  name: 'transcript_read',
  title: 'Read a transcript',
  description: 'What the agents of a task said and did, turn by turn, over all their runs or in one of them.',
  input: z
    .strictObject({
      task_id: TaskId.optional(),
      run_id: RunId.optional().describe('On its own: for a run without a task'),
      order: z.enum(['oldest', 'newest']).default('newest').describe('newest: from the end backwards'),
      limit: PageSize,
      after: Page,
    })
    .refine(({ task_id, run_id }) => task_id !== undefined || run_id !== undefined, 'name a task_id, a run_id, or both'),
  output: Entries,
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  // Own ones, and of a reviewer those of what it reviews: checkMayRead says who may.
  scope: 'open',
  async look(ctx, input) {
    const denied = await checkMayRead(ctx, input.task_id)
    if (denied) return denied
    const rows = await transcriptStore(ctx.view).page(input.task_id, input.run_id, input.order, placeOf(input.after), input.limit)
    return pageOf(rows, input.limit)
  },
})

export const search = defineTool({
  name: 'transcript_search',
  title: 'Search a transcript',
  description: 'Entries of the transcripts of a task that contain the words, newest first.',
  input: z.strictObject({ task_id: TaskId, words: text(200), limit: PageSize, after: Page }),
  output: Entries,
  example: { task_id: 'T-1', words: 'cookie' },
  impact: 'read',
  profile: 'viewer',
  // Own ones, and of a reviewer those of what it reviews: checkMayRead says who may.
  scope: 'open',
  async look(ctx, input) {
    const denied = await checkMayRead(ctx, input.task_id)
    if (denied) return denied
    const rows = await transcriptStore(ctx.view).search(input.task_id, input.words, placeOf(input.after), input.limit)
    return pageOf(rows, input.limit)
  },
})

async function checkMayRead(ctx: LookContext, id: string | undefined): Promise<Refusal | undefined> {
  if (id === undefined)
    return ctx.principal.kind === 'agent'
      ? refuse('PERMISSION_DENIED', 'Agents read the transcripts of tasks: name the task_id.')
      : undefined
  const task = await taskStore(ctx.view).find(id)
  if (!task || (await reviewedBy(ctx.view, ctx.principal)) === task.id) return undefined
  return inScope(ctx.principal, 'task', task.id, withinTask(task))
}

function placeOf(page: string | undefined): Place | undefined {
  const [run, number] = page?.split('.') ?? []
  return run ? { run, number: Number(number) } : undefined
}

function pageOf(rows: EntryRow[], limit: number): z.output<typeof Entries> {
  const last = rows.at(-1)
  const entries = rows.map(({ task_id: _, at, ...rest }) => ({ ...rest, at: iso(at) }))
  return { entries, next: last && rows.length === limit ? `${last.run_id}.${last.number}` : null }
}
