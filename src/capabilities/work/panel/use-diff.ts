import { useTool } from '../../../ui/live.tsx'

const REST_MS = 2_000

/** What a task changed since it began, read again while its agent works; of one file alone with `path`. */
export function useDiff(task: string, { path, latest = false, enabled = true }: { path?: string; latest?: boolean; enabled?: boolean }) {
  const max_bytes = path === undefined ? 200_000 : 1_000_000
  return useTool('diff_get', { task_id: task, path, max_bytes, latest }, { follows: ['run', 'work'], about: task, rests: REST_MS, enabled })
}
