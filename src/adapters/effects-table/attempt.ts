import { type EffectRow, effectStore } from '../../db/effect-store.ts'
import type { Engine } from '../../db/engine.ts'
import type { Claim, EffectState, Outcome } from '../../kernel/effect.ts'
import type { Tx } from '../../kernel/storage.ts'

export const LEASE_MS = 30_000
const RENEW_MS = 10_000
const WRITE_AGAIN_MS = 1_000

/** One leased attempt at an effect: kept alive while it runs, written down when it ends, aborted when the lease is lost. */
export class Attempt {
  readonly #engine: Engine
  readonly #row: EffectRow
  readonly #cutOff: boolean
  readonly #lost = new AbortController()
  #ended: Promise<EffectState | undefined> | undefined

  constructor(engine: Engine, row: EffectRow, cutOff: boolean) {
    this.#engine = engine
    this.#row = row
    this.#cutOff = cutOff
  }

  /** `alongside` is written in the same transaction as the outcome. */
  run(
    work: (claim: Claim) => Promise<Outcome>,
    alongside?: (tx: Tx, state: EffectState) => Promise<void>,
  ): Promise<EffectState | undefined> {
    this.#ended = this.#attempt(work, alongside)
    return this.#ended
  }

  async #attempt(work: (claim: Claim) => Promise<Outcome>, alongside?: (tx: Tx, state: EffectState) => Promise<void>) {
    const { id, type, payload, attempts } = this.#row
    const renewal = setInterval(() => void this.#renew(), RENEW_MS)
    try {
      const outcome = await work({
        id,
        type,
        payload: JSON.parse(payload),
        attempt: attempts,
        cutOff: this.#cutOff,
        signal: this.#lost.signal,
      })
      if (this.#lost.signal.aborted) return undefined
      return await this.#writeDown(outcome, alongside)
    } finally {
      clearInterval(renewal)
    }
  }

  /** Storage may be away for a while; giving up would leave a finished effect on lease, to be taken for a cut-off one. */
  async #writeDown(outcome: Outcome, alongside?: (tx: Tx, state: EffectState) => Promise<void>): Promise<EffectState | undefined> {
    for (;;) {
      try {
        return await this.#engine.write(async (tx) => {
          const state = await effectStore(tx, this.#engine.facts).finish(this.#row, outcome)
          if (state) await alongside?.(tx, state)
          return state
        })
      } catch {
        if (this.#lost.signal.aborted) return undefined
        await new Promise((resolve) => setTimeout(resolve, WRITE_AGAIN_MS))
      }
    }
  }

  async #renew(): Promise<void> {
    const kept = await this.#engine
      .write((tx) => effectStore(tx, this.#engine.facts).renew(this.#row.id, this.#row.epoch, LEASE_MS))
      .catch(() => true)
    if (!kept) this.#lost.abort()
  }

  /** Waits for what is running; past the deadline it is told to stop, and its lease is left to run out. */
  static async drain(attempts: Attempt[], deadlineMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, deadlineMs)
    })
    await Promise.race([Promise.allSettled(attempts.map((attempt) => attempt.#ended)), late])
    clearTimeout(timer)
    for (const attempt of attempts) attempt.#lost.abort()
  }
}
