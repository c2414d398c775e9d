import type { Git } from '../../ports/git.ts'
import type { RepoRow } from '../project/index.ts'

const MOST = 1_000

/** Files that were copied into a checkout and are part of the work now: by another .gitignore, or by `git add --force`. */
export async function committedCopies(
  git: Pick<Git, 'ignoredIn' | 'filesOf'>,
  repo: RepoRow,
  base: string,
  head: string,
): Promise<string[]> {
  const patterns = [...JSON.parse(repo.files), ...JSON.parse(repo.check_files)] as string[]
  if (patterns.length === 0) return []
  const theirs = await git.ignoredIn(repo.path, patterns, MOST)
  if (theirs.length === 0) return []
  const [before, now] = await Promise.all(
    [base, head].map(async (commit) => (await git.filesOf(repo.path, commit)).map(({ path }) => path)),
  )
  return theirs.filter((path) => now?.includes(path) && !before?.includes(path))
}
