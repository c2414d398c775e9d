import type { RunContext } from '../../kernel/tool.ts'
import type { RepoFacts } from '../../ports/git.ts'
import { repoSynced } from './schema.ts'
import { projectStore, type RepoRow } from './store.ts'

/** What git says of it now; whether that is news. */
export async function synced(ctx: RunContext, repo: RepoRow, { head, remote }: Pick<RepoFacts, 'head' | 'remote'>): Promise<boolean> {
  await projectStore(ctx.tx).updateRepo(repo.id, { head, remote, synced_at: ctx.now })
  const isNews = repo.head !== head || repo.remote !== remote
  if (isNews) ctx.emit(repoSynced({ subject: repo.id, project: repo.project_id }, { head, remote }))
  return isNews
}

/** What is checked out in it, after Signalbox has moved that itself: that is told by what moved it. */
export async function followedTo(ctx: RunContext, repo: string, head: string | null): Promise<void> {
  await projectStore(ctx.tx).updateRepo(repo, { head, synced_at: ctx.now })
}
