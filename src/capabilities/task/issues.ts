import { z } from 'zod'
import { Refusal } from '../../kernel/error.ts'
import { text } from '../../kernel/schema.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { ProjectId, TaskId } from '../ids.ts'
import { currentProject, noProject } from '../project/index.ts'
import { requireOpenEpic } from './epic.ts'
import { handleOf } from './rules.ts'
import { Title } from './schema.ts'
import { createTask } from './tools.ts'
import '../../ports/daemon.ts'

/** With its labels it is still as long as a description may be. */
const LONGEST_BODY = 8_000

const Issue = z.strictObject({
  title: Title,
  body: z.string().max(LONGEST_BODY),
  labels: z.array(text(50)).max(20).default([]).describe('Kept as the last line of the description'),
})

const Wanted = z.strictObject({
  issues: z.array(Issue).min(1).max(50),
  project_id: ProjectId.optional().describe('Default: the current project'),
})

/** On the local forge an issue is a task; its page is that of the task. */
export const createIssues = defineTool({
  name: 'issue_create',
  title: 'Create issues',
  description: 'Turn what was planned into tasks of the backlog, all or none: for planners, supervisors and people.',
  input: Wanted,
  output: z.strictObject({
    issues: z.array(
      z.strictObject({
        number: z.int(),
        handle: z.string(),
        task_id: TaskId,
        title: z.string(),
        url: z.string().describe('On the dashboard'),
      }),
    ),
  }),
  example: { issues: [{ title: 'Log in with a passkey', body: 'A wrong one is refused.', labels: ['security'] }] },
  impact: 'write',
  profile: 'planner',
  prepare: async (ctx) => ({ address: await ctx.ports.daemon.address() }),
  async run(ctx: RunContext, { issues, project_id }: z.output<typeof Wanted>, { address }: { address: string }) {
    const epic_id = ctx.principal.role === 'supervisor' ? ctx.principal.scope.epic : undefined
    const epic = epic_id ? await requireOpenEpic(ctx, epic_id) : undefined
    if (epic instanceof Refusal) return epic
    const project = epic?.project_id ?? project_id ?? (await currentProject(ctx.tx, ctx.principal))
    if (!project) return noProject()
    const created = []
    for (const { title, body, labels } of issues) {
      const description = labels.length ? `${body}\n\nLabels: ${labels.join(', ')}`.trim() : body
      const rest = { task_type: 'AUTO' as const, priority: 'medium' as const, acceptance_criteria: [], blocked_by: [] }
      const { id, number } = await createTask(ctx, project, { title, description, epic_id, ...rest })
      created.push({ number, handle: handleOf({ number }), task_id: id, title, url: `${address}/task/${id}` })
    }
    return { issues: created }
  },
})
