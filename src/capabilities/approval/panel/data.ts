import type { Output } from '../../../ui/client.ts'
import { useTool } from '../../../ui/live.tsx'

export type Approval = Output<'approval_list'>['approvals'][number]

/** Nobody decides more in one sitting; the newer ones come when these are decided. */
export const MOST = 50
const SHOWN_BEFORE = 20

/** Of all tasks, or of one. */
export function usePending(task?: string) {
  return useTool('approval_list', { task_id: task, limit: MOST }, { about: task })
}

export function useDecided(task: string) {
  return useTool(
    'approval_list',
    { task_id: task, states: ['allowed', 'denied', 'expired', 'withdrawn'], limit: SHOWN_BEFORE },
    { about: task },
  )
}
