import type { CallRecord, Ledger } from './log.ts'
import type { Storage, Tx } from './storage.ts'

const FLUSH_MS = 200
/** When the disk stays full for long, the oldest reads are dropped rather than the process. */
const MOST_KEPT = 20_000
/** One transaction must stay short: written at once, a long backlog would be rolled back for ever. */
const AT_ONCE = 200

/** What a failed call sets off is stored with its audit row: whoever must know of it will, whatever dies in between. */
export interface Failures {
  store(tx: Tx, calls: CallRecord[]): Promise<void>
  /** After the commit. */
  stored(): void
}

/** Reads and unauthenticated refusals are written in batches: a SIGKILL may lose the last 200 ms of them, and only them. */
export class AuditBuffer {
  readonly #ledger: Ledger
  readonly #storage: Storage
  readonly #now: () => number
  #calls: CallRecord[] = []
  #refusals = new Map<string, { source: string; reason: string; count: number }>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #flushing: Promise<void> = Promise.resolve()
  #closed = false
  readonly #failures: Failures | undefined

  constructor(ledger: Ledger, storage: Storage, now: () => number, failures?: Failures) {
    this.#ledger = ledger
    this.#storage = storage
    this.#now = now
    this.#failures = failures
  }

  add(call: CallRecord): void {
    this.#calls.push(call)
    if (this.#calls.length > MOST_KEPT) this.#calls.shift()
    this.#schedule()
  }

  /** Counted per source, so that a flood of them cannot fill the disk. */
  countRefusal(source: string, reason: string): void {
    this.#count(source.slice(0, 100), reason, 1)
    this.#schedule()
  }

  #count(source: string, reason: string, count: number): void {
    const key = `${source}\n${reason}`
    const entry = this.#refusals.get(key) ?? { source, reason, count: 0 }
    this.#refusals.set(key, { ...entry, count: entry.count + count })
  }

  #takeRefusals() {
    const taken = [...this.#refusals.values()].slice(0, AT_ONCE)
    for (const { source, reason } of taken) this.#refusals.delete(`${source}\n${reason}`)
    return taken.map((entry) => ({ ...entry, at: this.#now() }))
  }

  /** One after the other: of two at once each would wait for calls that the other has taken. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#flush())
    return this.#flushing
  }

  /** What is there now. What comes meanwhile has a turn of its own: under load every few reads would cost a commit else. */
  async #flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (!this.#open) return
    let left = this.#calls.length
    do {
      const calls = this.#calls.splice(0, Math.min(AT_ONCE, left))
      const failed = calls.filter((call) => call.outcome === 'failed')
      left -= calls.length
      const refusals = this.#takeRefusals()
      try {
        await this.#storage.write(async (tx) => {
          if (calls.length) await this.#ledger.audit(tx, calls, 'perhaps again')
          if (failed.length) await this.#failures?.store(tx, failed)
          await this.#ledger.countRefusals(tx, refusals)
        })
        if (failed.length) this.#failures?.stored()
      } catch {
        this.#calls = [...calls, ...this.#calls].slice(-MOST_KEPT)
        for (const { source, reason, count } of refusals) this.#count(source, reason, count)
        break
      }
    } while (left > 0)
    if (this.#open) this.#schedule()
  }

  get #open(): number {
    return this.#calls.length + this.#refusals.size
  }

  /** Writes the rest and stops: a timer that goes on against a closed database would keep the process alive. */
  async close(): Promise<void> {
    this.#closed = true
    for (let before = Infinity; this.#open > 0 && this.#open < before; ) {
      before = this.#open
      await this.flush()
    }
  }

  #schedule(): void {
    if (this.#closed) return
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS)
  }
}

/** A dialect and the name that was used in it, in one column: what is sealed keeps its columns. */
export function calledIn(dialect: string, name: string): string {
  return `${dialect}/${name}`
}

/** Under which name a call came, and in which dialect. */
export function calledAs({ dialect, tool }: Pick<CallRecord, 'dialect' | 'tool'>): { dialect: string | null; name: string } {
  const [spoken = null, ...name] = dialect?.split('/') ?? []
  return { dialect: spoken, name: name.length ? name.join('/') : tool }
}

/** The id of the row that has what a call answered after it had waited. */
export function answerOf(callId: string): string {
  return `${callId}.answer`
}
