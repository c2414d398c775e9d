import type { Output } from '../../../ui/client.ts'
import { Badge, type Tone } from '../../../ui/kit/badge.tsx'

export type Letter = Output<'mail_inbox'>['letters'][number]

const TONES: Partial<Record<Letter['importance'], Tone>> = { urgent: 'red', high: 'amber', low: 'neutral' }

/** What is as important as most is not marked. */
export function ImportanceBadge({ importance }: Pick<Letter, 'importance'>) {
  const tone = TONES[importance]
  return tone ? <Badge tone={tone}>{importance}</Badge> : null
}
