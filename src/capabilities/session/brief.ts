import type { EffectContext } from '../../kernel/effect.ts'
import type { Place } from '../../ports/git.ts'
import { agentStore } from '../agent/index.ts'
import { brief } from '../job/index.ts'
import { projectStore } from '../project/index.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { workOf } from '../work/index.ts'
import { type SessionRow, sessionStore } from './store.ts'

const HOUSE_RULES = ['AGENTS.md', 'CLAUDE.md', 'CONTRIBUTING.md']
const MOST_NOTES = 50
const BOUNDARY_CHARACTERS = 20
const TOGETHER = 'A person sits at this terminal with you. Say in a few words what you would do first, and ask when something is not clear.'

/** What the agent of a terminal is told first: the brief of every agent, and that it is not alone. */
export async function briefFor(ctx: EffectContext, row: SessionRow, place: Place): Promise<string> {
  const { view } = ctx
  const task = await taskStore(view).find(row.task_id)
  const work = await workOf(view, row.task_id)
  const agent = await agentStore(view).agent(row.agent_id)
  const now = await sessionStore(view).find(row.id)
  if (!task || !work || !agent || !now) throw new Error(`the session ${row.id} has no task, work or agent`)
  const repo = await projectStore(view).repo(work.repo_id)
  const notes = await taskStore(view).notes(task.id, MOST_NOTES)
  const told = brief({
    boundary: row.id.slice(-BOUNDARY_CHARACTERS),
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
    before: undefined,
    message: now.message ?? undefined,
  })
  return `${told}\n\n${TOGETHER}`
}

async function nameOf(ctx: EffectContext, id: string): Promise<string> {
  const store = agentStore(ctx.view)
  return (id.startsWith('agent_') ? await store.agent(id) : await store.person(id))?.handle ?? id
}

async function present(ctx: EffectContext, place: Place): Promise<string[]> {
  const found = await Promise.all(HOUSE_RULES.map((name) => ctx.ports.git.file(place, name, 1)))
  return HOUSE_RULES.filter((_, i) => found[i] !== undefined)
}
