import type { WatchContext } from '../kernel/tool.ts'

export interface Awaited<Row> {
  /** Whose events. */
  id: string
  types: string[]
  withinMs: number
  find(): Promise<Row | undefined>
  holds(row: Row): boolean
}

/** The row as soon as it is so, or as it is when the time is over. The cursor comes first, so that nothing is missed in between. */
export async function untilRow<Row>(ctx: WatchContext, { id, types, withinMs, find, holds }: Awaited<Row>): Promise<Row> {
  const end = performance.now() + withinMs
  for (;;) {
    const cursor = await ctx.cursor()
    const row = await find()
    if (!row) throw new Error(`${id} is not there`)
    if (holds(row)) return row
    const waited = await ctx.waitFor(cursor, { subject: id, types }, Math.max(1, end - performance.now()))
    if (waited.ended !== 'events') return row
  }
}
