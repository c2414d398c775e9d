import { Link } from '@tanstack/react-router'
import { visible } from '../../../ui/kit/plain.ts'
import type { Sentences } from '../../../ui/panel.ts'
import type { LiveEvent } from '../../../ui/stream.ts'

export const sentences: Sentences = {
  'approval.asked': (event) => (
    <>
      <strong>was asked</strong> for permission: <Asked event={event} />
    </>
  ),
  'approval.decided': (event) => (
    <>
      <strong>{event.data.decision === 'allow' ? 'allowed' : 'denied'}</strong> <Asked event={event} />
    </>
  ),
  'approval.expired': (event) => (
    <>
      <strong>denied</strong> <Asked event={event} />, because nobody answered in time
    </>
  ),
  'approval.withdrawn': (event) => (
    <>
      <strong>withdrew</strong> <Asked event={event} />, because the agent does not wait for it any more
    </>
  ),
}

function Asked({ event: { task_id, data } }: { event: LiveEvent }) {
  const what = (
    <>
      <span className="mono">{String(data.handle)}</span> {visible(String(data.name)).slice(0, 100)}
    </>
  )
  if (task_id === null) return what
  return (
    <Link to="/task/$task" params={{ task: task_id }}>
      {what}
    </Link>
  )
}
