declare const opaque: unique symbol

/**
 * A handle to query with: a transaction, or a read-only view of what is committed. The kernel never looks inside;
 * stores turn it into typed tables with `tables<…>(tx)` from db/.
 */
export interface Tx {
  readonly [opaque]: 'tx'
}

/** What the kernel needs of a database. Each engine implements it; capabilities never see it. */
export interface Storage {
  /** Committed rows only. Holds no transaction between two statements. */
  readonly view: Tx
  /**
   * Runs the job in a transaction and resolves after the commit is durable. A job may be run more than once before it
   * commits (a Collision asks for that), so it must touch nothing but `tx`. Rejects with TransientFault when trying again may help.
   */
  write<T>(job: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Until the transaction ends, nobody else acts on these things. Absent where writers run one at a time anyway: a rule that
   * reads a row and then writes it would otherwise let two callers through at once.
   */
  hold?(tx: Tx, ids: string[]): Promise<void>
}
