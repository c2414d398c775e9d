import { Link } from '@tanstack/react-router'
import { Who } from '../../../ui/kit/who.tsx'
import type { Sentences } from '../../../ui/panel.ts'
import type { LiveEvent } from '../../../ui/stream.ts'
import type { Status } from '../schema.ts'
import { columnOf } from './words.ts'

export const sentences: Sentences = {
  'task.created': ({ data }) => (
    <>
      <strong>created</strong> <Task data={data} /> <span className="muted">{String(data.title)}</span>
    </>
  ),
  'task.updated': ({ data }) => (
    <>
      <strong>changed</strong> {(data.fields as string[]).join(', ').replaceAll('_', ' ')} of <Task data={data} />
    </>
  ),
  'task.moved': ({ data }) => (
    <>
      <strong>moved</strong> <Task data={data} /> from {column(data.from)} to {column(data.to)}
      {typeof data.reason === 'string' && <span className="muted">: {data.reason}</span>}
    </>
  ),
  'task.assigned': ({ data }) =>
    typeof data.assignee_id === 'string' ? (
      <>
        <strong>gave</strong> <Task data={data} /> to <Who id={data.assignee_id} />
      </>
    ) : (
      <>
        <strong>took</strong> <Task data={data} /> back: nobody has it
      </>
    ),
  'task.deleted': ({ data }) => (
    <>
      <strong>deleted</strong> <span className="mono">{String(data.handle)}</span> <span className="muted">from {column(data.from)}</span>
    </>
  ),
  'task.noted': ({ data }) => (
    <>
      <strong>wrote a note</strong> on <Task data={data} />
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

function Task({ data: { handle } }: Pick<LiveEvent, 'data'>) {
  return (
    <Link to="/task/$task" params={{ task: String(handle) }} className="mono">
      {String(handle)}
    </Link>
  )
}

const column = (status: unknown) => columnOf(status as Status).title.toLowerCase()
const count = (tasks: number) => (tasks === 1 ? 'one task' : `${tasks} tasks`)
