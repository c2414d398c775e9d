import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DaemonOptions, TestDaemon } from '../../src/testing/daemon.ts'
import { type Deferred, deferred } from '../../src/testing/signals.ts'
import { heardByAll, pause } from './stop.ts'

/** A daemon that is killed and started again. Clients wait for `up` and are told of each death, as by a broken connection. */
export class Mortal {
  readonly daemon: TestDaemon
  #up: Deferred = deferred()
  #answers = false
  #life = heardByAll()
  deaths = 0

  constructor(options: DaemonOptions = {}) {
    this.daemon = new TestDaemon({ home: mkdtempSync(join(tmpdir(), 'sbx-chaos-')), ...options })
  }

  static async start(options: DaemonOptions = {}): Promise<Mortal> {
    const mortal = new Mortal(options)
    await mortal.start().catch((error) => mortal.remove().then(() => Promise.reject(error)))
    return mortal
  }

  get url(): string {
    return this.daemon.url
  }

  /** Resolves while it answers; pending from the moment it is killed. */
  get up(): Promise<void> {
    return this.#up.promise
  }

  /** Aborted when the present life ends. */
  get death(): AbortSignal {
    return this.#life.signal
  }

  async start(): Promise<void> {
    await this.daemon.start()
    this.#answers = true
    this.#up.resolve()
  }

  /** The signal is sent before this returns; resolves with how the process ended. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | string> {
    // Those who wait since an earlier death wait on.
    if (this.#answers) this.#up = deferred()
    this.#answers = false
    this.deaths++
    const ended = this.daemon.end(signal)
    if (signal === 'SIGKILL') this.#die()
    const how = await ended
    if (signal !== 'SIGKILL') this.#die()
    return how
  }

  /** Starts it and strikes after so long, or when it answers if that comes first. */
  async killWhileStarting(afterMs: number): Promise<void> {
    const answering = this.daemon.start().catch(() => {})
    await Promise.race([answering, pause(afterMs)])
    await this.end('SIGKILL')
    await answering
  }

  async remove(): Promise<void> {
    await this.daemon.remove()
  }

  #die(): void {
    this.#life.abort()
    this.#life = heardByAll()
  }
}
