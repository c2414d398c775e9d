import type { Output } from '../../../ui/client.ts'
import type { Tone } from '../../../ui/kit/badge.tsx'

export type Line = Output<'merge_status'>['lines'][number]
export type Merge = Line['ended'][number]

export const STATES: Record<Merge['state'], { tone: Tone; text: string }> = {
  waiting: { tone: 'neutral', text: 'waits' },
  checking: { tone: 'blue', text: 'being checked' },
  landed: { tone: 'green', text: 'landed' },
  conflict: { tone: 'red', text: 'conflict' },
  red: { tone: 'red', text: 'checks failed' },
  stuck: { tone: 'amber', text: 'stuck' },
  withdrawn: { tone: 'neutral', text: 'taken out' },
}

/** What waits for a person first, then what moves, then the rest, each as the daemon has them. */
export function mostPressingFirst(lines: Line[]): Line[] {
  const rank = ({ held, waiting, behind }: Line) => (held !== null ? 0 : waiting.length ? 1 : behind ? 2 : 3)
  return lines.toSorted((a, b) => rank(a) - rank(b))
}

export function short(commit: string): string {
  return commit.slice(0, 10)
}
