import type { EffectContext } from '../../kernel/effect.ts'
import type { Place } from '../../ports/git.ts'
import { agentStore } from '../agent/index.ts'
import { projectStore } from '../project/index.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { workOf } from '../work/index.ts'
import { brief } from './brief.ts'
import type { JobArguments } from './rules.ts'
import { jobStore, type RunRow, runStore } from './store.ts'

const HOUSE_RULES = ['AGENTS.md', 'CLAUDE.md', 'CONTRIBUTING.md']
const MOST_NOTES = 50
const BOUNDARY_CHARACTERS = 20

/** Everything that the agent of this run is told, as it is at its start. */
export async function briefFor(ctx: EffectContext, run: RunRow, place: Place): Promise<string> {
  const { view } = ctx
  const task = await taskStore(view).find(run.task_id)
  const job = await jobStore(view).find(run.job_id)
  const work = await workOf(view, run.task_id)
  const agent = run.agent_id ? await agentStore(view).agent(run.agent_id) : undefined
  if (!task || !job || !work || !agent) throw new Error(`the run ${run.id} has no task, job, work or agent`)
  const repo = await projectStore(view).repo(work.repo_id)
  const [before] = (await runStore(view).ofTask(task.id, run.id, 1)).filter((earlier) => earlier.kind === 'agent')
  const notes = await taskStore(view).notes(task.id, MOST_NOTES)
  return brief({
    boundary: run.id.slice(-BOUNDARY_CHARACTERS),
    agent: agent.handle,
    task: {
      handle: handleOf(task),
      title: task.title,
      description: task.description,
      criteria: JSON.parse(task.acceptance_criteria) as string[],
    },
    notes: await Promise.all(notes.map(async ({ author, body }) => ({ author: await nameOf(ctx, author), body }))),
    branch: work.branch,
    base: work.base_branch,
    houseRules: await present(ctx, place),
    checks: repo?.checks ?? null,
    before: before && (before.failure ?? before.exit_detail ?? before.exit_reason ?? 'it is not known how.'),
    message: (JSON.parse(job.arguments) as JobArguments).message,
  })
}

async function nameOf(ctx: EffectContext, id: string): Promise<string> {
  const store = agentStore(ctx.view)
  return (id.startsWith('agent_') ? await store.agent(id) : await store.person(id))?.handle ?? id
}

async function present(ctx: EffectContext, place: Place): Promise<string[]> {
  const found = await Promise.all(HOUSE_RULES.map((name) => ctx.ports.git.file(place, name, 1)))
  return HOUSE_RULES.filter((_, i) => found[i] !== undefined)
}
