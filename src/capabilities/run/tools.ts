import { z } from 'zod'
import { PageSize, PageToken } from '../../kernel/schema.ts'
import { defineTool } from '../../kernel/tool.ts'
import { TaskId } from '../ids.ts'
import { RunView } from './schema.ts'
import { runStore } from './store.ts'
import { runView } from './view.ts'

export const list = defineTool({
  name: 'run_list',
  title: 'List runs',
  description: 'The lives of the agents of a task, newest first: what each used, and how it ended.',
  input: z.strictObject({ task_id: TaskId, limit: PageSize, before: PageToken.optional() }),
  output: z.strictObject({ runs: z.array(RunView), next: z.string().nullable() }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const rows = await runStore(ctx.view).ofTask(input.task_id, input.before, input.limit)
    return { runs: rows.map((run) => runView(ctx, run)), next: rows.length === input.limit ? (rows.at(-1)?.id ?? null) : null }
  },
})
