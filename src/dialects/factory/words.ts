import type { Output } from '../define.ts'
import { camelKeys, words } from '../define.ts'

/** BACKLOG and DONE are PENDING and COMPLETED here; the others have one name. */
export const STATES = words<Output<'task_get'>['task']['status']>({
  BACKLOG: 'PENDING',
  IN_PROGRESS: 'IN_PROGRESS',
  REVIEW: 'REVIEW',
  DONE: 'COMPLETED',
})

/** Natively a handed-in epic awaits its merge; for the document its work is done. */
export const EPIC_STATES = {
  ...words<Output<'epic_get'>['epic']['state']>({
    PLANNING: 'PLANNING',
    IN_PROGRESS: 'IN_PROGRESS',
    REVIEW: 'REVIEW',
    COMPLETED: 'COMPLETED',
    CANCELLED: 'CANCELLED',
  }),
  out: (state: unknown) => (state === 'REVIEW' ? 'COMPLETED' : state),
}

/** A person has no role, and is the document's human. */
export function typeOf(role: unknown): string {
  return typeof role === 'string' ? role.toUpperCase() : 'HUMAN'
}

/** Under the documented names, and of a letter what is documented alone. */
export function eventIn({ type, data, ...view }: { type: string; data: object }) {
  const more = camelKeys(data)
  const { mailId, toAgentId, isForHuman, subject } = more
  if (type === 'mail.sent') return { ...camelKeys(view), type, data: { mailId, toAgentId, isForHuman, subject } }
  const moved = type.startsWith('task.') ? ['from', 'to', 'status'].filter((key) => key in more) : []
  return { ...camelKeys(view), type, data: { ...more, ...Object.fromEntries(moved.map((key) => [key, STATES.out(more[key])])) } }
}
