import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { PatientlyQueued } from './postgres-connection.ts'

const CHANNEL = 'signalbox_events'
const NOTIFY_WITHIN_MS = 5
const SAFETY_LOOK_MS = 1_000
const RECONNECT_MS = 500
const SILENT_MS = 5_000

/** One connection that several share: each statement waits for the one before. */
export class Session {
  readonly #client: pg.Client
  #last: Promise<unknown> = Promise.resolve()

  constructor(client: pg.Client) {
    this.#client = client
  }

  /** The first row of the answer. Rejects once the connection is gone. */
  ask(text: string, values: unknown[] = []): Promise<Record<string, unknown> | undefined> {
    const asked = this.#last.then(() => this.#client.query(text, values)).then(({ rows }) => rows[0])
    this.#last = asked.catch(() => {})
    return asked
  }

  /** Without a goodbye, which nobody would answer. */
  destroy(): void {
    ;(this.#client as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
  }

  async end(): Promise<void> {
    await this.#client.end().catch(() => {})
  }
}

/**
 * Tells the other daemons, and hears them. One empty NOTIFY for all commits of a few milliseconds, sent outside their
 * transactions (inside, it costs four times); a slow look makes up for one that was lost with its connection.
 */
export class Bell {
  readonly #settings: pg.ClientConfig
  readonly #listeners: (() => void)[] = []
  readonly #safety: NodeJS.Timeout
  readonly #closing = new AbortController()
  readonly #over: Promise<void>
  /** The first attempt to connect has ended, one way or the other. */
  readonly tried: Promise<void>
  reachable = false
  /** The connection that listens, while there is one. */
  session: Session | undefined
  #ringing: Promise<void> | undefined
  #again = false
  #asking = false

  constructor(settings: pg.ClientConfig) {
    this.#settings = settings
    this.#safety = setInterval(() => this.#look(), SAFETY_LOOK_MS)
    this.#safety.unref()
    let tried = () => {}
    this.tried = new Promise((resolve) => {
      tried = resolve
    })
    this.#over = this.#stayConnected(tried)
  }

  onRing(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Something was just committed, so the server is there. */
  ring(): void {
    this.reachable = true
    this.#again = true
    this.#ringing ??= this.#notify().finally(() => {
      this.#ringing = undefined
    })
  }

  async #notify(): Promise<void> {
    while (this.#again) {
      await sleep(NOTIFY_WITHIN_MS)
      this.#again = false
      await this.session?.ask(`NOTIFY ${CHANNEL}`).catch(() => {})
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#safety)
    this.#closing.abort()
    await this.#ringing
    await this.session?.end()
    await this.#over
  }

  async #stayConnected(tried: () => void): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      await this.#connection(tried).catch(() => {})
      this.session = undefined
      this.reachable = false
      tried()
      await sleep(RECONNECT_MS, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  /** For as long as one connection lasts. */
  async #connection(tried: () => void): Promise<void> {
    const client = new PatientlyQueued(this.#settings)
    client.on('error', () => {})
    // Our own commits are told in process.
    client.on('notification', ({ processId }) => processId !== (client as { processID?: number }).processID && this.#tell())
    const ended = new Promise<void>((resolve) => client.once('end', resolve))
    try {
      await client.connect()
      await client.query(`LISTEN ${CHANNEL}`)
      if (this.#closing.signal.aborted) return
      this.session = new Session(client)
      this.reachable = true
      tried()
      // What was committed while nobody listened.
      this.#tell()
      await ended
    } finally {
      await client.end().catch(() => {})
    }
  }

  /** A server that hangs, or a network that is gone, closes no connection: silence does it here. */
  #look(): void {
    this.#tell()
    const { session } = this
    if (!session || this.#asking) return
    this.#asking = true
    const late = setTimeout(() => session.destroy(), SILENT_MS)
    session
      .ask('SELECT 1')
      .catch(() => {})
      .finally(() => {
        clearTimeout(late)
        this.#asking = false
      })
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}
