export function isPostgres(database: string): boolean {
  return /^postgres(ql)?:/.test(database)
}

/** A PostgreSQL address without the password that it may hold. */
export function whereIs(url: string): string {
  const { host, pathname, searchParams } = new URL(url)
  return `${searchParams.get('host') ?? host} database "${pathname.slice(1)}"`
}

/** How many connections a daemon keeps at the most for each purpose; one more listens. */
export interface Connections {
  readers: number
  writers: number
  effects: number
}

const MOST: Connections = { readers: 6, writers: 10, effects: 4 }
const LISTENING = 1
const LEAST = 8

/** `?connection_limit=12` of the address, for a server that allows few; never below what a daemon needs to get anything done. */
export function connectionsOf(url: string): Connections {
  // Not as a URL: pg also takes `postgres://me@/shop`, which is none.
  const asked = Number(new URLSearchParams(url.split('?')[1]).get('connection_limit') ?? Number.NaN)
  const limit = Math.max(LEAST, Number.isNaN(asked) ? Number.POSITIVE_INFINITY : Math.floor(asked))
  const readers = Math.min(MOST.readers, Math.round(limit * 0.3))
  const effects = Math.min(MOST.effects, Math.max(2, Math.round(limit * 0.2)))
  return { readers, effects, writers: Math.min(MOST.writers, limit - LISTENING - readers - effects) }
}
