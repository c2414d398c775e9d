import type { TestDaemon } from '../../src/testing/daemon.ts'
import { type Caller, httpCaller, mcpCaller, type Way } from './callers.ts'
import type { Journal } from './journal.ts'
import type { Mortal } from './mortal.ts'
import type { Random } from './random.ts'
import { ALL_WRITES, WORKER_WRITES, Writer, type WriterPlan } from './writers.ts'

/** Sixteen writers: nine over HTTP, four over MCP in both eras, three over stdio. */
const SIXTEEN: Way[] = [...Array<Way>(9).fill('http'), ...Array<Way>(3).fill('mcp 2025'), 'mcp 2026', ...Array<Way>(3).fill('stdio')]

export interface Cast {
  project: string
  shared: string[]
  writers: Writer[]
  close(): Promise<void>
}

export interface Identity {
  principal: string
  token: string
  /** A worker may only write on the task that it was given. */
  task?: string
}

/** A project with some shared tasks, and writers under several people's and agents' tokens. */
export async function hire(mortal: Mortal, journal: Journal, random: Random, thinkMs = 0): Promise<Cast> {
  const { daemon } = mortal
  await liftLimits(daemon)
  const { project_id: project } = await daemon.call('project_create', { name: 'Chaos' })
  const shared: string[] = []
  for (let i = 0; i < 4; i++) shared.push((await daemon.call('task_create', { title: `shared ${i}`, project_id: project })).task_id)
  const identities = await Promise.all([owner(mortal), person(mortal), orchestrator(mortal), orchestrator(mortal), worker(mortal, project)])
  const writers = await Promise.all(
    SIXTEEN.map(async (way, i) => {
      const { principal, token, task } = identities[i % identities.length] as Identity
      const caller: Caller = way === 'http' ? httpCaller(mortal, token) : await mcpCaller(mortal, token, way)
      const plan: WriterPlan = {
        name: `w${i}`,
        principal,
        caller,
        project,
        may: task ? WORKER_WRITES : ALL_WRITES,
        tasks: task ? [task] : [...shared],
        random: random.fork(),
        thinkMs,
      }
      return new Writer(plan, mortal, journal)
    }),
  )
  return {
    project,
    shared,
    writers,
    async close() {
      await Promise.all(writers.map((writer) => writer.plan.caller.close()))
    },
  }
}

/** A load test is a runaway loop by design. */
export async function liftLimits(daemon: TestDaemon): Promise<void> {
  for (const key of ['limits.agent_calls_per_second', 'limits.agent_burst', 'limits.person_calls_per_second', 'limits.person_burst'])
    await daemon.call('setting_update', { key, value: 1_000_000 })
}

async function owner({ daemon }: Mortal): Promise<Identity> {
  return { principal: (await daemon.call('agent_me')).id, token: daemon.token }
}

async function person({ daemon }: Mortal): Promise<Identity> {
  const { person_id, token } = await daemon.call('person_invite', { name: 'Ann' })
  return { principal: person_id, token }
}

export async function orchestrator({ daemon }: Mortal): Promise<Identity> {
  const { agent_id, token } = await daemon.call('agent_invite', { role: 'orchestrator' })
  return { principal: agent_id, token }
}

async function worker({ daemon }: Mortal, project: string): Promise<Identity> {
  const { agent_id, token } = await daemon.call('agent_invite', { role: 'worker' })
  const { task_id } = await daemon.call('task_create', { title: 'own', project_id: project })
  await daemon.call('task_assign', { task_id, agent_id })
  return { principal: agent_id, token, task: task_id }
}
