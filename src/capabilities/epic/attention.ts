import type { Tx } from '../../kernel/storage.ts'
import { jobStore } from '../job/index.ts'
import { type AttentionSource, isOpen, type TaskRow, taskStore } from '../task/index.ts'
import { isAtWork } from './reconcile.ts'
import { type EpicRow, epicStore } from './store.ts'

type Told = Awaited<ReturnType<AttentionSource>>

/** Of tasks in epics, as long as nobody is at work on them: what starts somebody. */
export const epicAttention: AttentionSource = async (view, tasks) => {
  const told: Told = new Map()
  const inEpics = tasks.filter(({ epic_id, status, task_type }) => epic_id !== null && status !== 'REVIEW' && task_type === 'AUTO')
  if (!inEpics.length) return told
  const jobs = new Map((await jobStore(view).latest(inEpics.map(({ id }) => id))).map((job) => [job.task_id, job]))
  const epics = new Map<string, EpicRow | undefined>()
  for (const task of inEpics) {
    const job = jobs.get(task.id)
    if (job && job.state !== 'succeeded') continue
    const id = task.epic_id as string
    if (!epics.has(id)) epics.set(id, await epicStore(view).find(id))
    const epic = epics.get(id)
    if (!epic || isAtWork(job)) continue
    if (task.lead) told.set(task.id, await ofLead(view, epic))
    else if (epic.state === 'IN_PROGRESS' && !(await isBlocked(view, task)))
      told.set(task.id, { attention: 'queued', detail: `It gets a worker as soon as one of ${epic.max_workers} is free.` })
  }
  return told
}

async function ofLead(view: Tx, epic: EpicRow) {
  const human = (detail: string) => ({ attention: 'human' as const, detail })
  if (epic.state === 'REVIEW') return human('The epic was handed in: merge it, and say so.')
  if (epic.state !== 'IN_PROGRESS') return human('The epic is not in progress.')
  const tasks = await taskStore(view).list({ epic: epic.id }, 'number', undefined, 1_000)
  const open = tasks.filter(({ status }) => status !== 'DONE').length
  if (open)
    return {
      attention: 'dependency' as const,
      detail: `Its supervisor waits for ${open} open tasks, for work that is handed in and for letters.`,
    }
  return human(
    tasks.length
      ? 'All its tasks are done: hand in the epic, or write to its supervisor.'
      : 'It has no tasks: write to its supervisor, or make some.',
  )
}

async function isBlocked(view: Tx, task: TaskRow): Promise<boolean> {
  return task.status === 'BACKLOG' && (await taskStore(view).blockers([task.id])).some(isOpen)
}
