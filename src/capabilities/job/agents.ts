import { z } from 'zod'
import { Refusal, refuse } from '../../kernel/error.ts'
import type { Tx } from '../../kernel/storage.ts'
import { defineTool, type Reading, type RunContext } from '../../kernel/tool.ts'
import { type AgentFacts, type AgentRow, AgentView, agentStore, agentView, factsOf, wantAgent } from '../agent/index.ts'
import { AgentId } from '../ids.ts'
import { programFor } from '../programs.ts'
import { askToStop, isLiving, type RunRow, runStore } from '../run/index.ts'
import { handleOf, isDuty, type TaskRow, taskStore } from '../task/index.ts'
import { workOf } from '../work/index.ts'
import { cancelJob } from './admission.ts'
import { presenceOf } from './presence.ts'
import type { JobArguments } from './rules.ts'
import { jobStore } from './store.ts'
import { beginWork } from './submit.ts'

const Wanted = z.strictObject({ agent_id: AgentId, agent: AgentView, job_id: z.string().nullable(), message: z.string() })

export const startAgent = defineTool({
  name: 'agent_start',
  title: 'Start an agent',
  description:
    'Let an agent that Signalbox runs go on with its task, in its own worktree. It stays started: when it dies, it is started again.',
  input: z.strictObject({ agent_id: AgentId }),
  output: Wanted,
  example: { agent_id: 'worker-1' },
  impact: 'write',
  profile: 'operator',
  async prepare(ctx, { agent_id }) {
    // Whoever has run goes on by the same program.
    const program = (await presenceOf(ctx.view, agent_id)) ? undefined : await programFor(ctx, undefined)
    return { harness: program && !(program instanceof Refusal) ? program.name : undefined }
  },
  async run(ctx, { agent_id }, { harness }) {
    const { agent, task } = await managed(ctx, agent_id)
    if (!task) {
      return refuse('INVALID_AGENT_STATE', `${agent.handle} has no task.`, {
        hint: 'Give it one with task_assign.',
        next_tool: 'task_assign',
      })
    }
    await wantAgent(ctx, agent.id, 'running')
    const open = await jobStore(ctx.tx).openOf(task.id)
    if (open) return answer(ctx, agent.id, open.id, 'It is at work already, or about to be.')
    if (task.status === 'REVIEW') return answer(ctx, agent.id, null, `It goes on when ${handleOf(task)} comes back from review.`)
    const begun = await beginWork(ctx, task, { harness, message: 'Go on.' })
    if ('body' in begun) return begun
    const by = (JSON.parse(begun.arguments) as JobArguments).harness
    return answer(ctx, agent.id, begun.id, `It goes on with ${handleOf(task)}, by ${by}.`)
  },
})

export const stopAgent = defineTool({
  name: 'agent_stop',
  title: 'Stop an agent',
  description: 'End an agent that Signalbox runs, with everything that it started. What it did is kept; nobody starts it but agent_start.',
  input: z.strictObject({ agent_id: AgentId }),
  output: Wanted,
  example: { agent_id: 'worker-1' },
  impact: 'write',
  profile: 'operator',
  async run(ctx, { agent_id }) {
    const { agent, task } = await managed(ctx, agent_id)
    await wantAgent(ctx, agent.id, 'stopped')
    const open = task && (await jobStore(ctx.tx).openOf(task.id))
    if (!open) return answer(ctx, agent.id, null, 'It does not run, and will not.')
    const run = await runStore(ctx.tx).livingOf(task.id)
    if (run) await askToStop(ctx, run, 'stopped')
    await cancelJob(ctx, open, 'It was stopped.')
    return answer(ctx, agent.id, open.id, 'It is being ended.')
  },
})

async function answer(ctx: RunContext, id: string, job_id: string | null, message: string) {
  const row = await agentStore(ctx.tx).agent(id)
  if (!row) throw new Error(`the agent ${id} is gone`)
  return { agent_id: id, agent: await agentView(ctx.tx, row, (await factsOf(ctx, [row]))(row), ctx.now), job_id, message }
}

async function managed(ctx: RunContext, id: string): Promise<{ agent: AgentRow; task: TaskRow | undefined }> {
  const agent = await agentStore(ctx.tx).agent(id)
  if (!agent) throw refuse('AGENT_NOT_FOUND', `There is no agent "${id}".`, { next_tool: 'agent_list', next_arguments: {} })
  const task = agent.task_id ? await taskStore(ctx.tx).find(agent.task_id) : undefined
  if ((task && isDuty(task)) || (await presenceOf(ctx.tx, agent.id))) return { agent, task }
  throw notOurs(agent)
}

function notOurs(agent: AgentRow): Refusal {
  return refuse('INVALID_AGENT_STATE', `${agent.handle} is in a window of its own: Signalbox neither starts nor stops it.`, {
    hint: 'An agent that Signalbox runs is made by job_submit. The token of another is ended by token_revoke.',
  })
}

/**
 * What is observed of an agent that we run, the first line that fits:
 *
 * | state          | when                                                          |
 * |----------------|---------------------------------------------------------------|
 * | WAITING_REVIEW | its work was handed in, also while its process is still there |
 * | PAUSED         | it was interrupted, and waits to be told how to go on         |
 * | BUSY           | its process is there                                          |
 * | STARTING       | its process is being made, or its job waits for its turn      |
 * | STOPPED        | somebody has stopped it                                       |
 * | CRASHED        | its last job has failed                                       |
 * | IDLE           | it has nothing to do now                                      |
 */
export async function aboutAgents({ view }: Reading, agents: AgentRow[]): Promise<Map<string, AgentFacts>> {
  const told = new Map<string, AgentFacts>()
  for (const agent of agents) told.set(agent.id, await about(view, agent))
  return told
}

async function about(view: Tx, agent: AgentRow): Promise<AgentFacts> {
  const [task, work] = agent.task_id ? [await taskStore(view).find(agent.task_id), await workOf(view, agent.task_id)] : []
  const last = await runStore(view).lastOfAgent(agent.id)
  const managed = last !== undefined || (task !== undefined && isDuty(task))
  const session = managed && task ? handleOf(task) : null
  const place = { worktree: work?.path ?? null, branch: work?.branch ?? null, session }
  if (!managed) return { state: task?.status === 'REVIEW' ? 'WAITING_REVIEW' : undefined, managed, ...place }
  return { state: await observed(view, agent, task, last), managed, ...place }
}

async function observed(view: Tx, agent: AgentRow, task: TaskRow | undefined, last: RunRow | undefined): Promise<AgentFacts['state']> {
  if (task?.status === 'REVIEW') return 'WAITING_REVIEW'
  if (last && isLiving(last)) return last.paused ? 'PAUSED' : last.state === 'running' ? 'BUSY' : 'STARTING'
  const [job] = task ? await jobStore(view).latest([task.id]) : []
  if (job?.state === 'queued' || job?.state === 'running') return 'STARTING'
  if (agent.desired === 'stopped' || job?.state === 'cancelled') return 'STOPPED'
  return job?.state === 'failed' ? 'CRASHED' : task ? 'IDLE' : 'STOPPED'
}
