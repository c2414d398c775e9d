import type { Kysely } from 'kysely'
import { statement } from '../../db/statement.ts'
import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'

/**
 * One round of handing in work.
 *
 * | decision        | outcome  | means                                                    |
 * |-----------------|----------|----------------------------------------------------------|
 * | null            | null     | nobody has decided                                       |
 * | request_changes | null     | it went back, with the feedback                          |
 * | timed_out       | null     | nobody has decided in time; it still can be decided      |
 * | abandoned       | null     | the whole work was given up: `reason` says why           |
 * | approve         | null     | it is being merged                                       |
 * | approve         | merged   | it is on the branch, by `merge_commit`; with a `reason` when it was before |
 * | approve         | conflict | it went back: `reason` names the files                   |
 * | approve         | red      | it went back: the checks fail on the merged tree         |
 * | approve         | failed   | git would not: `reason` says why; it can be decided anew |
 */
export interface ReviewRow {
  id: string
  task_id: string
  project_id: string
  round: number
  summary: string
  reviewer_prompt: string | null
  requested_by: string
  requested_at: number
  decision: Decision | null
  decided_by: string | null
  decided_at: number | null
  feedback: string | null
  /** What was approved, and nothing later. */
  head_commit: string | null
  outcome: 'merged' | 'conflict' | 'red' | 'failed' | null
  merge_commit: string | null
  reason: string | null
  /** The commit that was there when it was handed in; null when nobody looked. */
  handed_in: string | null
  /** The task on which its reviewer runs. */
  reviewer_task_id: string | null
  /** How often another round was asked for after this one, and refused. */
  refused: number
  /** When the work was given up after this round: what was before counts no more. */
  abandoned_at: number | null
  /** When its worktree was to be taken away after that. */
  cleaned_at: number | null
  /** Who is to read it: an agent whatever the settings say, or a person and no agent at all; null: as the settings say. */
  reader: Reader | null
}

/** Of a round in which nobody has decided. */
export const UNDECIDED = {
  decision: null,
  decided_by: null,
  decided_at: null,
  feedback: null,
  head_commit: null,
  outcome: null,
  merge_commit: null,
  reason: null,
  handed_in: null,
  reviewer_task_id: null,
  refused: 0,
  abandoned_at: null,
  cleaned_at: null,
  reader: null,
} as const

export const READERS = ['agent', 'human'] as const
export type Reader = (typeof READERS)[number]

export const DECISIONS = ['approve', 'request_changes', 'timed_out', 'abandoned'] as const
export type Decision = (typeof DECISIONS)[number]

export const FEEDBACK_TYPES = ['needs_work', 'suggestions', 'clarification'] as const
export const FEEDBACK_PRIORITIES = ['low', 'medium', 'high', 'critical'] as const
export const FEEDBACK_STATES = ['sending', 'sent', 'failed'] as const

/**
 * What somebody says about a round that goes back.
 *
 * | state   | means                                                                    |
 * |---------|--------------------------------------------------------------------------|
 * | sending | it is being committed to the branch of the work                          |
 * | sent    | it is there, by `commit_hash`; its worker has a letter and goes on       |
 * | failed  | git would not: `reason`. Its worker has the letter all the same          |
 */
export interface FeedbackRow {
  id: string
  review_id: string
  task_id: string
  project_id: string
  round: number
  from_id: string
  /** Its worker; null when nobody has the task. */
  to_id: string | null
  feedback: string
  feedback_type: (typeof FEEDBACK_TYPES)[number]
  priority: (typeof FEEDBACK_PRIORITIES)[number] | null
  /** JSON. */
  actionable_items: string
  state: (typeof FEEDBACK_STATES)[number]
  commit_hash: string | null
  reason: string | null
  created_at: number
  sent_at: number | null
}

interface Tables {
  tasks: { id: string; status: string; deleted_at: number | null; reviews_task_id: string | null }
  reviews: ReviewRow
  feedbacks: FeedbackRow
}

type Db = Kysely<Tables>

/** Asked for at every look at a task: compiled once. */
const LATEST_OF = statement((db: Db, { task }: { task: string }) =>
  db.selectFrom('reviews').selectAll().where('task_id', '=', task).orderBy('round', 'desc'),
)

export function reviewStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    find: (id: string) => db.selectFrom('reviews').selectAll().where('id', '=', id).executeTakeFirst(),
    insert: (row: ReviewRow) => db.insertInto('reviews').values(row).execute(),
    update: (id: string, changes: Partial<ReviewRow>) => db.updateTable('reviews').set(changes).where('id', '=', id).execute(),
    ofTask: (task: string) => db.selectFrom('reviews').selectAll().where('task_id', '=', task).orderBy('round').execute(),
    /** Tasks of which something may be to do: open ones, those with a reviewer, and what was given up and not cleaned. */
    unsettled: async () => {
      const open = await db
        .selectFrom('reviews as r')
        .innerJoin('tasks as t', 't.id', 'r.task_id')
        .select('r.task_id')
        .where((eb) =>
          eb.or([
            eb.and([eb('t.status', 'in', ['IN_PROGRESS', 'REVIEW']), eb('t.deleted_at', 'is', null)]),
            eb.and([eb('r.abandoned_at', 'is not', null), eb('r.cleaned_at', 'is', null)]),
          ]),
        )
        .execute()
      const read = await db
        .selectFrom('tasks')
        .select('reviews_task_id')
        .where('reviews_task_id', 'is not', null)
        .where('status', '!=', 'DONE')
        .where('deleted_at', 'is', null)
        .execute()
      return [...new Set([...open.map(({ task_id }) => task_id), ...read.map(({ reviews_task_id }) => reviews_task_id as string)])]
    },
    /** The last round of each. */
    latest: async (tasks: string[]) => {
      if (!tasks.length) return []
      const [only, ...others] = tasks
      if (only && !others.length) return (await LATEST_OF.all(tx, { task: only })).slice(0, 1)
      return db
        .selectFrom('reviews as r')
        .selectAll()
        .where('r.task_id', 'in', tasks)
        .where('r.round', '=', (eb) =>
          eb
            .selectFrom('reviews as newest')
            .select((of) => of.fn.max('newest.round').as('round'))
            .whereRef('newest.task_id', '=', 'r.task_id'),
        )
        .execute()
    },
  }
}

export function feedbackStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    find: (id: string) => db.selectFrom('feedbacks').selectAll().where('id', '=', id).executeTakeFirst(),
    ofTask: (task: string) => db.selectFrom('feedbacks').selectAll().where('task_id', '=', task).orderBy('id').execute(),
    /** On its way: nobody else decides about the round meanwhile. */
    sendingOf: (task: string) =>
      db.selectFrom('feedbacks').selectAll().where('task_id', '=', task).where('state', '=', 'sending').executeTakeFirst(),
    insert: (row: FeedbackRow) => db.insertInto('feedbacks').values(row).execute(),
    update: (id: string, changes: Partial<FeedbackRow>) => db.updateTable('feedbacks').set(changes).where('id', '=', id).execute(),
  }
}
