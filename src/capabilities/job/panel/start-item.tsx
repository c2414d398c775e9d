import { Play } from 'lucide-react'
import { MenuItem } from '../../../ui/kit/menu.tsx'
import { useAction, useMay } from '../../../ui/live.tsx'
import type { TaskSummary } from '../../../ui/panel.ts'
import { useJobs } from './data.ts'
import { isOpen, standingOf } from './standing.ts'

/** With the settings' own program: whoever wants another one starts it on the task's page. */
export function StartItem({ task }: { task: TaskSummary }) {
  const may = useMay()
  const jobs = useJobs(task.id).data?.jobs
  const start = useAction('job_submit', {
    said: ({ handle, job }) => (job.state === 'queued' ? `${handle} is in the line.` : `${handle} has begun.`),
  })
  if (!may('job_submit') || task.task_type !== 'AUTO' || !['BACKLOG', 'IN_PROGRESS'].includes(task.status) || !IDLE.has(task.attention))
    return null
  // One that asks something waits for a human as well, and is at work all the same.
  if (!jobs || isOpen(standingOf(jobs, []))) return null
  return (
    <MenuItem icon={Play} onClick={() => start.mutate({ task_id: task.id, action: 'start_agent' })}>
      Start agent
    </MenuItem>
  )
}

/** Nobody works on it, nobody is about to, and nothing holds it up. */
const IDLE = new Set<TaskSummary['attention']>(['human', null])
