import type { z } from 'zod'
import { definePoint } from '../../kernel/point.ts'
import type { LookContext } from '../../kernel/tool.ts'
import type { StepView, UrgencyName } from './schema.ts'

/** A call that a person can make as it stands, but for `…`. */
export type Step = z.output<typeof StepView>

export interface NeedKind {
  kind: string
  /** Above a list of them. */
  title: string
  urgency: UrgencyName
}

export interface Need {
  kind: string
  id: string
  handle: string | null
  title: string
  detail: string | null
  /** The handle of an agent, or of a person. */
  by: string | null
  task_id: string | null
  project_id: string | null
  /** Milliseconds. It must not change while the need lasts: pages are cut by it. */
  since: number
}

/** Where the page before ended, within one urgency. */
export interface Mark {
  since: number
  id: string
}

export interface Question {
  project: string | undefined
  /** Undefined: all. */
  kinds: string[] | undefined
  limit: number
  after(urgency: UrgencyName): Mark
}

export interface Needed {
  kinds: NeedKind[]
  /** How many there are of each kind, whatever the page. */
  counts: Record<string, number>
  /** Oldest first within each urgency: at least the first `limit` after the mark. */
  needs: Need[]
  /** Asked for those that are shown. */
  steps(shown: Need[]): Promise<Map<string, Step[]>>
  /** For scale. */
  totals?: Record<string, number>
}

/** What a person has to do before something goes on. */
export const needs = definePoint.all<(ctx: LookContext, question: Question) => Promise<Needed>>('need.needs')

/** Before every other one. */
export const START: Mark = { since: 0, id: '' }
/** Sorts behind every id. */
export const END: Mark = { since: Number.MAX_SAFE_INTEGER, id: '~' }

export function isAfter({ since, id }: Mark, mark: Mark): boolean {
  return since > mark.since || (since === mark.since && id > mark.id)
}
