import { TaskLink } from '../../../ui/kit/task-link.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import type { Sentences } from '../../../ui/panel.ts'
import type { Status } from '../schema.ts'
import { columnOf } from './words.ts'

export const sentences: Sentences = {
  'task.created': ({ data }) => (
    <>
      <strong>created</strong> <TaskLink handle={data.handle} /> <span className="muted">{String(data.title)}</span>
    </>
  ),
  'task.updated': ({ data }) => (
    <>
      <strong>changed</strong> {(data.fields as string[]).join(', ').replaceAll('_', ' ')} of <TaskLink handle={data.handle} />
    </>
  ),
  'task.moved': ({ data }) => (
    <>
      <strong>moved</strong> <TaskLink handle={data.handle} /> from {column(data.from)} to {column(data.to)}
      {typeof data.reason === 'string' && <span className="muted">: {data.reason}</span>}
    </>
  ),
  'task.assigned': ({ data }) =>
    typeof data.assignee_id === 'string' ? (
      <>
        <strong>gave</strong> <TaskLink handle={data.handle} /> to <Who id={data.assignee_id} />
      </>
    ) : (
      <>
        <strong>took</strong> <TaskLink handle={data.handle} /> back: nobody has it
      </>
    ),
  'task.deleted': ({ data }) => (
    <>
      <strong>deleted</strong> <span className="mono">{String(data.handle)}</span> <span className="muted">from {column(data.from)}</span>
    </>
  ),
  'task.noted': ({ data }) => (
    <>
      <strong>wrote a note</strong> on <TaskLink handle={data.handle} />
    </>
  ),
  'plan.proposed': ({ data }) => (
    <>
      <strong>proposed</strong> a plan of {count(Number(data.tasks))}
    </>
  ),
  'plan.decided': ({ data }) => (
    <>
      <strong>{data.accepted ? 'accepted' : 'turned down'}</strong> a plan
      {data.accepted === true && <span className="muted"> of {count((data.task_ids as string[]).length)}</span>}
    </>
  ),
}

const column = (status: unknown) => columnOf(status as Status).title.toLowerCase()
const count = (tasks: number) => (tasks === 1 ? 'one task' : `${tasks} tasks`)
