import { TaskLink } from '../../../ui/kit/task-link.tsx'
import type { Sentences } from '../../../ui/panel.ts'

export const sentences: Sentences = {
  'preview.starting': ({ data }) => (
    <>
      <strong>started a preview</strong> of <TaskLink handle={data.handle} /> <span className="mono muted">{cut(data.command)}</span>
    </>
  ),
  'preview.ready': ({ data }) => (
    <>
      <strong>shows</strong> <TaskLink handle={data.handle} /> <span className="muted">at {cut(data.url)}</span>
    </>
  ),
  'preview.ended': ({ data }) => (
    <>
      <strong>{data.state === 'failed' ? 'could not go on with' : 'ended'} the preview</strong> of <TaskLink handle={data.handle} />{' '}
      <span className="muted">{cut(data.reason)}</span>
    </>
  ),
}

function cut(said: unknown): string {
  return String(said ?? '').slice(0, 300)
}
