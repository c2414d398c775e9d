import { visible } from '../../../ui/kit/plain.ts'
import type { Sentences } from '../../../ui/panel.ts'

export const sentences: Sentences = {
  'pr.opened': ({ data }) => (
    <>
      <strong>opened</strong> pull request {String(data.number)} <span className="muted">{visible(String(data.title)).slice(0, 200)}</span>
    </>
  ),
  'pr.merged': ({ data }) => (
    <>
      <strong>merged</strong> pull request {String(data.number)}
    </>
  ),
  'pr.closed': ({ data }) => (
    <>
      <strong>closed</strong> pull request {String(data.number)}
      <span className="muted">: {visible(String(data.reason)).slice(0, 300)}</span>
    </>
  ),
}
