import type { Claim, EffectQueue, Outcome } from '../kernel/effect.ts'

/** What runs effects: a table on SQLite, graphile-worker on PostgreSQL. One contract suite holds for both. */
export interface Effects extends EffectQueue {
  /** Begins to claim and hand over what is due. At least once; one at a time per queue. */
  start(work: (claim: Claim) => Promise<Outcome>): Promise<void>
  /** Takes no more, waits for what is running up to the deadline, then gives it back. */
  stop(deadlineMs: number): Promise<void>
}
