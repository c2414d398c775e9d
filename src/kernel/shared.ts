/**
 * Costly looks, shared by all who ask for the same at the same time. Who comes while one is under way gets the next, with all others who
 * came meanwhile: what was true before they asked is then in it.
 */
export class Shared<T> {
  readonly #now = new Map<string, Promise<T>>()
  readonly #next = new Map<string, Promise<T>>()

  ask(key: string, look: () => Promise<T>): Promise<T> {
    const now = this.#now.get(key)
    if (!now) return this.#begin(key, look)
    const next = this.#next.get(key) ?? now.then(nothing, nothing).then(() => this.#begin(key, look))
    this.#next.set(key, next)
    return next
  }

  #begin(key: string, look: () => Promise<T>): Promise<T> {
    this.#next.delete(key)
    const now = look().finally(() => this.#now.delete(key))
    this.#now.set(key, now)
    return now
  }
}

function nothing(): void {}
