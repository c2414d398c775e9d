import type { Run } from './data.ts'

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const exact = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const dollars = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', minimumFractionDigits: 2, maximumFractionDigits: 4 })

export const tokensIn = (count: number) => compact.format(count)
export const money = (usd: number) => dollars.format(usd)

export const UNTOLD = 'not told'

/** What a program does not report itself is a guess, and looks like one; what it does not tell at all is not nothing. */
export function costOf({ cost_usd, estimated, untold }: Pick<Run, 'cost_usd' | 'estimated'> & { untold?: string[] }): string {
  if (untold?.includes('cost') && !cost_usd) return UNTOLD
  return `${estimated ? '≈ ' : ''}${money(cost_usd)}`
}

export const tokensOf = ({ input_tokens, output_tokens }: Run) => input_tokens + output_tokens

export const METERS = ['minutes', 'turns', 'tokens', 'cost_usd'] as const
export type Meter = (typeof METERS)[number]

interface MeterWords {
  label: string
  /** As a harness calls it. */
  counted: string
  whole: boolean
  show(amount: number): string
}

export const METER: Record<Meter, MeterWords> = {
  minutes: { label: 'Minutes', counted: 'wall_clock', whole: false, show: (amount) => exact.format(amount) },
  turns: { label: 'Turns', counted: 'turns', whole: true, show: (amount) => exact.format(amount) },
  tokens: { label: 'Tokens', counted: 'tokens', whole: true, show: tokensIn },
  cost_usd: { label: 'Dollars', counted: 'cost', whole: false, show: money },
}
