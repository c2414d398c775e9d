import type { HarnessEvent } from '../../ports/harness.ts'
import type { Models } from './protocol.ts'

export interface Totals {
  input: number
  output: number
  cached: number
  cost: number
}

export const NOTHING_USED: Totals = { input: 0, output: 0, cached: 0, cost: 0 }

/** Over all models. What is written into the provider's cache is input like any other; only what is read from it was known before. */
export function totalsOf(models: Models): Totals {
  return Object.values(models).reduce(
    (sum, model) => ({
      input: sum.input + model.inputTokens + model.cacheCreationInputTokens,
      output: sum.output + model.outputTokens,
      cached: sum.cached + model.cacheReadInputTokens,
      cost: sum.cost + model.costUSD,
    }),
    NOTHING_USED,
  )
}

export const without = (totals: Totals, part: Totals): Totals => ({
  input: totals.input - part.input,
  output: totals.output - part.output,
  cached: totals.cached - part.cached,
  cost: totals.cost - part.cost,
})

/** What came on top since it was told last. A count that began anew tells nothing, it only is the new beginning. */
export function usedSince(told: Totals, now: Totals): HarnessEvent[] {
  const { input, output, cached, cost } = without(now, told)
  if (Math.min(input, output, cached, cost) < 0 || input + output + cached + cost === 0) return []
  return [{ type: 'usage', input_tokens: input, output_tokens: output, cached_tokens: cached, cost_usd: cost, estimated: false }]
}
