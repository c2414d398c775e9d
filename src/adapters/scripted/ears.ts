import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { Heard } from './protocol.ts'

/** What people say to the agent while it works: kept in order until it is asked for. */
export class Ears {
  readonly #messages: string[] = []
  #closed = false
  #wake: (() => void) | undefined
  onInterrupt: () => void = () => {}

  constructor(input: Readable) {
    createInterface({ input })
      .on('line', (line) => this.#hear(line))
      .on('close', () => {
        this.#closed = true
        this.#wake?.()
      })
  }

  /** The next message; undefined when none can come any more. */
  async next(signal: AbortSignal): Promise<string | undefined> {
    while (!this.#messages.length && !this.#closed) {
      signal.throwIfAborted()
      await new Promise<void>((resolve, reject) => {
        this.#wake = resolve
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
    }
    return this.#messages.shift()
  }

  #hear(line: string): void {
    const heard = Heard.safeParse(parsed(line)).data
    if (!heard) return void process.stderr.write('a line on the input is neither a message nor an interrupt\n')
    if (heard.type === 'interrupt') return this.onInterrupt()
    this.#messages.push(heard.text)
    this.#wake?.()
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
