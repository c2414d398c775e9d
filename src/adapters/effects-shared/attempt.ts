import { type EffectRow, effectStore } from '../../db/effect-store.ts'
import type { Outcome } from '../../kernel/effect.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { EffectsParts, Work } from '../../ports/effects.ts'

const WRITE_AGAIN_MS = 1_000

/** One leased attempt at an effect: kept alive while it runs, told to stop when the lease is lost, written down when it ends. */
export class Attempt {
  readonly row: EffectRow
  readonly #parts: EffectsParts
  readonly #stop = new AbortController()
  readonly #abandoned = new AbortController()
  #ended: Promise<void> = Promise.resolve()
  #leaseOver: NodeJS.Timeout | undefined

  constructor(parts: EffectsParts, row: EffectRow) {
    this.#parts = parts
    this.row = row
  }

  /** Resolves when its end is written down, or when nobody waits for it any more. `alongside` joins the transaction of its end. */
  run(work: Work, alongside?: (tx: Tx, ended: EffectRow) => Promise<void>): Promise<void> {
    const abandoned = new Promise<void>((resolve) => this.#abandoned.signal.addEventListener('abort', () => resolve()))
    this.#ended = Promise.race([this.#attempt(work, alongside), abandoned])
    return this.#ended
  }

  async #attempt(work: Work, alongside?: (tx: Tx, ended: EffectRow) => Promise<void>): Promise<void> {
    const { id, type, payload, attempts, max_attempts, cut_off } = this.row
    const renewal = setInterval(() => void this.#renew(), this.#parts.times.leaseMs / 3)
    this.#endLeaseIn(this.#parts.times.leaseMs)
    try {
      const claim = { id, type, payload: parsed(payload), attempt: attempts, maxAttempts: max_attempts }
      await this.#writeDown(await work({ ...claim, cutOff: cut_off === 1, signal: this.#stop.signal }), alongside)
    } finally {
      clearInterval(renewal)
      clearTimeout(this.#leaseOver)
    }
  }

  /** Storage may be away for a while; giving up would leave a finished effect on lease, to be taken for one that was cut off. */
  async #writeDown(outcome: Outcome, alongside?: (tx: Tx, ended: EffectRow) => Promise<void>): Promise<void> {
    while (!this.#abandoned.signal.aborted) {
      try {
        return await this.#finish(outcome, alongside)
      } catch {
        await new Promise((resolve) => setTimeout(resolve, WRITE_AGAIN_MS))
      }
    }
  }

  async #finish(outcome: Outcome, alongside?: (tx: Tx, ended: EffectRow) => Promise<void>): Promise<void> {
    const { engine, times, onStuck, onStuckCommitted } = this.#parts
    const ended = await engine.write(async (tx) => {
      await holdQueue(this.#parts, tx, this.row.queue)
      if (outcome.state === 'elsewhere') await holdDaemons(engine, tx)
      const row = await effectStore(tx, engine.facts).finish(this.row, outcome, times.backOffMs)
      if (row && isStuck(row)) await onStuck(tx, row)
      if (row) await alongside?.(tx, row)
      return row
    })
    if (ended && isStuck(ended)) onStuckCommitted()
  }

  async #renew(): Promise<void> {
    const { engine, times } = this.#parts
    const asked = performance.now()
    try {
      const kept = await engine.write((tx) => effectStore(tx, engine.facts).renew(this.row.id, this.row.epoch, times.leaseMs))
      this.#endLeaseIn(kept ? times.leaseMs - (performance.now() - asked) : 0)
    } catch {
      // Storage is away: the lease lasts as long as it was last granted.
    }
  }

  /** Where the database has one owner, nobody takes over: there a lease that cannot be renewed harms nothing. */
  #endLeaseIn(ms: number): void {
    clearTimeout(this.#leaseOver)
    if (ms <= 0) this.#stop.abort()
    else if (this.#parts.engine.facts.shared) this.#leaseOver = setTimeout(() => this.#stop.abort(), ms)
  }

  /** Returns those that did not end although they were told to. */
  static async drain(attempts: Attempt[], deadlineMs: number, graceMs: number): Promise<Attempt[]> {
    const open = new Set(attempts)
    const ends = attempts.map((attempt) => attempt.#ended.then(() => open.delete(attempt)))
    await within(deadlineMs, ends)
    for (const attempt of open) attempt.#stop.abort()
    await within(graceMs, ends)
    const left = [...open]
    for (const attempt of left) attempt.#abandoned.abort()
    return left
  }
}

/** What somebody damaged must end as a dead effect, not the process; no schema accepts undefined. */
function parsed(payload: string): unknown {
  try {
    return JSON.parse(payload) as unknown
  } catch {
    return undefined
  }
}

function isStuck({ state }: EffectRow): boolean {
  return state === 'dead' || state === 'unknown'
}

/** Who begins and who ends something of one queue must see each other: else the next in line could be passed over by both. */
export async function holdQueue({ engine }: EffectsParts, tx: Tx, queue: string | null): Promise<void> {
  if (queue !== null) await engine.hold?.(tx, [`effects.queue.${queue}`])
}

/** Who passes something on and who comes or goes must see each other: else it could wait for nobody, or pass over the one that has it. */
export async function holdDaemons(engine: EffectsParts['engine'], tx: Tx): Promise<void> {
  await engine.hold?.(tx, ['effects.daemons'])
}

async function within(ms: number, ends: Promise<unknown>[]): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([Promise.all(ends), late])
  clearTimeout(timer)
}
