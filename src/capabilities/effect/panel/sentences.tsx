import type { Sentences } from '../../../ui/panel.ts'

export const sentences: Sentences = {
  'effect.stuck': ({ data }) => (
    <>
      <strong>{data.state === 'dead' ? 'gave up on' : 'lost sight of'}</strong> <span className="mono">{String(data.type)}</span>{' '}
      <span className="muted">{String(data.error)}</span>
    </>
  ),
  'effect.decided': ({ data }) => (
    <>
      <strong>{data.decision === 'retry' ? 'retried' : 'dropped'}</strong> an effect that was stuck
    </>
  ),
}
