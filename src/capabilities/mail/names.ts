import type { Tx } from '../../kernel/storage.ts'
import { agentStore, HUMAN, SYSTEM_SENDER } from '../agent/index.ts'

export interface Known {
  handle: string
  /** Of an agent. */
  role: string | null
}

export async function whoIs(view: Tx, id: string): Promise<Known> {
  if (id === HUMAN || id === SYSTEM_SENDER) return { handle: id, role: null }
  const store = agentStore(view)
  const agent = await store.agent(id)
  return { handle: (agent ?? (await store.person(id)))?.handle ?? id, role: agent?.role ?? null }
}

/** The handle of an agent or a person. */
export async function nameOf(view: Tx, id: string): Promise<string> {
  return (await whoIs(view, id)).handle
}
