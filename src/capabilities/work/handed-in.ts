import type { Tx } from '../../kernel/storage.ts'

type Source = (tx: Tx, task: string) => Promise<string | null>

let source: Source | undefined

/** Said once, where the capabilities are put together: a review knows the work that is handed in, not the other way round. */
export function askForHandedIn(handedIn: Source): void {
  source = handedIn
}

/** The commit that is reviewed, wherever its worker moves the branch; null when nobody looked at it. */
export async function handedInOf(...asked: Parameters<Source>): Promise<string | null> {
  return (await source?.(...asked)) ?? null
}
