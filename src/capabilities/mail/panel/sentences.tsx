import { visible } from '../../../ui/kit/plain.ts'
import { Who } from '../../../ui/kit/who.tsx'
import type { Sentences } from '../../../ui/panel.ts'

export const sentences: Sentences = {
  'mail.sent': ({ data }) => (
    <>
      <strong>wrote</strong> to {typeof data.to_agent_id === 'string' ? <Who id={data.to_agent_id} /> : 'the human'}:{' '}
      {visible(String(data.subject))}
    </>
  ),
  'mail.read': () => (
    <>
      <strong>read</strong> a letter
    </>
  ),
  'mail.acked': () => (
    <>
      <strong>acknowledged</strong> a letter
    </>
  ),
}
