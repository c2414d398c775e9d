import { pause } from '../kernel/patience.ts'
import type { ReactorContext } from '../kernel/reactor.ts'

const TRY_AGAIN_MS = 1_000

/** However much happens to one at once, it is looked at once more after it. */
export class OneAtATime {
  readonly #ctx: ReactorContext
  readonly #look: (id: string) => Promise<unknown>
  readonly #running = new Map<string, Promise<void>>()
  readonly #again = new Set<string>()

  constructor(ctx: ReactorContext, look: (id: string) => Promise<unknown>) {
    this.#ctx = ctx
    this.#look = look
  }

  ask(id: string): void {
    if (this.#ctx.signal.aborted) return
    if (this.#running.has(id)) {
      this.#again.add(id)
      return
    }
    this.#running.set(id, this.#once(id))
  }

  async idle(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  async #once(id: string): Promise<void> {
    try {
      await this.#look(id)
    } catch (error) {
      // A row that somebody else has changed meanwhile, or storage that was away: nobody else would look again.
      if (!this.#ctx.signal.aborted) this.#ctx.defect(error)
      await pause(TRY_AGAIN_MS, this.#ctx.signal)
      this.#again.add(id)
    }
    this.#running.delete(id)
    if (this.#again.delete(id)) this.ask(id)
  }
}
