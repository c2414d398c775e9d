import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { defineTool } from '../../kernel/tool.ts'
import { EpicId, PrId, TaskId } from '../ids.ts'
import { prView } from './pull-requests.ts'
import { PrView } from './schema.ts'
import { prStore } from './store.ts'
import '../../ports/daemon.ts'

export const getPr = defineTool({
  name: 'pr_get',
  title: 'Read a pull request',
  description: 'The pull request of the work on a task, or of a finished epic. Give one of the three.',
  input: z
    .strictObject({ task_id: TaskId.optional(), epic_id: EpicId.optional(), pr_id: PrId.optional() })
    .refine((input) => Object.values(input).filter(Boolean).length === 1, 'name exactly one of task_id, epic_id, pr_id'),
  output: z.strictObject({ pr: PrView }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { task_id, epic_id, pr_id }) {
    const store = prStore(ctx.view)
    const row = task_id ? await store.ofTask(task_id) : epic_id ? await store.ofEpic(epic_id) : await store.find(pr_id as string)
    if (!row)
      return refuse('RESOURCE_NOT_FOUND', 'There is no pull request for that yet.', {
        hint: 'That of a task comes with review_request, that of an epic when it is handed in.',
      })
    return { pr: prView(row, await ctx.ports.daemon.address()) }
  },
})
