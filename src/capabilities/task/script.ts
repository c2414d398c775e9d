import { type Refusal, refuse } from '../../kernel/error.ts'
import { type Principal, reaches } from '../../kernel/policy.ts'
import type { Tx } from '../../kernel/storage.ts'
import { type AgentRow, agentStore } from '../agent/index.ts'
import { handleOf } from './rules.ts'
import { type TaskRow, taskStore } from './store.ts'

/** A block that the scripted agent, or its reviewer, runs as a program. */
const SCRIPT = /^```signalbox/m

/** A script runs programs as the user: an agent that may start none must not bring one in by way of a description. */
export function checkScript({ kind, profile }: Pick<Principal, 'kind' | 'profile'>, description: string): Refusal | undefined {
  if (kind !== 'agent' || reaches(profile, 'operator') || !SCRIPT.test(description)) return undefined
  return refuse(
    'PERMISSION_DENIED',
    'A description with a script (a block that begins with ```signalbox) may run programs on this machine.',
    {
      hint: 'Leave the block out; a person or an agent with the profile operator may add it.',
    },
  )
}

/** The same for what an agent stored before; `author` is its id. */
export async function checkStoredScript(tx: Tx, author: string, description: string): Promise<Refusal | undefined> {
  const agent = await authorOf(tx, author)
  return agent && checkScript({ kind: 'agent', profile: agent.profile }, description)
}

/** Why the script in the description must not be run; null when it may, or when there is none. */
export async function whyNotScript(view: Tx, task: TaskRow): Promise<string | null> {
  // What a reviewer runs is from the description of the task that it reviews.
  const reviewed = task.reviews_task_id ? await taskStore(view).find(task.reviews_task_id) : undefined
  const { created_by } = reviewed ?? task
  if (!(await checkStoredScript(view, created_by, task.description))) return null
  const agent = await authorOf(view, created_by)
  return `The script in ${handleOf(task)} was written by ${agent?.handle}, which may not write scripts. Read it, and give it with the start as the option script if it is what you want.`
}

async function authorOf(tx: Tx, id: string): Promise<AgentRow | undefined> {
  return id.startsWith('agent_') ? agentStore(tx).agent(id) : undefined
}
