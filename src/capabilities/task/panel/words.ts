import { Ban, CircleDot, CirclePause, Eye, GitMerge, Hourglass, type LucideIcon, TrainFront, TriangleAlert, UserRound } from 'lucide-react'
import type { Tone } from '../../../ui/kit/badge.tsx'
import type { Status } from '../schema.ts'
import type { Task } from './board-data.ts'

export const COLUMNS: { status: Status; title: string; tone: Tone }[] = [
  { status: 'BACKLOG', title: 'Backlog', tone: 'neutral' },
  { status: 'IN_PROGRESS', title: 'In progress', tone: 'blue' },
  { status: 'REVIEW', title: 'Review', tone: 'amber' },
  { status: 'DONE', title: 'Done', tone: 'green' },
]

export const columnOf = (status: Status) => COLUMNS.find((column) => column.status === status) as (typeof COLUMNS)[number]

interface Words {
  tone: Tone
  icon: LucideIcon
  text: string
  title: string
}

/** What moves this next, in words. */
export function attentionOf(task: Task): Words | undefined {
  if (task.attention === null) return undefined
  const words = ATTENTION[task.attention]
  const text = task.attention === 'dependency' && task.blocked_by.length ? `waits for ${task.blocked_by.join(', ')}` : words.text
  return { ...words, text, title: task.attention_detail ?? words.title }
}

const ATTENTION: Record<NonNullable<Task['attention']>, Words> = {
  running: { tone: 'green', icon: TrainFront, text: 'running', title: 'An agent works on it' },
  queued: { tone: 'blue', icon: Hourglass, text: 'queued', title: 'It waits for a free place' },
  reviewer: { tone: 'blue', icon: Eye, text: 'in review', title: 'Whoever leads its epic decides about it' },
  merge: { tone: 'blue', icon: GitMerge, text: 'merging', title: 'It was approved, and is being merged' },
  quota: { tone: 'amber', icon: CirclePause, text: 'quota', title: 'The provider gives no more for now' },
  stalled: { tone: 'red', icon: TriangleAlert, text: 'stalled', title: 'The agent has been silent for long' },
  dependency: { tone: 'red', icon: Ban, text: 'waits', title: 'It can go on when those are done' },
  human: { tone: 'amber', icon: UserRound, text: 'needs you', title: 'Nothing moves it but a person' },
}

export const PRIORITY: Record<Task['priority'], Words> = {
  high: { tone: 'red', icon: CircleDot, text: 'high', title: 'High priority' },
  medium: { tone: 'neutral', icon: CircleDot, text: 'medium', title: 'Medium priority' },
  low: { tone: 'neutral', icon: CircleDot, text: 'low', title: 'Low priority' },
}

const RANK = { high: 0, medium: 1, low: 2 }

/** Urgent first, then old before new; of what is done, the latest. */
export function inOrder(tasks: Task[], status: Status): Task[] {
  const own = tasks.filter((task) => task.status === status)
  if (status === 'DONE') return own.sort((a, b) => b.updated_at.localeCompare(a.updated_at))
  return own.sort((a, b) => RANK[a.priority] - RANK[b.priority] || numberOf(a) - numberOf(b))
}

const numberOf = (task: Task) => Number(task.handle.slice(2))
