import type { Tx } from '../../kernel/storage.ts'
import type { AttentionName } from './schema.ts'
import type { TaskRow } from './store.ts'

export interface Attended {
  attention: AttentionName
  /** For a person: until when, how much of what, why. */
  detail: string | null
  /** The calls by which a person gets it further, where these are others than its status suggests. Each is accepted as it stands. */
  steps?: Step[]
}

export interface Step {
  tool: string
  arguments: Record<string, unknown>
}

/** What another capability knows of open tasks that it moves; of the others it says nothing. */
export type AttentionSource = (view: Tx, tasks: TaskRow[]) => Promise<Map<string, Attended>>

const sources: AttentionSource[] = []

/** Said once, where the capabilities are put together: tasks know nobody who works on them. */
export function askForAttention(...more: AttentionSource[]): void {
  sources.push(...more)
}

/** The first source that knows a task has the word. */
export async function attended(view: Tx, tasks: TaskRow[]): Promise<Map<string, Attended>> {
  const open = tasks.filter((task) => task.status !== 'DONE' && task.deleted_at === null)
  const found = new Map<string, Attended>()
  if (!open.length) return found
  for (const source of sources) for (const [id, told] of await source(view, open)) if (!found.has(id)) found.set(id, told)
  return found
}
