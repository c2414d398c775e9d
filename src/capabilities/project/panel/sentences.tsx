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
