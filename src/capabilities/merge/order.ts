import type { MergeRow } from './store.ts'

/** So many may go before one that came earlier; then it is its turn, whatever its priority. */
export const MOST_PASSED_OVER = 10

/** One that was begun first; then whoever was passed over too often; then by priority, first come, first served. */
export function nextInLine<M extends Pick<MergeRow, 'state' | 'priority' | 'number' | 'passed_over'>>(waiting: M[]): M | undefined {
  return inOrder(waiting)[0]
}

export function inOrder<M extends Pick<MergeRow, 'state' | 'priority' | 'number' | 'passed_over'>>(waiting: M[]): M[] {
  return [...waiting].sort((a, b) => rank(b) - rank(a) || a.number - b.number)
}

function rank({ state, priority, passed_over }: Pick<MergeRow, 'state' | 'priority' | 'passed_over'>): number {
  if (state === 'checking') return Number.POSITIVE_INFINITY
  return passed_over >= MOST_PASSED_OVER ? Number.MAX_SAFE_INTEGER : priority
}
