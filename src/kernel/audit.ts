import type { CallRecord, Ledger } from './log.ts'
import type { Storage } from './storage.ts'

const FLUSH_MS = 200
/** When the disk stays full for long, the oldest reads are dropped rather than the process. */
const MOST_KEPT = 20_000

/** Reads and unauthenticated refusals are written in batches: a SIGKILL may lose the last 200 ms of them, and only them. */
export class AuditBuffer {
  readonly #ledger: Ledger
  readonly #storage: Storage
  readonly #now: () => number
  #calls: CallRecord[] = []
  #refusals = new Map<string, { source: string; reason: string; count: number }>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed = false

  constructor(ledger: Ledger, storage: Storage, now: () => number) {
    this.#ledger = ledger
    this.#storage = storage
    this.#now = now
  }

  add(call: CallRecord): void {
    if (this.#calls.length < MOST_KEPT) this.#calls.push(call)
    this.#schedule()
  }

  /** Counted per source, so that a flood of them cannot fill the disk. */
  countRefusal(source: string, reason: string): void {
    const key = `${source}\n${reason}`
    const entry = this.#refusals.get(key) ?? { source: source.slice(0, 100), reason, count: 0 }
    entry.count++
    this.#refusals.set(key, entry)
    this.#schedule()
  }

  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const calls = this.#calls
    const refusals = [...this.#refusals.values()].map((entry) => ({ ...entry, at: this.#now() }))
    if (!calls.length && !refusals.length) return
    this.#calls = []
    this.#refusals = new Map()
    try {
      await this.#storage.write(async (tx) => {
        for (let i = 0; i < calls.length; i += 100) await this.#ledger.audit(tx, calls.slice(i, i + 100), 'perhaps again')
        await this.#ledger.countRefusals(tx, refusals)
      })
    } catch {
      this.#calls = [...calls, ...this.#calls].slice(-MOST_KEPT)
      this.#schedule()
    }
  }

  /** Writes the rest and stops: a timer that goes on against a closed database would keep the process alive. */
  async close(): Promise<void> {
    this.#closed = true
    await this.flush()
  }

  #schedule(): void {
    if (this.#closed) return
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS)
  }
}
