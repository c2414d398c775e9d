import type { EffectContext } from '../../kernel/effect.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { WorkRow } from './store.ts'

interface Source {
  headOf(tx: Tx, repo: string, target: string): Promise<string | null>
  /** Before its worker can write to the repository; `branch`: makes the branch that it is to land on, where that is one of ours. */
  begin(ctx: EffectContext, work: WorkRow, branch: () => Promise<void>): Promise<void>
}

let source: Source | undefined

/** Said once, where the capabilities are put together: a line knows the work that lands on it, not the other way round. */
export function askForLines(lines: Source): void {
  source = lines
}

/** The last commit that is known to have landed on a branch, wherever its refs stand: workers can move those. */
export async function landedOn(...asked: Parameters<Source['headOf']>): Promise<string | null> {
  return (await source?.headOf(...asked)) ?? null
}

export async function beginLine(...begun: Parameters<Source['begin']>): Promise<void> {
  return source ? source.begin(...begun) : begun[2]()
}
