import { visible } from '../../../ui/kit/plain.ts'
import { TaskLink } from '../../../ui/kit/task-link.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import type { Sentences } from '../../../ui/panel.ts'

const REBASED: Record<string, string> = {
  rebased: 'rebased',
  even: 'had nothing to rebase',
  conflict: 'could not rebase',
  failed: 'could not rebase',
}

export const sentences: Sentences = {
  'review.decided': ({ data }) => (
    <>
      <strong>{data.decision === 'approve' ? 'approved' : 'sent back'}</strong> <TaskLink handle={data.handle} />{' '}
      <span className="muted">round {String(data.round)}</span>
    </>
  ),
  'review.rebased': ({ data }) => (
    <>
      <strong>{REBASED[String(data.result)]}</strong> <TaskLink handle={data.handle} /> onto{' '}
      <span className="mono">{visible(String(data.onto))}</span>
      {(data.files as string[]).length > 0 && (
        <span className="muted">: both sides changed {visible((data.files as string[]).join(', ')).slice(0, 300)}</span>
      )}
      {data.reason !== null && <span className="muted">: {visible(String(data.reason)).slice(0, 300)}</span>}
    </>
  ),
  'review.refused': ({ data }) => (
    <>
      <strong>was refused another review</strong> of <TaskLink handle={data.handle} />{' '}
      <span className="muted">after round {String(data.round)}</span>
    </>
  ),
  'review.timed_out': ({ data }) => (
    <>
      <strong>gave up waiting</strong> for a review of <TaskLink handle={data.handle} />
      <span className="muted">: {visible(String(data.reason)).slice(0, 300)}</span>
    </>
  ),
  'review.requested': ({ actor, data }) => (
    <>
      <strong>asked for review</strong> of <TaskLink handle={data.handle} /> <span className="muted">round {String(data.round)}</span>
      {data.requested_by !== actor && (
        <span className="muted">
          {' '}
          for <Who id={String(data.requested_by)} />
        </span>
      )}
    </>
  ),
  'review.feedback': ({ data }) => (
    <>
      <strong>brought feedback</strong> of <Who id={String(data.from)} /> on <TaskLink handle={data.handle} />{' '}
      <span className="muted">
        round {String(data.round)}
        {data.reason ? `: ${visible(String(data.reason)).slice(0, 300)}` : ''}
      </span>
    </>
  ),
  'review.abandoned': ({ data }) => (
    <>
      <strong>gave up</strong> the work on <TaskLink handle={data.handle} />
      <span className="muted">: {visible(String(data.reason)).slice(0, 300)}</span>
    </>
  ),
  'reviewer.started': ({ data }) => (
    <>
      <strong>started</strong> <Who id={String(data.agent_id)} /> to review <TaskLink handle={data.handle} />{' '}
      <span className="muted">round {String(data.round)}</span>
    </>
  ),
  'reviewer.ended': ({ data }) => (
    <>
      <strong>ended the reviewer</strong> of <TaskLink handle={data.handle} />
      <span className="muted">: {visible(String(data.reason)).slice(0, 300)}</span>
    </>
  ),
}
