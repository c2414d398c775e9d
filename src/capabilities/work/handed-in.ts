import { definePoint } from '../../kernel/point.ts'
import type { Reading } from '../../kernel/tool.ts'

/** The commit that is reviewed, wherever its worker moves the branch; null when nobody looked at it. A review knows the work, not the other way round. */
export const handedIn = definePoint.one<(ctx: Reading, task: string) => Promise<string | null>>('work.handed_in', async () => null)
