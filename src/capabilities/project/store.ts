import type { Kysely } from 'kysely'
import { statement } from '../../db/statement.ts'
import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'

export interface ProjectRow {
  id: string
  handle: string
  name: string
  description: string
  created_at: number
  updated_at: number
  deleted_at: number | null
}

export interface RepoRow {
  id: string
  handle: string
  project_id: string
  path: string
  base_branch: string
  remote: string | null
  checks: string | null
  /** The command that makes a fresh checkout ready to work in. */
  setup: string | null
  /** Patterns of ignored files that are copied from the person's checkout: into worktrees, and into checkouts for checks. */
  files: string
  check_files: string
  /** The command that ends what a checkout has left outside of it. */
  cleanup: string | null
  /** The command that starts the program, for a preview. */
  dev: string | null
  head: string | null
  synced_at: number
  created_at: number
  /** Of one that was removed: the path that it had. Its own path and handle are its id then, so that both are free for others. */
  removed_from: string | null
}

interface Tables {
  projects: ProjectRow
  repos: RepoRow
  open_projects: { token: string; project_id: string }
}

const projectBy = {
  id: statement((db: Kysely<Tables>, { ref }: { ref: string }) => db.selectFrom('projects').selectAll().where('id', '=', ref)),
  handle: statement((db: Kysely<Tables>, { ref }: { ref: string }) => db.selectFrom('projects').selectAll().where('handle', '=', ref)),
}

/** By id also those that were deleted or removed: what belonged to them goes on naming them. */
export function projectStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    project: (ref: string) => projectBy[byRef(ref)].first(tx, { ref }),
    projects: (after: string, limit: number, only?: string) =>
      db
        .selectFrom('projects')
        .selectAll()
        .where('id', '>', after)
        .where('deleted_at', 'is', null)
        .$if(only !== undefined, (rest) => rest.where('id', '=', only as string))
        .orderBy('id')
        .limit(limit)
        .execute(),
    insertProject: (row: ProjectRow) => db.insertInto('projects').values(row).execute(),
    /** Its handle is free for another. */
    deleteProject: async (id: string, now: number) => {
      await db.updateTable('projects').set({ handle: id, deleted_at: now, updated_at: now }).where('id', '=', id).execute()
      await db.deleteFrom('open_projects').where('project_id', '=', id).execute()
    },

    repo: (ref: string) => db.selectFrom('repos').selectAll().where(byRef(ref), '=', ref).executeTakeFirst(),
    repoAt: (path: string) => db.selectFrom('repos').selectAll().where('path', '=', path).executeTakeFirst(),
    /** The last one that was registered there. */
    removedFrom: (path: string) =>
      db.selectFrom('repos').selectAll().where('removed_from', '=', path).orderBy('id', 'desc').limit(1).executeTakeFirst(),
    repos: (project: string | undefined, after: string, limit: number) => {
      const all = db.selectFrom('repos').selectAll().where('removed_from', 'is', null).where('id', '>', after).orderBy('id').limit(limit)
      return (project ? all.where('project_id', '=', project) : all).execute()
    },
    insertRepo: (row: RepoRow) => db.insertInto('repos').values(row).execute(),
    unregister: ({ id, path }: RepoRow) =>
      db.updateTable('repos').set({ handle: id, path: id, removed_from: path }).where('id', '=', id).execute(),
    updateRepo: (id: string, changes: Partial<RepoRow>) => db.updateTable('repos').set(changes).where('id', '=', id).execute(),

    opened: async (token: string) =>
      (await db.selectFrom('open_projects').select('project_id').where('token', '=', token).executeTakeFirst())?.project_id,
    open: (token: string, project_id: string) =>
      db
        .insertInto('open_projects')
        .values({ token, project_id })
        .onConflict((oc) => oc.column('token').doUpdateSet({ project_id }))
        .execute(),
  }
}

function byRef(ref: string): 'id' | 'handle' {
  return ref.includes('_') ? 'id' : 'handle'
}
