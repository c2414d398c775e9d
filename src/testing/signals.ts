import type { App } from '../daemon/app.ts'
import { TransientFault } from '../kernel/error.ts'
import type { Storage } from '../kernel/storage.ts'

export interface Deferred<T = void> {
  promise: Promise<T>
  resolve(value: T): void
}

export function deferred<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void
  const promise = new Promise<T>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

const PATIENCE_MS = 10_000

/** Goes round the event loop until the state is there: no clock decides when a test goes on. */
export async function until(holds: () => boolean | Promise<boolean>, patienceMs = PATIENCE_MS): Promise<void> {
  const deadline = performance.now() + patienceMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`this never came true: ${holds}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** The next write stands still between its permission check and its transaction, until it is let go. */
export function holdNextWrite(app: App): { reached: Promise<void>; letGo(): void } {
  const engine = app.kernel.parts.storage
  const [reached, gate] = [deferred(), deferred()]
  app.kernel.parts.storage = {
    view: engine.view,
    async write(job) {
      app.kernel.parts.storage = engine
      reached.resolve()
      await gate.promise
      return engine.write(job)
    },
  }
  return { reached: reached.promise, letGo: () => gate.resolve() }
}

/** What happens to the writes to come, one by one; later ones go through. */
export type Fate = 'fails before' | 'fails after the commit' | 'passes'

export function faulty(storage: Storage, fates: Fate[]): Storage & { attempts: number } {
  return {
    view: storage.view,
    attempts: 0,
    async write(job) {
      this.attempts++
      const fate = fates.shift() ?? 'passes'
      if (fate === 'fails before') throw new TransientFault('the line is down')
      const value = await storage.write(job)
      if (fate === 'fails after the commit') throw new TransientFault('the line went down')
      return value
    },
  }
}
