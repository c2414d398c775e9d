import { z } from 'zod'
import type { HarnessEvent } from '../../ports/harness.ts'

const Count = z.int().min(0).max(1e15)
const Tokens = z.object({ inputTokens: Count, cachedInputTokens: Count, outputTokens: Count })
export type Used = z.output<typeof Tokens>

/** What a thread has used in all, and at its last step. */
export const Totals = z.object({ total: Tokens, last: Tokens })

/** Undefined when it is nothing. Of a thread that was not heard of before only the last step is new for sure. */
export function usedSince(before: Used | undefined, { total, last }: z.output<typeof Totals>): HarnessEvent | undefined {
  const since = (name: keyof Used) => (before ? Math.max(0, total[name] - before[name]) : last[name])
  const cached = since('cachedInputTokens')
  // Codex counts what came from the cache as input too.
  const input = Math.max(0, since('inputTokens') - cached)
  const output = since('outputTokens')
  if (input + cached + output === 0) return undefined
  return { type: 'usage', input_tokens: input, output_tokens: output, cached_tokens: cached, cost_usd: null, estimated: false }
}
