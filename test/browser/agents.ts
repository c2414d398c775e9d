import type { TestDaemon } from '../../src/testing/daemon.ts'
import { repository } from '../chaos/kill-runs.ts'
import { until } from '../e2e/support.ts'
import { someTasks } from './support.ts'

/** What the scripted agent does when it works on the task. */
export const scriptOf = (...steps: object[]) => `\`\`\`signalbox\n${JSON.stringify(steps)}\n\`\`\`\n`

/** A task of a project with a real repository, for a real agent. */
export async function agentTask(daemon: TestDaemon, ...steps: object[]) {
  const { project_id, board, handles } = await someTasks(daemon, 'Work on me')
  const repo = repository()
  await daemon.call('repo_add', { path: repo, project_id, checks: 'test -f a.txt' })
  const task = handles[0] as string
  await daemon.call('task_update', { task_id: task, description: steps.length ? scriptOf(...steps) : '' })
  return { task, project_id, board, repo }
}

export const start = (daemon: TestDaemon, task_id: string) => daemon.call('job_submit', { task_id, action: 'start_agent' })

/** With a script that is longer than a description may be. */
export function startWith(daemon: TestDaemon, task_id: string, ...steps: object[]) {
  const options = { script: JSON.stringify(steps) }
  return daemon.call('job_submit', { task_id, action: 'start_agent', harness: 'scripted', options })
}

/** When the transcript has it. */
export async function said(daemon: TestDaemon, task_id: string, words: string): Promise<void> {
  const found = async () => (await daemon.call('transcript_search', { task_id, words })).entries.length > 0
  await until(found, `"${words}" in the transcript of ${task_id}: ${daemon.log}`)
}
