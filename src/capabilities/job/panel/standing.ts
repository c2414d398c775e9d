import type { Tone } from '../../../ui/kit/badge.tsx'
import type { Job, Run } from './data.ts'

/** How it stands with the agent of a task. */
export type Standing =
  | { is: 'unstarted' }
  | { is: 'queued' | 'parked'; job: Job }
  | { is: 'starting' | 'running' | 'stopping'; job: Job; run: Run | undefined }
  | { is: 'failed' | 'stopped' | 'done'; job: Job; run: Run | undefined }

/** Stops and messages are about a run, and no run of their own. */
const WORKS: Job['action'][] = ['start_agent', 'resume_agent', 'run_checks']

/** Both newest first. */
export function standingOf(jobs: Job[], runs: Run[]): Standing {
  const job = jobs.find(({ action }) => WORKS.includes(action))
  if (!job) return { is: 'unstarted' }
  const run = runs.find(({ job_id }) => job_id === job.id)
  switch (job.state) {
    case 'queued':
      return { is: job.not_before === null ? 'queued' : 'parked', job }
    case 'running':
      if (job.cancel_requested) return { is: 'stopping', job, run }
      return { is: run?.state === 'running' ? 'running' : 'starting', job, run }
    case 'succeeded':
      return { is: 'done', job, run }
    case 'cancelled':
      return { is: 'stopped', job, run }
    case 'failed':
      return { is: 'failed', job, run }
  }
}

export const isOpen = ({ is }: Standing) => ['queued', 'parked', 'starting', 'running', 'stopping'].includes(is)

export const TONES: Record<Standing['is'], Tone> = {
  unstarted: 'neutral',
  queued: 'blue',
  parked: 'amber',
  starting: 'blue',
  running: 'green',
  stopping: 'amber',
  failed: 'red',
  stopped: 'neutral',
  done: 'green',
}

/** In a word or two. */
export function headline(standing: Standing): string {
  if (standing.is === 'unstarted') return 'Not started'
  const { is, job } = standing
  const checks = job.action === 'run_checks'
  switch (is) {
    case 'queued':
      return job.position === null ? 'Queued' : `Queued, place ${job.position} in the line`
    case 'parked':
      return 'Parked'
    case 'starting':
      return 'Starting'
    case 'running':
      if (checks) return 'The checks run'
      return 'run' in standing && standing.run?.paused ? 'Interrupted, waits for your word' : 'Running'
    case 'stopping':
      return 'Being stopped'
    case 'failed':
      return checks ? 'The checks failed' : 'Failed'
    case 'stopped':
      return 'Stopped'
    case 'done':
      return checks ? 'The checks passed' : 'Handed in'
  }
}
