import type { Principal } from '../../kernel/policy.ts'
import type { Tx } from '../../kernel/storage.ts'
import { projectStore } from './store.ts'

/** The project that a call without project_id means: the agent's own, the one the token opened, or the only one there is. */
export async function currentProject(tx: Tx, principal: Principal): Promise<string | undefined> {
  if (principal.scope.project) return principal.scope.project
  const store = projectStore(tx)
  const opened = principal.tokenId && (await store.opened(principal.tokenId))
  if (opened) return opened
  const [only, another] = await store.projects('', 2)
  return another ? undefined : only?.id
}
