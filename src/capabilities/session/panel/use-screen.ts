import { call, type Output } from '../../../ui/client.ts'
import { useFollowed } from '../../../ui/kit/use-followed.ts'

export type Screen = Output<'session_read'>

/** Below what a page waits for any answer. */
const WAIT_SECONDS = 12
const REST_MS = 250
const AGAIN_MS = 2_000

/** What the terminal shows, as long as somebody looks. */
export function useScreen(task_id: string, session: string): Screen | undefined {
  return useFollowed<Screen>(`${task_id} ${session}`, {
    ask: (last, signal) => call('session_read', { task_id, unlike: last?.mark, wait_seconds: WAIT_SECONDS }, { signal }),
    isOver: ({ state }) => state === 'closed' || state === 'lost',
    restMs: ({ columns }) => (columns ? REST_MS : AGAIN_MS),
  })
}
