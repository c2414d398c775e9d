import { TaskLink } from '../../../ui/kit/task-link.tsx'
import type { Sentences } from '../../../ui/panel.ts'

export const sentences: Sentences = {
  'setup.started': ({ data }) => (
    <>
      <strong>sets up</strong> the worktree of <TaskLink handle={data.handle} /> <span className="mono muted">{command(data.command)}</span>
    </>
  ),
  'setup.ended': ({ data }) =>
    data.state === 'ready' ? (
      <>
        <strong>has set up</strong> the worktree of <TaskLink handle={data.handle} />{' '}
        <span className="muted">{data.how === 'kept' && 'with kept packages'}</span>
      </>
    ) : (
      <>
        <strong>could not set up</strong> the worktree of <TaskLink handle={data.handle} />:{' '}
        <span className="muted">{String(data.reason ?? '').slice(0, 300)}</span>
      </>
    ),
  'setup.cleaned': ({ data }) => {
    const about = data.work_id === null ? <>checks of {String(data.handle)}</> : <TaskLink handle={data.handle} />
    return data.failure === null ? (
      <>
        <strong>cleaned up</strong> after {about} <span className="mono muted">{command(data.command)}</span>
      </>
    ) : (
      <>
        <strong>could not clean up</strong> after {about}: <span className="muted">{String(data.failure).slice(0, 300)}</span>
      </>
    )
  },
}

function command(said: unknown): string {
  return typeof said === 'string' ? said.slice(0, 200) : 'files are copied'
}
