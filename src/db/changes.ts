/**
 * Which tables this process has written to, so that what was read from one can be kept in memory until the next change of
 * it. Of use only where nobody else writes.
 */
export class Changes {
  readonly #versions = new Map<string, number>()
  /** What the open transaction has written to: until it ends, what a reader sees depends on who reads. */
  readonly #open = new Set<string>()
  #unknown = 0

  /** A number that another one follows when one of the tables may have changed; undefined while a transaction is changing one. */
  versionOf(tables: readonly string[]): number | undefined {
    if (this.#open.size && (this.#open.has(ANY) || tables.some((table) => this.#open.has(table)))) return undefined
    return tables.reduce((sum, table) => sum + (this.#versions.get(table) ?? 0), this.#unknown)
  }

  wrote(table: string): void {
    this.#open.add(table)
  }

  /** The transaction is over, one way or the other. */
  ended(): void {
    for (const table of this.#open) {
      if (table === ANY) this.#unknown++
      else this.#versions.set(table, (this.#versions.get(table) ?? 0) + 1)
    }
    this.#open.clear()
  }
}

const ANY = '*'
const READS = /^\s*(select|pragma|savepoint|release|begin|commit|rollback)\b/i
const WRITES = /^\s*(?:insert into|update|delete from)\s+"?(\w+)"?/i

/** The table that a statement writes to; of one that cannot be read, any. Undefined: it writes to none. */
export function writtenBy(sql: string): string | undefined {
  return READS.test(sql) ? undefined : (WRITES.exec(sql)?.[1] ?? ANY)
}
