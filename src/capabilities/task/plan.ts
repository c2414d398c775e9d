import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { iso, isoOrNull, Timestamp, text } from '../../kernel/schema.ts'
import { defineTool } from '../../kernel/tool.ts'
import { PlanId, ProjectId, TaskId } from '../ids.ts'
import { currentProject, noProject } from '../project/index.ts'
import { Criteria, Description, Priority, planDecided, planProposed, TaskType, Title } from './schema.ts'
import { checkScript, checkStoredScript } from './script.ts'
import { taskStore } from './store.ts'
import { createTask } from './tools.ts'

const PlannedTask = z.strictObject({
  title: Title,
  description: Description.default(''),
  task_type: TaskType.default('AUTO'),
  acceptance_criteria: Criteria.default([]),
  priority: Priority.default('medium'),
  after: z.array(z.int().min(0).max(99)).max(20).default([]).describe('Positions in this list of the tasks that come first'),
})

const Todo = z.strictObject({ content: text(200), status: z.enum(['pending', 'in_progress', 'completed']).default('pending') })

const Proposal = z.strictObject({
  tasks: z.array(PlannedTask).min(1).max(100),
  todos: z.array(Todo).max(100).default([]),
})

export const propose = defineTool({
  name: 'plan_propose',
  title: 'Propose a plan',
  description: 'Hand in tasks for a person or an operator to accept with plan_accept.',
  input: Proposal.extend({ project_id: ProjectId.optional().describe('Default: the current project') }),
  output: z.strictObject({ plan_id: PlanId, status: z.literal('proposed'), tasks: z.int() }),
  example: { tasks: [{ title: 'Design the table' }, { title: 'Write the query', after: [0] }] },
  impact: 'write',
  profile: 'planner',
  async run(ctx, { project_id, ...proposal }) {
    const project = project_id ?? (await currentProject(ctx.tx, ctx.principal))
    if (!project) return noProject()
    checkOrder(proposal.tasks)
    const script = proposal.tasks.map(({ description }) => checkScript(ctx.principal, description)).find(Boolean)
    if (script) return script
    const id = ctx.id('plan')
    await taskStore(ctx.tx).insertPlan({
      id,
      project_id: project,
      proposed_by: ctx.principal.id,
      proposal: JSON.stringify(proposal),
      status: 'proposed',
      task_ids: '[]',
      created_at: ctx.now,
      decided_at: null,
      decided_by: null,
    })
    ctx.emit(planProposed({ subject: id, project }, { tasks: proposal.tasks.length }))
    return { plan_id: id, status: 'proposed' as const, tasks: proposal.tasks.length }
  },
})

export const get = defineTool({
  name: 'plan_get',
  title: 'Read a plan',
  description: 'What a plan proposes, by whom, and what became of it.',
  input: z.strictObject({ plan_id: PlanId }),
  output: Proposal.extend({
    plan_id: PlanId,
    status: z.enum(['proposed', 'accepted', 'rejected']),
    proposed_by: z.string(),
    task_ids: z.array(TaskId),
    created_at: Timestamp,
    decided_at: Timestamp.nullable(),
    decided_by: z.string().nullable(),
  }),
  example: { plan_id: 'plan_01jc80000000000000000000000000000000' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const plan = await taskStore(ctx.view).plan(input.plan_id)
    if (!plan) return refuse('RESOURCE_NOT_FOUND', 'There is no such plan.')
    const { status, proposed_by, decided_by } = plan
    const proposal = Proposal.parse(JSON.parse(plan.proposal))
    const times = { created_at: iso(plan.created_at), decided_at: isoOrNull(plan.decided_at) }
    return { plan_id: plan.id, ...proposal, status, proposed_by, task_ids: JSON.parse(plan.task_ids) as string[], ...times, decided_by }
  },
})

export const accept = defineTool({
  name: 'plan_accept',
  title: 'Accept or reject a plan',
  description: 'Turn a proposed plan into tasks, with their dependencies, in one step; or reject it.',
  input: z.strictObject({ plan_id: PlanId, accept: z.boolean().default(true) }),
  output: z.strictObject({
    plan_id: PlanId,
    status: z.enum(['accepted', 'rejected']),
    task_ids: z.array(TaskId),
    handles: z.array(z.string()),
  }),
  example: { plan_id: 'plan_01jc80000000000000000000000000000000', accept: true },
  impact: 'write',
  profile: 'operator',
  async run(ctx, input) {
    const store = taskStore(ctx.tx)
    const plan = await store.plan(input.plan_id)
    if (!plan) return refuse('RESOURCE_NOT_FOUND', 'There is no such plan.')
    if (plan.status !== 'proposed') return refuse('CONFLICT', `That plan was already ${plan.status}.`)
    const { tasks } = Proposal.parse(JSON.parse(plan.proposal))
    const created: { id: string; number: number }[] = []
    if (input.accept) {
      for (const { after, ...task } of tasks) {
        const script = await checkStoredScript(ctx.tx, plan.proposed_by, task.description)
        if (script) throw script
        created.push(await createTask(ctx, plan.project_id, { ...task, blocked_by: after.map((i) => created[i]?.id as string) }))
      }
    }
    const status = input.accept ? ('accepted' as const) : ('rejected' as const)
    const task_ids = created.map((task) => task.id)
    await store.decidePlan(plan.id, { status, task_ids: JSON.stringify(task_ids), decided_at: ctx.now, decided_by: ctx.principal.id })
    ctx.emit(planDecided({ subject: plan.id, project: plan.project_id }, { accepted: input.accept, task_ids }))
    return { plan_id: plan.id, status, task_ids, handles: created.map((task) => `T-${task.number}`) }
  },
})

/** A task may only come after ones that stand before it, so a plan can hold no circle. */
function checkOrder(tasks: z.output<typeof PlannedTask>[]): void {
  tasks.forEach((task, i) => {
    const bad = task.after.find((before) => before >= i)
    if (bad !== undefined)
      throw refuse('INVALID_INPUT', `tasks[${i}].after names ${bad}, which does not stand before it.`, {
        hint: 'Order the list so that what comes first stands first.',
      })
  })
}
