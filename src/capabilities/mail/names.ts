import type { Tx } from '../../kernel/storage.ts'
import { agentStore } from '../agent/index.ts'
import { HUMAN, SYSTEM_SENDER } from './schema.ts'

/** The handle of an agent or a person. */
export async function nameOf(view: Tx, id: string): Promise<string> {
  if (id === HUMAN || id === SYSTEM_SENDER) return id
  const store = agentStore(view)
  return ((await store.agent(id)) ?? (await store.person(id)))?.handle ?? id
}
