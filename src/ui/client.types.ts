// Nothing of this runs: `npm run check` compiles it, and fails when one of these lines would be accepted.
import { call } from './client.ts'
import { useAction, useTool } from './live.tsx'

export async function misspelt(): Promise<void> {
  // @ts-expect-error no tool is called that
  await call('task_creat', { title: 'x' })
  // @ts-expect-error no argument is called that
  await call('task_create', { titel: 'x' })
  // @ts-expect-error an argument is missing
  await call('task_create', {})
  // @ts-expect-error an argument is of another type
  await call('task_create', { title: 7 })
  // @ts-expect-error a word that is none of the choices
  await call('task_create', { title: 'x', priority: 'urgent' })
  // @ts-expect-error no field of the answer is called that
  void (await call('task_create', { title: 'x' })).handel
  // @ts-expect-error and none of what is nested in it
  void (await call('task_list', {})).tasks[0]?.titel
}

export function UseMisspelt(): void {
  // @ts-expect-error no tool is called that
  useTool('task_lst', {})
  // @ts-expect-error no argument is called that
  useTool('task_list', { projekt_id: 'web' })
  // @ts-expect-error no field of the answer is called that
  void useTool('task_list', {}).data?.task
  // @ts-expect-error no argument is called that
  useAction('task_move').mutate({ task_id: 'T-1', status: 'REVIEW', force: true })
  // @ts-expect-error no field of the answer is called that
  useAction('task_move', { said: ({ handel }) => handel })
}
