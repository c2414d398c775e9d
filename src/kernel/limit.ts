import { refuse } from './error.ts'

export interface Rate {
  /** Calls per second in the long run. */
  perSecond: number
  /** Calls at once after a pause. */
  burst: number
}

interface Bucket {
  tokens: number
  at: number
  open: number
}

/** A runaway loop is slowed down per token before it reaches the database. Time is monotonic: a clock jump refills nothing. */
export class RateLimit {
  readonly #buckets = new Map<string, Bucket>()
  readonly #monotonic: () => number
  readonly #maxOpen: number

  constructor(monotonic: () => number, maxOpen: number) {
    this.#monotonic = monotonic
    this.#maxOpen = maxOpen
  }

  /** Refuses, or returns what to call when the call has ended. */
  enter(key: string, rate: Rate): () => void {
    const bucket = this.#refilled(key, rate)
    if (bucket.open >= this.#maxOpen) {
      throw refuse('RATE_LIMITED', `This token already has ${this.#maxOpen} calls open.`, { hint: 'Let some of them end first.' })
    }
    if (bucket.tokens < 1) {
      const seconds = Math.ceil((1 - bucket.tokens) / rate.perSecond)
      throw refuse('RATE_LIMITED', `This token makes more than ${rate.perSecond} calls a second.`, {
        hint: `Try again in ${seconds} s.`,
        details: { retry_after_seconds: seconds },
      })
    }
    bucket.tokens--
    bucket.open++
    return () => {
      bucket.open--
    }
  }

  #refilled(key: string, rate: Rate): Bucket {
    const now = this.#monotonic()
    const bucket = this.#buckets.get(key) ?? { tokens: rate.burst, at: now, open: 0 }
    bucket.tokens = Math.min(rate.burst, bucket.tokens + ((now - bucket.at) / 1000) * rate.perSecond)
    bucket.at = now
    this.#buckets.set(key, bucket)
    return bucket
  }

  /** Forgets tokens that have been quiet, so that the map does not grow with every agent that ever was. */
  sweep(): void {
    const now = this.#monotonic()
    for (const [key, bucket] of this.#buckets) if (bucket.open === 0 && now - bucket.at > 600_000) this.#buckets.delete(key)
  }
}
