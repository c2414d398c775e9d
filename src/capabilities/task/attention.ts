import type { EventType } from '../../kernel/event.ts'
import { definePoint } from '../../kernel/point.ts'
import type { Reading } from '../../kernel/tool.ts'
import type { Step } from '../need/index.ts'
import type { AttentionName } from './schema.ts'
import type { TaskRow } from './store.ts'

export interface Attended {
  attention: AttentionName
  /** For a person: until when, how much of what, why. */
  detail: string | null
  /** The calls by which a person gets it further, where these are others than its status suggests. Each is accepted as it stands. */
  steps?: Step[]
  /** Its agent asks a person something, which stands on a list of its own. */
  asks?: true
}

/** What another capability knows of open tasks that it moves; of the others it says nothing. */
export type AttentionSource = (ctx: Reading, tasks: TaskRow[]) => Promise<Map<string, Attended>>

/** Whoever stands first has the word about a task that several know. */
export const attention = definePoint.all<AttentionSource>('task.attention', [
  'round',
  'supervisor',
  'line',
  'staffing',
  'checkout',
  'agent',
  'terminal',
])

/** Events that are too many to be told in the history of a task. */
export const chatter = definePoint.all<() => Promise<EventType[]>>('task.chatter')

export async function attended(ctx: Reading, tasks: TaskRow[]): Promise<Map<string, Attended>> {
  const open = tasks.filter((task) => task.status !== 'DONE' && task.deleted_at === null)
  const found = new Map<string, Attended>()
  if (!open.length) return found
  for (const answers of await ctx.ask(attention, open)) for (const [id, told] of answers) if (!found.has(id)) found.set(id, told)
  return found
}
