import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { BaseStrategy } from '../../ports/git.ts'

/**
 * Approved work on its way to a branch.
 *
 * | state     | means                                                                     |
 * |-----------|---------------------------------------------------------------------------|
 * | waiting   | for its turn                                                              |
 * | checking  | `built` on top of `built_on`; the checks run on that tree                 |
 * | landed    | it is on the line, by `built`                                             |
 * | conflict  | the line has changed the same places: `files`. It went back to its worker |
 * | red       | the checks fail on the merged tree: `log`. It went back to its worker     |
 * | stuck     | git would not, however often: `reason`. A person tries again              |
 * | withdrawn | it was taken out, or its task is no longer to be merged                   |
 *
 * waiting → checking → landed, conflict, red, stuck, withdrawn; checking → waiting when the line is held; stuck, red, withdrawn → waiting when it
 * is tried again; withdrawn → landed when it landed in the same moment.
 */
export const MERGE_STATES = ['waiting', 'checking', 'landed', 'conflict', 'red', 'stuck', 'withdrawn'] as const
export type MergeState = (typeof MERGE_STATES)[number]
export const OPEN_STATES = ['waiting', 'checking'] as const satisfies MergeState[]

export function isOpen({ state }: Pick<MergeRow, 'state'>): boolean {
  return (OPEN_STATES as readonly MergeState[]).includes(state)
}

export interface MergeRow {
  id: string
  /** Those of a line are in the order of their numbers. */
  number: number
  repo_id: string
  target: string
  /** What the target is to be made from when it is not there: that of an epic. */
  made_from: string | null
  strategy: BaseStrategy
  project_id: string
  task_id: string
  review_id: string
  /** What was approved, and nothing later. */
  head_commit: string
  /** What the commit says below its title: what its worker said of it. */
  summary: string | null
  priority: number
  /** How many that came later went before it. */
  passed_over: number
  state: MergeState
  built_on: string | null
  built: string | null
  reason: string | null
  /** JSON: those in conflict. */
  files: string
  /** The end of what the checks printed. */
  log: string | null
  submitted_by: string
  submitted_at: number
  began_at: number | null
  ended_at: number | null
}

/** One for each repository and branch that work was begun for. */
export interface LineRow {
  repo_id: string
  target: string
  project_id: string
  /** As those of its merges. */
  made_from: string | null
  strategy: BaseStrategy
  head: string | null
  /** What has passed its checks and is about to land, or has landed since: told before the line moves to it. */
  landing: string | null
  /** The last commit of it that the checks passed on. */
  green: string | null
  /** By these checks, setup and copied files: others may find it red. */
  green_by: string | null
  /** Why nothing moves until a person has done something. */
  held: string | null
  /** How many commits the branch itself is behind, and why it could not follow. */
  behind: number
  behind_reason: string | null
  updated_at: number
}

interface Tables {
  merges: MergeRow
  lines: LineRow
  repos: { id: string; removed_from: string | null }
}

export function mergeStore(tx: Tx) {
  const db = tables<Tables>(tx)
  const inLine = (repo: string, target: string) =>
    db
      .selectFrom('merges')
      .selectAll()
      .where('repo_id', '=', repo)
      .where('target', '=', target)
      .where('state', 'in', [...OPEN_STATES])
      .orderBy('number')
  return {
    find: (id: string) => db.selectFrom('merges').selectAll().where('id', '=', id).executeTakeFirst(),
    lastOf: (task: string) =>
      db.selectFrom('merges').selectAll().where('task_id', '=', task).orderBy('number', 'desc').limit(1).executeTakeFirst(),
    ofReview: (review: string) =>
      db.selectFrom('merges').selectAll().where('review_id', '=', review).orderBy('number', 'desc').limit(1).executeTakeFirst(),
    /** Those of these tasks that are in a line. */
    openOf: async (tasks: string[]) =>
      tasks.length
        ? db
            .selectFrom('merges')
            .selectAll()
            .where('task_id', 'in', tasks)
            .where('state', 'in', [...OPEN_STATES])
            .execute()
        : [],
    inLine: (repo: string, target: string) => inLine(repo, target).execute(),
    /** Newest first. */
    ended: (repo: string, target: string, limit: number) =>
      db
        .selectFrom('merges')
        .selectAll()
        .where('repo_id', '=', repo)
        .where('target', '=', target)
        .where('state', 'not in', [...OPEN_STATES])
        .orderBy('number', 'desc')
        .limit(limit)
        .execute(),
    /** Taken out after they were begun, newest first. */
    withdrawn: (repo: string, target: string, limit: number) =>
      db
        .selectFrom('merges')
        .selectAll()
        .where('repo_id', '=', repo)
        .where('target', '=', target)
        .where('state', '=', 'withdrawn')
        .where('built', 'is not', null)
        .orderBy('ended_at', 'desc')
        .limit(limit)
        .execute(),
    insert: (row: MergeRow) => db.insertInto('merges').values(row).execute(),
    update: (id: string, changes: Partial<MergeRow>) => db.updateTable('merges').set(changes).where('id', '=', id).execute(),
    passOver: (merge: MergeRow) =>
      db
        .updateTable('merges')
        .set((eb) => ({ passed_over: eb('passed_over', '+', 1) }))
        .where('repo_id', '=', merge.repo_id)
        .where('target', '=', merge.target)
        .where('state', '=', 'waiting')
        .where('number', '<', merge.number)
        .execute(),

    line: (repo: string, target: string) =>
      db.selectFrom('lines').selectAll().where('repo_id', '=', repo).where('target', '=', target).executeTakeFirst(),
    lines: (project: string | undefined, repo: string | undefined) => {
      const registered = db.selectFrom('repos').select('id').where('removed_from', 'is', null)
      let all = db.selectFrom('lines').selectAll().where('repo_id', 'in', registered).orderBy('repo_id').orderBy('target')
      if (project) all = all.where('project_id', '=', project)
      if (repo) all = all.where('repo_id', '=', repo)
      return all.execute()
    },
    saveLine: (row: Pick<LineRow, 'repo_id' | 'target' | 'project_id' | 'made_from' | 'strategy' | 'updated_at'> & Partial<LineRow>) =>
      db
        .insertInto('lines')
        .values({ head: null, landing: null, green: null, green_by: null, held: null, behind: 0, behind_reason: null, ...row })
        .onConflict((oc) => oc.columns(['repo_id', 'target']).doUpdateSet(row))
        .execute(),
  }
}
