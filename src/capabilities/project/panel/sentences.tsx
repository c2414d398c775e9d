import type { Sentences } from '../../../ui/panel.ts'
import { short } from './words.ts'

export const sentences: Sentences = {
  'project.created': ({ data }) => (
    <>
      <strong>created</strong> project <span className="mono">{String(data.handle)}</span>{' '}
      <span className="muted">{String(data.name)}</span>
    </>
  ),
  'repo.added': ({ data }) => (
    <>
      <strong>registered</strong> repository <span className="mono">{String(data.handle)}</span>{' '}
      <span className="muted">
        {String(data.path)}, from {String(data.base_branch)}
      </span>
    </>
  ),
  'project.deleted': ({ data }) => (
    <>
      <strong>deleted</strong> project <span className="mono">{String(data.handle)}</span>{' '}
      <span className="muted">{String(data.name)}</span>
    </>
  ),
  'repo.removed': ({ data }) => (
    <>
      <strong>unregistered</strong> repository <span className="mono">{String(data.handle)}</span>{' '}
      <span className="muted">{String(data.path)}</span>
    </>
  ),
  'repo.moved': ({ data }) => (
    <>
      <strong>followed</strong> a repository from <span className="mono">{String(data.from)}</span> to{' '}
      <span className="mono">{String(data.path)}</span>
      {typeof data.problem === 'string' && <span className="muted">: {data.problem.slice(0, 300)}</span>}
    </>
  ),
  'repo.synced': ({ data }) => (
    <>
      <strong>found</strong> a repository changed{' '}
      <span className="muted">
        its head is {typeof data.head === 'string' ? short(data.head) : 'no commit yet'}
        {typeof data.remote === 'string' && `, its remote ${data.remote}`}
      </span>
    </>
  ),
}
