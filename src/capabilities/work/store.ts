import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { BaseStrategy } from '../../ports/git.ts'
import type { WORK_STATES } from './schema.ts'

/**
 * One task's own worktree and branch.
 *
 * | state   | means                                                            |
 * |---------|------------------------------------------------------------------|
 * | planned | it has its names; nobody has told that it was made               |
 * | made    | it was made at `path`, from `base_commit`                        |
 * | removed | its folder was taken away; its branch and what was saved are there |
 */
export interface WorkRow {
  id: string
  task_id: string
  repo_id: string
  project_id: string
  name: string
  /** Null until it was made. */
  path: string | null
  /** The daemon that made it there, among those that share a database: on its disk it is. Null until it was made, and of older ones. */
  host: string | null
  branch: string
  base_branch: string
  /** What the base branch itself is to be made from when it is not there: that of an epic. */
  base_from: string | null
  /** Null until it was made. */
  base_commit: string | null
  strategy: BaseStrategy
  state: (typeof WORK_STATES)[number]
  created_at: number
  updated_at: number
}

interface Tables {
  works: WorkRow
  tasks: { id: string; status: string; deleted_at: number | null }
}

export function workStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    find: (id: string) => db.selectFrom('works').selectAll().where('id', '=', id).executeTakeFirst(),
    ofTask: (task: string) => db.selectFrom('works').selectAll().where('task_id', '=', task).executeTakeFirst(),
    ofTasks: (tasks: string[]) =>
      tasks.length ? db.selectFrom('works').selectAll().where('task_id', 'in', tasks).execute() : Promise.resolve([]),
    list: (project: string | undefined, after: string, limit: number) => {
      const all = db.selectFrom('works').selectAll().where('id', '>', after).orderBy('id').limit(limit)
      return (project ? all.where('project_id', '=', project) : all).execute()
    },
    made: (project: string | undefined, limit: number) => {
      const all = db.selectFrom('works').selectAll().where('state', '=', 'made').orderBy('id').limit(limit)
      return (project ? all.where('project_id', '=', project) : all).execute()
    },
    /** Of tasks that are not done. */
    openIn: (repo: string, limit: number) =>
      db
        .selectFrom('works')
        .innerJoin('tasks', 'tasks.id', 'works.task_id')
        .selectAll('works')
        .where('works.repo_id', '=', repo)
        .where('tasks.status', '!=', 'DONE')
        .where('tasks.deleted_at', 'is', null)
        .orderBy('works.id')
        .limit(limit)
        .execute(),
    /** One that has, or had, a worktree. */
    firstIn: (repo: string) =>
      db.selectFrom('works').select('id').where('repo_id', '=', repo).where('path', 'is not', null).limit(1).executeTakeFirst(),
    madeIn: (repo: string, limit: number) =>
      db.selectFrom('works').selectAll().where('repo_id', '=', repo).where('state', '=', 'made').orderBy('id').limit(limit).execute(),
    insert: (row: WorkRow) => db.insertInto('works').values(row).execute(),
    update: (id: string, changes: Partial<WorkRow>) => db.updateTable('works').set(changes).where('id', '=', id).execute(),
  }
}
