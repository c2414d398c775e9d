import type { Output } from '../../../ui/client.ts'
import type { Tone } from '../../../ui/kit/badge.tsx'

export type Epic = Output<'epic_list'>['epics'][number]
export type FullEpic = Output<'epic_get'>['epic']
export type Queued = Output<'review_queue'>['queue'][number]

export const STATES: Record<Epic['state'], { tone: Tone; text: string }> = {
  PLANNING: { tone: 'neutral', text: 'planning' },
  IN_PROGRESS: { tone: 'blue', text: 'in progress' },
  REVIEW: { tone: 'amber', text: 'needs you' },
  COMPLETED: { tone: 'green', text: 'completed' },
  CANCELLED: { tone: 'neutral', text: 'cancelled' },
}

export const STATUSES: { status: 'done' | 'review' | 'in_progress' | 'backlog'; text: string }[] = [
  { status: 'done', text: 'done' },
  { status: 'review', text: 'in review' },
  { status: 'in_progress', text: 'in progress' },
  { status: 'backlog', text: 'to do' },
]

/** "3 of 12 done, 2 in review" */
export function progressInWords({ total, ...counts }: Epic['progress']): string {
  if (!total) return 'no tasks yet'
  const others = STATUSES.slice(1).flatMap(({ status, text }) => (counts[status] ? [`${counts[status]} ${text}`] : []))
  return [`${counts.done} of ${total} done`, ...others].join(', ')
}
