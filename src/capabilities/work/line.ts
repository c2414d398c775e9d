import type { EffectContext } from '../../kernel/effect.ts'
import { definePoint } from '../../kernel/point.ts'
import type { Reading } from '../../kernel/tool.ts'
import type { WorkRow } from './store.ts'

type HeadOf = (ctx: Reading, repo: string, target: string) => Promise<string | null>
type Begin = (ctx: EffectContext, work: WorkRow, branch: () => Promise<void>) => Promise<void>

// A line knows the work that lands on it, not the other way round.

/** The last commit that is known to have landed on a branch, wherever its refs stand: workers can move those. */
export const lineHead = definePoint.one<HeadOf>('work.line_head', async () => null)

/** Before its worker can write to the repository; `branch`: makes the branch that it is to land on, where that is one of ours. */
export const lineBegins = definePoint.one<Begin>('work.line_begins', (_ctx, _work, branch) => branch())
