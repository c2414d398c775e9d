import type { TestDaemon } from '../../src/testing/daemon.ts'
import { until } from '../../src/testing/signals.ts'

/** Resolves when the daemon holds exactly this many waits: a wait that was sent may not be one that is held yet. */
export function waiters(daemon: TestDaemon, count: number): Promise<void> {
  return until(async () => (await daemon.call('system_health')).waiting_calls === count)
}

export async function health(daemon: TestDaemon): Promise<{ waiting_calls: number; event_readers: number; mcp_sessions: number }> {
  return daemon.call('system_health')
}

/** Things that arrive one by one, and a way to wait for the next one that fits. */
export class Arrivals<T> {
  readonly all: T[] = []
  readonly #waiting = new Set<() => void>()

  add(item: T): void {
    this.all.push(item)
    for (const look of [...this.#waiting]) look()
  }

  /** One that is there already counts, unless it came before `after`. */
  next(fits: (item: T) => boolean, { after = 0, withinMs = 60_000 } = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => done(() => reject(new Error(`nothing fits among ${JSON.stringify(this.all).slice(0, 2_000)}`))),
        withinMs,
      )
      const done = (settle: () => void) => {
        clearTimeout(timer)
        this.#waiting.delete(look)
        settle()
      }
      const look = () => {
        const found = this.all.slice(after).find(fits)
        if (found !== undefined) done(() => resolve(found))
      }
      this.#waiting.add(look)
      look()
    })
  }
}
