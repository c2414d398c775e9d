import { decodeCursor, encodeCursor } from '../../src/db/engine.ts'
import { type Deferred, deferred } from '../../src/testing/signals.ts'
import type { Caller, Fields } from './callers.ts'
import type { Mortal } from './mortal.ts'

/** Follows the whole log with event_wait, from cursor to cursor, through every restart. */
export class Follower {
  readonly seen: number[] = []
  readonly problems: string[] = []
  readonly #mortal: Mortal
  readonly #caller: Caller
  #cursor = encodeCursor(1, 0)
  #goal: { seq: number; reached: Deferred } | undefined
  #closed = false

  constructor(mortal: Mortal, caller: Caller) {
    this.#mortal = mortal
    this.#caller = caller
    void this.#follow()
  }

  async reaches(seq: number): Promise<void> {
    if ((this.seen.at(-1) ?? 0) >= seq) return
    this.#goal = { seq, reached: deferred() }
    await this.#goal.reached.promise
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#caller.close()
  }

  async #follow(): Promise<void> {
    while (!this.#closed) {
      const outcome = await this.#caller.call('event_wait', { cursor: this.#cursor, limit: 200 })
      if (outcome.kind === 'answer') this.#take(outcome.value)
      else if (outcome.kind === 'lost') await this.#mortal.up
      else return void this.problems.push(`event_wait was refused: ${JSON.stringify(outcome.value)}`)
    }
  }

  #take({ events, cursor }: Fields): void {
    for (const event of events as Fields[]) this.seen.push(decodeCursor(event.cursor)?.seq ?? Number.NaN)
    this.#cursor = cursor
    if (this.#goal && (this.seen.at(-1) ?? 0) >= this.#goal.seq) this.#goal.reached.resolve()
  }
}
