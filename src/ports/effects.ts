import type { EffectRow } from '../db/effect-store.ts'
import type { Engine } from '../db/engine.ts'
import type { Claim, EffectQueue, EffectTimes, Outcome } from '../kernel/effect.ts'
import type { Tx } from '../kernel/storage.ts'

/** What runs effects: a table on SQLite, graphile-worker on PostgreSQL. One contract suite holds for both. */
export interface Effects extends EffectQueue {
  /** Begins to claim and hand over what is due. At least once; a queue one at a time and in order. */
  start(work: Work): Promise<void>
  /**
   * Takes no more and waits for what is running up to the deadline; then tells it to stop. What ends on that is given back, to be
   * taken up at once; what does not is left on lease, because it may still be acting.
   */
  stop(deadlineMs: number): Promise<void>
}

/** Never rejects: a failure is an outcome. */
export type Work = (claim: Claim) => Promise<Outcome>

export interface EffectsParts {
  engine: Engine
  /** This daemon, in the rows. */
  owner: string
  /** Its machine. */
  host: string
  times: EffectTimes
  /** In the transaction that makes an effect dead or unknown. */
  onStuck(tx: Tx, row: EffectRow): Promise<void>
  /** After that transaction. */
  onStuckCommitted(): void
}
