import type { Tx } from '../../kernel/storage.ts'

type Source = (tx: Tx, repo: string, target: string) => Promise<string | null>

let source: Source | undefined

/** Said once, where the capabilities are put together: a line knows the work that lands on it, not the other way round. */
export function askForLines(lines: Source): void {
  source = lines
}

/** The last commit that is known to have landed on a branch, wherever its refs stand: workers can move those. */
export async function landedOn(...asked: Parameters<Source>): Promise<string | null> {
  return (await source?.(...asked)) ?? null
}
