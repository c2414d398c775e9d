import { now } from '../../kernel/clock.ts'
import { iso } from '../../kernel/schema.ts'
import type { Reading } from '../../kernel/tool.ts'
import { approvalHandle, inOneLine, pendingOf } from '../approval/index.ts'
import type { Step } from '../need/index.ts'
import { runStore } from '../run/index.ts'
import { type AttentionSource, handleOf, type TaskRow } from '../task/index.ts'
import { jobHandle } from './rules.ts'
import type { ActionName } from './schema.ts'
import { jobStore } from './store.ts'

/** A step that takes long is no stall: only silence between two steps is. */
const STALLED_AFTER_MS = 15 * 60_000
/** Programs that print only when they are done: their silence says nothing. */
const SILENT = new Set(['command'])

/** Nobody takes a worktree away from under an agent. */
export async function livingRun({ view }: Reading, { task_id }: { task_id: string }): Promise<string | undefined> {
  return (await runStore(view).livingOf(task_id)) && 'An agent is at work in it.'
}

/** What the newest job of a task says of it; nothing when it is over and the task has moved on. */
export const jobAttention: AttentionSource = async ({ view }, tasks) => {
  const told: Awaited<ReturnType<AttentionSource>> = new Map()
  const auto = tasks.filter((task) => task.task_type === 'AUTO')
  const jobs = await jobStore(view).latest(auto.map((task) => task.id))
  const asked = await pendingOf(
    view,
    jobs.filter(({ run_state }) => run_state === 'running').map(({ task_id }) => task_id),
  )
  for (const job of jobs) {
    const task = auto.find(({ id }) => id === job.task_id)
    const handle = jobHandle(job)
    if (job.state === 'queued') {
      const until = job.not_before > now() ? `${handle} goes on at ${iso(job.not_before)}. ${job.reason ?? ''}` : undefined
      const quota = until !== undefined && job.resets_at !== null
      told.set(job.task_id, { attention: quota ? 'quota' : 'queued', detail: until ?? `${handle} waits for a free place.` })
    } else if (job.state === 'running') {
      const question = asked.find(({ task_id }) => task_id === job.task_id)
      if (question) {
        const detail = `It asks for permission (${approvalHandle(question)}): ${inOneLine(question)}`
        const steps = [{ tool: 'approval_get', arguments: { approval_id: approvalHandle(question) } }]
        told.set(job.task_id, { attention: 'human', detail, steps, asks: true })
        continue
      }
      // Its last turn ends in this way too when it is being stopped.
      if (job.paused && job.stop_asked === null) {
        const steps = task && [submit(task, 'message_agent', { message: '…' }), submit(task, 'stop_agent')]
        told.set(job.task_id, { attention: 'human', detail: 'It was interrupted: tell it how to go on, or stop it.', steps })
        continue
      }
      const silent = now() - (job.heard_at ?? now())
      const stalled = job.run_state === 'running' && !job.open_calls && !SILENT.has(job.harness ?? '') && silent > STALLED_AFTER_MS
      const minutes = Math.floor(silent / 60_000)
      told.set(
        job.task_id,
        stalled
          ? { attention: 'stalled', detail: `Silent for ${minutes} minutes, between two steps.` }
          : { attention: 'running', detail: null },
      )
    } else if (task?.status === 'IN_PROGRESS' && task.assignee_id === job.agent_id)
      told.set(job.task_id, {
        attention: 'human',
        detail: 'No agent is at work on it: resume it, or start another.',
        steps: [submit(task, 'resume_agent'), submit(task, 'start_agent')],
      })
    else if (job.state === 'failed' && task?.status === 'BACKLOG')
      told.set(job.task_id, { attention: 'human', detail: `${handle} failed: ${job.reason ?? ''}`, steps: afterFailure(task, job) })
    else if (job.state === 'cancelled' && job.agent_id !== null && task?.status === 'BACKLOG')
      told.set(job.task_id, {
        attention: 'human',
        detail: job.reason ?? 'It was stopped.',
        steps: [submit(task, 'resume_agent'), submit(task, 'start_agent')],
      })
  }
  return told
}

/** Whoever has used up what it may would only be refused; one that never had a run cannot be resumed. */
function afterFailure(task: TaskRow, { code, agent_id }: { code: string | null; agent_id: string | null }): Step[] {
  const of = { task_id: handleOf(task) }
  if (code === 'BUDGET_EXHAUSTED') return [{ tool: 'budget_get', arguments: of }]
  if (agent_id === null) return [submit(task, 'start_agent')]
  return [submit(task, 'resume_agent'), { tool: 'transcript_read', arguments: of }]
}

function submit(task: TaskRow, action: ActionName, more: object = {}): Step {
  return { tool: 'job_submit', arguments: { task_id: handleOf(task), action, ...more } }
}
