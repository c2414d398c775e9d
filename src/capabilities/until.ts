import type { Cursor, EventFilter, EventType, LoggedEvent } from '../kernel/event.ts'
import type { Waited, WatchContext } from '../kernel/tool.ts'

interface Watched<T> {
  /** What is watched, and which events tell of it. */
  about: Omit<EventFilter, 'types'>
  types: EventType[]
  withinMs: number
  /** Where a resumed watch goes on; default: now. */
  from?: Cursor
  /** So many of the last events are looked at first: what is waited for may have been told already. */
  recent?: number
  /** What it came to, undefined as long as there is more to wait for. Given are the events that have come since the last look. */
  look(events: LoggedEvent[], cursor: Cursor): T | undefined | Promise<T | undefined>
}

/** `ended`: why it came to nothing yet. */
type Seen<T> = { found: T; cursor: Cursor } | { found: undefined; cursor: Cursor; ended: Exclude<Waited['ended'], 'events'> }

/** Looks, and again after every event that may change what it sees. The cursor comes first: what is told between look and wait is seen by the wait. */
export async function watchUntil<T>(ctx: WatchContext, { about, types, withinMs, from, recent, look }: Watched<T>): Promise<Seen<T>> {
  const end = performance.now() + withinMs
  const filter = { ...about, types: types.map(({ type }) => type) }
  let cursor = from ?? (await ctx.cursor())
  let events = recent ? await ctx.recent(undefined, filter, recent) : []
  for (;;) {
    const found = await look(events, cursor)
    if (found !== undefined) return { found, cursor }
    const waited = await ctx.waitFor(cursor, filter, Math.max(1, end - performance.now()))
    if (waited.ended !== 'events') return { found: undefined, cursor, ended: waited.ended }
    events = waited.events
    cursor = events.at(-1)?.cursor ?? cursor
  }
}

interface Awaited<Row> {
  /** Whose events. */
  id: string
  types: EventType[]
  withinMs: number
  find(): Promise<Row | undefined>
  holds(row: Row): boolean
}

/** The row as soon as it is so, or as it is when the time is over. */
export async function untilRow<Row extends object>(ctx: WatchContext, { id, types, withinMs, find, holds }: Awaited<Row>): Promise<Row> {
  let last: Row | undefined
  const look = async () => {
    last = await find()
    if (!last) throw new Error(`${id} is not there`)
    return holds(last) ? last : undefined
  }
  const { found } = await watchUntil(ctx, { about: { subject: id }, types, withinMs, look })
  return found ?? (last as unknown as Row)
}
