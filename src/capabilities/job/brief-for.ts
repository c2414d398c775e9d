import type { EffectContext } from '../../kernel/effect.ts'
import type { Place } from '../../ports/git.ts'
import { agentStore } from '../agent/index.ts'
import { projectStore } from '../project/index.ts'
import { type RunRow, runStore } from '../run/index.ts'
import { portsOf } from '../setup/index.ts'
import { epicOf, handleOf, type TaskRow, taskStore } from '../task/index.ts'
import { workOf } from '../work/index.ts'
import { brief } from './brief.ts'
import { handIns } from './handed-in.ts'
import { type JobArguments, taskOf } from './rules.ts'
import { jobStore } from './store.ts'

const HOUSE_RULES = ['AGENTS.md', 'CLAUDE.md', 'CONTRIBUTING.md']
const MOST_NOTES = 50

/** Everything that the agent of this run is told, as it is at its start. */
export async function briefFor(ctx: EffectContext, run: RunRow, place: Place): Promise<string> {
  const job = await jobStore(ctx.view).find(run.owner_id)
  if (!job) throw new Error(`the run ${run.id} has no job`)
  const [before] = (await runStore(ctx.view).ofTask(taskOf(run), run.id, 1)).filter((earlier) => earlier.kind === 'agent')
  return briefOn(ctx, { ...run, task_id: taskOf(run) }, place, {
    before: before && (before.failure ?? before.exit_detail ?? before.exit_reason ?? 'it is not known how.'),
    message: (JSON.parse(job.arguments) as JobArguments).message,
  })
}

/** The same for whoever is put to work on a task. */
export async function briefOn(
  ctx: EffectContext,
  { id, task_id, agent_id }: { id: string; task_id: string; agent_id: string | null },
  place: Place,
  more: Pick<Parameters<typeof brief>[0], 'before' | 'message'>,
): Promise<string> {
  const { view } = ctx
  const task = await taskStore(view).find(task_id)
  const work = await workOf(view, task_id)
  const agent = agent_id ? await agentStore(view).agent(agent_id) : undefined
  if (!task || !work || !agent) throw new Error(`${id} has no task, work or agent`)
  const repo = await projectStore(view).repo(work.repo_id)
  const notes = await taskStore(view).notes(task.id, MOST_NOTES)
  return brief({
    agent: agent.handle,
    task: {
      handle: handleOf(task),
      title: task.title,
      description: task.description,
      criteria: JSON.parse(task.acceptance_criteria) as string[],
    },
    notes: await Promise.all(notes.map(async ({ author, body }) => ({ author: await nameOf(ctx, author), body }))),
    branch: work.branch,
    ports: await portsOf(view, work),
    base: work.base_branch,
    houseRules: await present(ctx, place),
    checks: repo?.checks ?? null,
    leads: task.lead ? await epicOf(ctx, task) : undefined,
    reviews: await reviewedOn(ctx, task),
    ...more,
  })
}

/** What the agent of the task was started to review. */
async function reviewedOn(ctx: EffectContext, { id, reviews_task_id }: TaskRow) {
  const reviewed = reviews_task_id ? await taskStore(ctx.view).find(reviews_task_id) : undefined
  const round = reviewed && (await ctx.ask(handIns, reviewed.id)).find(({ reviewer_task_id }) => reviewer_task_id === id)
  return round && { handle: handleOf(reviewed), round: round.round }
}

async function nameOf(ctx: EffectContext, id: string): Promise<string> {
  const store = agentStore(ctx.view)
  return (id.startsWith('agent_') ? await store.agent(id) : await store.person(id))?.handle ?? id
}

async function present(ctx: EffectContext, place: Place): Promise<string[]> {
  const found = await Promise.all(HOUSE_RULES.map((name) => ctx.ports.git.file(place, name, 1)))
  return HOUSE_RULES.filter((_, i) => found[i] !== undefined)
}
