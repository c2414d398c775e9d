import type { Output } from '../../../ui/client.ts'
import { useTool } from '../../../ui/live.tsx'

export type Job = Output<'job_list'>['jobs'][number]
export type Run = Output<'run_list'>['runs'][number]
export type Harness = Output<'job_actions'>['harnesses'][number]

const LIMIT = 200
/** An agent that prints much changes its figures with every line. */
const REST_MS = 500

export function useJobs(task: string) {
  return useTool('job_list', { task_id: task, limit: LIMIT }, { follows: ['job'], about: task })
}

export function useRuns(task: string) {
  return useTool('run_list', { task_id: task, limit: LIMIT }, { follows: ['run', 'job'], about: task, rests: REST_MS })
}
