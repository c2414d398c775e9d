import { Who } from '../../../ui/kit/who.tsx'
import type { Sentences } from '../../../ui/panel.ts'

export const sentences: Sentences = {
  'agent.invited': ({ subject, data }) => (
    <>
      <strong>invited</strong> <Who id={subject} />{' '}
      <span className="muted">
        as {String(data.role)}, with profile {words(data.profile)}
      </span>
    </>
  ),
  'person.invited': ({ subject, data }) => (
    <>
      <strong>let</strong> <Who id={subject} /> in <span className="muted">with profile {words(data.profile)}</span>
    </>
  ),
  'token.ended': ({ data }) =>
    data.why === 'used' ? (
      <>
        <strong>signed in</strong> with a link
      </>
    ) : (
      <>
        <strong>ended</strong> a token of <Who id={String(data.holder_id)} /> <span className="muted">{String(data.why)}</span>
      </>
    ),
  'token.rotated': ({ data }) => (
    <>
      <strong>replaced</strong> a token of <Who id={String(data.holder_id)} />
      {data.owner === true && <span className="muted"> the one in the state folder</span>}
    </>
  ),
}

const words = (profile: unknown) => String(profile).replaceAll('_', ' ')
