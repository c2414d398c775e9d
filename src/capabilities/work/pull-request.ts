import type { z } from 'zod'
import type { Tx } from '../../kernel/storage.ts'
import type { PullRequest } from './schema.ts'

type Source = (tx: Tx, task: string, address: string) => Promise<z.output<typeof PullRequest> | undefined>

let source: Source | undefined

/** Said once, where the capabilities are put together: a pull request knows its work, not the other way round. */
export function askForPullRequests(pullRequests: Source): void {
  source = pullRequests
}

export async function pullRequestOf(...asked: Parameters<Source>): ReturnType<Source> {
  return source?.(...asked)
}
