import { Link } from '@tanstack/react-router'
import { visible } from '../../../ui/kit/plain.ts'
import type { Sentences } from '../../../ui/panel.ts'
import type { LiveEvent } from '../../../ui/stream.ts'

export const sentences: Sentences = {
  'review.decided': ({ data }) => (
    <>
      <strong>{data.decision === 'approve' ? 'approved' : 'sent back'}</strong> <Task data={data} />{' '}
      <span className="muted">round {String(data.round)}</span>
    </>
  ),
  'review.merged': ({ data }) => (
    <>
      <strong>merged</strong> <Task data={data} /> into <span className="mono">{visible(String(data.into))}</span>
    </>
  ),
  'review.conflicted': ({ data }) => (
    <>
      <strong>could not merge</strong> <Task data={data} />
      <span className="muted">: both sides changed {visible((data.files as string[]).join(', ')).slice(0, 300)}</span>
    </>
  ),
  'review.stuck': ({ data }) => (
    <>
      <strong>could not merge</strong> <Task data={data} />
      <span className="muted">: {visible(String(data.reason)).slice(0, 300)}</span>
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
