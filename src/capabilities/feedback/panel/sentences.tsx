import { visible } from '../../../ui/kit/plain.ts'
import { TaskLink } from '../../../ui/kit/task-link.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import type { Sentences } from '../../../ui/panel.ts'

export const sentences: Sentences = {
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
