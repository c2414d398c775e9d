import type { Tx } from '../../kernel/storage.ts'
import { agentStore } from '../agent/index.ts'

/** Agents and people share one space of handles; what is neither is taken as an id, such as `system`. */
export async function principalId(view: Tx, ref: string): Promise<string> {
  const store = agentStore(view)
  return ((await store.agent(ref)) ?? (await store.person(ref)))?.id ?? ref
}
