import { z } from 'zod'
import { defineEffect } from '../../kernel/effect.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { agentStore } from '../agent/index.ts'
import { takeTurn } from '../handle.ts'
import { TaskId } from '../ids.ts'
import { beginWork, isAtWork, jobStore, sentBack } from '../job/index.ts'
import { type TaskRow, taskStore } from '../task/index.ts'
import { newsSince } from './reconcile.ts'
import { launchOf } from './rules.ts'
import { epicStore } from './store.ts'

const MESSAGE = 'You have unread letters: mail_inbox lists them. Do what they ask for as far as it is yours to do.'
const MANY = 100

/** It will be started: later, in a transaction of its own, because whoever asks may hold what a start has to hold first. */
export async function wakeAgent(ctx: RunContext, agentId: string): Promise<'soon' | undefined> {
  if (!(await wakeable(ctx, agentId))) return undefined
  ctx.enqueue(wake({ agent_id: agentId }))
  return 'soon'
}

export const wake = defineEffect({
  type: 'agent.wake',
  payload: z.strictObject({ agent_id: z.string() }),
  attempts: MANY,
  async do(ctx, { agent_id }) {
    const task_id = (await agentStore(ctx.view).agent(agent_id))?.task_id
    if (task_id) await ctx.report(wakeUp, { agent_id, task_id })
  },
})

export const wakeUp = defineTool({
  name: 'agent_wake',
  title: 'Wake an idle agent',
  description: 'It goes on with its task, to read its letters.',
  // Held: whoever gives its work up at the same moment comes before this or after it.
  input: z.strictObject({ agent_id: z.string(), task_id: TaskId }),
  output: z.strictObject({}),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { agent_id, task_id }) {
    const agent = await agentStore(ctx.tx).agent(agent_id)
    if (agent?.epic_id) await takeTurn(ctx.tx, `epic:${agent.epic_id}`)
    const task = await wakeable(ctx, agent_id)
    if (task?.id !== task_id || !(await hasRoom(ctx, task))) return {}
    const epic = task.epic_id ? await epicStore(ctx.tx).find(task.epic_id) : undefined
    const launch = epic ? launchOf(epic, task.lead ? 'supervisor' : 'worker') : {}
    // What cannot be started is left: its letters wait for its next run.
    const [job] = await jobStore(ctx.tx).latest([task.id])
    const news = epic && task.lead && job ? await newsSince(ctx, epic, job.created_at) : undefined
    // The letter that wakes a worker is most likely about that, and the look at its epic starts nobody who is at work.
    const more = epic && !task.lead && task.status === 'IN_PROGRESS' ? sentBack(task) : news
    await beginWork(ctx, task, { ...launch, message: more ? `${more}\n\n${MESSAGE}` : MESSAGE })
    return {}
  },
})

/** Its task, when it may go on with that: neither handed in nor over, nobody is at work on it, and nobody has stopped it. */
async function wakeable(ctx: RunContext, agentId: string): Promise<TaskRow | undefined> {
  const agent = await agentStore(ctx.tx).agent(agentId)
  const task = agent?.task_id && agent.desired === 'running' ? await taskStore(ctx.tx).find(agent.task_id) : undefined
  if (!task || task.deleted_at !== null || (task.status !== 'IN_PROGRESS' && task.status !== 'BACKLOG')) return undefined
  const [job] = await jobStore(ctx.tx).latest([task.id])
  return isAtWork(job) || job?.state === 'cancelled' ? undefined : task
}

/** A worker of an epic counts among those that it may have at a time; without room it reads its letters in its next run. */
async function hasRoom(ctx: RunContext, task: TaskRow): Promise<boolean> {
  const epic = task.epic_id && !task.lead ? await epicStore(ctx.tx).find(task.epic_id) : undefined
  if (!epic) return true
  if (epic.state !== 'IN_PROGRESS') return false
  const tasks = await taskStore(ctx.tx).list({ epic: epic.id, statuses: ['BACKLOG', 'IN_PROGRESS', 'REVIEW'] }, 'number', undefined, 1_000)
  const jobs = await jobStore(ctx.tx).latest(tasks.map(({ id }) => id))
  return jobs.filter(isAtWork).length < epic.max_workers
}
