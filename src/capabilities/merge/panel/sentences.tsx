import { visible } from '../../../ui/kit/plain.ts'
import { TaskLink } from '../../../ui/kit/task-link.tsx'
import type { Sentences } from '../../../ui/panel.ts'

export const sentences: Sentences = {
  'review.decided': ({ data }) => (
    <>
      <strong>{data.decision === 'approve' ? 'approved' : 'sent back'}</strong> <TaskLink handle={data.handle} />{' '}
      <span className="muted">round {String(data.round)}</span>
    </>
  ),
  'review.merged': ({ data }) => (
    <>
      <strong>merged</strong> <TaskLink handle={data.handle} /> into <span className="mono">{visible(String(data.into))}</span>
    </>
  ),
  'review.conflicted': ({ data }) => (
    <>
      <strong>could not merge</strong> <TaskLink handle={data.handle} />
      <span className="muted">: both sides changed {visible((data.files as string[]).join(', ')).slice(0, 300)}</span>
    </>
  ),
  'review.stuck': ({ data }) => (
    <>
      <strong>could not merge</strong> <TaskLink handle={data.handle} />
      <span className="muted">: {visible(String(data.reason)).slice(0, 300)}</span>
    </>
  ),
}
