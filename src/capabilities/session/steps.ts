import { handleOf, type StepSource } from '../task/index.ts'

export const openTerminal: StepSource = async (_ctx, tasks) =>
  new Map(
    tasks.flatMap(({ task, told }) =>
      task.task_type === 'PAIR' && told === undefined && task.status !== 'REVIEW'
        ? [[task.id, [{ tool: 'session_open', arguments: { task_id: handleOf(task) } }]]]
        : [],
    ),
  )
