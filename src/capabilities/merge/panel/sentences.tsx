import { visible } from '../../../ui/kit/plain.ts'
import { TaskLink } from '../../../ui/kit/task-link.tsx'
import type { Sentences } from '../../../ui/panel.ts'

export const sentences: Sentences = {
  'merge.landed': ({ data }) => (
    <>
      <strong>merged</strong> <TaskLink handle={data.handle} /> into <span className="mono">{visible(String(data.into))}</span>
    </>
  ),
  'merge.conflicted': ({ data }) => (
    <>
      <strong>could not merge</strong> <TaskLink handle={data.handle} />
      <span className="muted">: both sides changed {visible((data.files as string[]).join(', ')).slice(0, 300)}</span>
    </>
  ),
  'merge.stuck': ({ data }) => (
    <>
      <strong>could not merge</strong> <TaskLink handle={data.handle} />
      <span className="muted">: {visible(String(data.reason)).slice(0, 300)}</span>
    </>
  ),
  'merge.queued': ({ data }) => (
    <>
      <strong>put into the merge line</strong> <TaskLink handle={data.handle} /> for{' '}
      <span className="mono">{visible(String(data.into))}</span>
    </>
  ),
  'merge.checking': ({ data }) => (
    <>
      <strong>checks the merge</strong> of <TaskLink handle={data.handle} />
    </>
  ),
  'merge.red': ({ data }) => (
    <>
      <strong>checks failed</strong> on the merge of <TaskLink handle={data.handle} />
      <span className="muted">: {visible(String(data.reason)).slice(0, 300)}</span>
    </>
  ),
  'merge.withdrawn': ({ data }) => (
    <>
      <strong>took out of the merge line</strong> <TaskLink handle={data.handle} />
    </>
  ),
  'line.held': ({ data }) => (
    <>
      <strong>nothing lands</strong> on <span className="mono">{visible(String(data.target))}</span>
      <span className="muted">: {visible(String(data.reason)).slice(0, 300)}</span>
    </>
  ),
  'line.freed': ({ data }) => (
    <>
      <strong>let go on</strong> the merge line of <span className="mono">{visible(String(data.target))}</span>
    </>
  ),
  'line.moved': ({ data }) => (
    <>
      <strong>took in what was committed</strong> on <span className="mono">{visible(String(data.target))}</span>
      <span className="muted">, past the merge line</span>
    </>
  ),
  'line.followed': ({ data }) => (
    <>
      <strong>brought up to date</strong> <span className="mono">{visible(String(data.target))}</span>
      {Number(data.behind) > 0 && <span className="muted">: {String(data.behind)} behind</span>}
    </>
  ),
}
