import { useQuery, useQueryClient } from '@tanstack/react-query'
import { read as ask, type CallError, type Output } from '../../../ui/client.ts'
import { useEvents } from '../../../ui/live.tsx'
import type { LiveEvent } from '../../../ui/stream.ts'
import type { Status } from '../schema.ts'

export type Task = Output<'task_list'>['tasks'][number]

const PAGE = 200
/** Done tasks only grow: the board shows the newest, the palette and the command line find the rest. */
const SHOWN_DONE = 50
const OPEN: Status[] = ['BACKLOG', 'IN_PROGRESS', 'REVIEW']
const KEY = 'board'
/** From one reading to the next: what no delta tells is still to be seen within a second. */
const REST_MS = 500

interface BoardRows {
  tasks: Task[]
  moreDone: boolean
}

/** After the baseline, what the stream tells is applied at once by version, then confirmed by reading again. */
export function useBoard(project: string | undefined) {
  const queries = useQueryClient()
  const key = [KEY, project ?? null]
  useEvents((events) => {
    const tasks = events.filter((event) => event.type.startsWith('task.'))
    if (!tasks.length) return
    queries.setQueryData<BoardRows>(key, (rows) => rows && { ...rows, tasks: tasks.reduce(apply, rows.tasks) })
  })
  return useQuery<BoardRows, CallError>({
    queryKey: key,
    queryFn: ({ signal }) => read(project, signal),
    structuralSharing: (before, after) => newest(before as BoardRows | undefined, after as BoardRows),
    // Neither a note nor what an agent prints is on a card; whether one works on it is what jobs tell.
    // The whole board is a big reading: what is on it already moves at once, by the delta.
    meta: { follows: ['task', 'job', 'approval', 'project'], ignores: ['task.noted'], rests: REST_MS },
  })
}

/** A reading that was under way when something changed must not take that back. */
function newest(before: BoardRows | undefined, after: BoardRows): BoardRows {
  const known = new Map(before?.tasks.map((task) => [task.id, task]))
  const newer = (task: Task) => {
    const old = known.get(task.id)
    return old && old.version > task.version ? old : task
  }
  return { ...after, tasks: after.tasks.map(newer) }
}

/** Shows a move before the daemon has answered; the way back when it refuses. */
export function useOptimisticMove(project: string | undefined): (task: Task, to: Status) => () => void {
  const queries = useQueryClient()
  const key = [KEY, project ?? null]
  return (task, to) => {
    const set = (status: Status) =>
      queries.setQueryData<BoardRows>(
        key,
        (rows) => rows && { ...rows, tasks: rows.tasks.map((t) => (t.id === task.id ? { ...t, status } : t)) },
      )
    set(to)
    return () => {
      set(task.status)
      void queries.invalidateQueries({ queryKey: key })
    }
  }
}

async function read(project: string | undefined, signal: AbortSignal): Promise<BoardRows> {
  const [open, done] = await Promise.all([
    allOpen(project, signal),
    ask('task_list', { project_id: project, status: ['DONE'], order: 'recent', limit: SHOWN_DONE }, signal),
  ])
  return { tasks: [...open, ...done.tasks], moreDone: done.next !== null }
}

async function allOpen(project: string | undefined, signal: AbortSignal): Promise<Task[]> {
  const tasks: Task[] = []
  let after: string | undefined
  do {
    const page = await ask('task_list', { project_id: project, status: OPEN, limit: PAGE, after }, signal)
    tasks.push(...page.tasks)
    after = page.next ?? undefined
  } while (after)
  return tasks
}

/** A delta may repeat what a row already says, or be older: its version tells. */
function apply(tasks: Task[], event: LiveEvent): Task[] {
  const version = Number(event.data.version ?? 0)
  if (event.type === 'task.deleted') return tasks.filter((task) => task.id !== event.subject)
  return tasks.map((task) => {
    if (task.id !== event.subject || task.version >= version) return task
    if (event.type === 'task.moved') return { ...task, version, status: event.data.to as Status }
    if (event.type === 'task.assigned') return { ...task, version, assignee_id: event.data.assignee_id as string | null }
    return task
  })
}
