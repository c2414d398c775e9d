import { randomInt } from 'node:crypto'

/** Repeatable chance (mulberry32): one seed gives one plan of intents and kills. What the machine makes of it still varies. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to just below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }

  below(n: number): number {
    return Math.floor(this.next() * n)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T
  }

  /** Each writer gets its own, so that one's luck does not depend on how fast the others are. */
  fork(): Random {
    return new Random(this.below(2 ** 32))
  }
}

/**
 * The seeds of a suite of `npm test`: all that ever found a defect, with what it was, filled up to so many. Always the same ones, so that a
 * red run is the doing of the change. SIGNALBOX_SEED names another, SIGNALBOX_SEEDS asks for so many new ones.
 */
export function fixedSeeds(count: number, found: Record<number, string> = {}): number[] {
  const wanted = Number(process.env.SIGNALBOX_SEEDS ?? 0)
  if (process.env.SIGNALBOX_SEED || wanted) return newSeeds(wanted)
  const known = Object.keys(found).map(Number)
  return [...known, ...Array.from({ length: Math.max(0, count - known.length) }, (_, i) => i + 1)]
}

/** The one that SIGNALBOX_SEED names, or so many new ones, which are printed: for soaks. */
export function newSeeds(count: number): number[] {
  const given = process.env.SIGNALBOX_SEED
  const drawn = given ? [Number(given)] : Array.from({ length: count }, () => randomInt(2 ** 31))
  console.info(`seeds: ${drawn.slice(0, 20).join(' ')}${drawn.length > 20 ? ` … (${drawn.length})` : ''}`)
  return drawn
}
