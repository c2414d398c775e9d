import { setTimeout as pause } from 'node:timers/promises'
import {
  Client,
  type ClientOptions,
  type JsonSchemaValidator,
  ProtocolError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'

// biome-ignore lint/suspicious/noExplicitAny: a script names the fields of an answer
export type Fields = Record<string, any>
export type Answer = { ok: true; value: Fields } | { ok: false; code: string; value: Fields }

export interface ToolsOptions {
  url: string
  token: string
  /** How long a daemon may be away. */
  patienceMs?: number
}

const PATIENCE_MS = 60_000
const RETRY_MS = { first: 50, most: 1_000 }
const CALL_MS = 300_000
/** These say that nothing was done, or that the daemon cannot tell: the same key makes the repetition safe. */
const PASSING = new Set(['DISCONNECTED', 'SHUTTING_DOWN', 'TRANSIENT_ERROR', 'RATE_LIMITED'])

/** The daemon's tools over MCP. A daemon that goes away in the middle of a call is waited for, and asked again with the same key. */
export class Tools {
  readonly #options: ToolsOptions
  #client: Client | undefined
  #keyed: Set<string> | undefined

  constructor(options: ToolsOptions) {
    this.#options = options
  }

  /** `key` is sent along when the tool writes; without one it must be a tool that only reads. */
  async call(name: string, input: Fields, key?: string, signal?: AbortSignal): Promise<Answer> {
    const keyed = key !== undefined && (await this.#keyedTools(signal)).has(name)
    return this.#patiently(async (client) => {
      const args = keyed ? { idempotency_key: key, ...input } : input
      // With progress the daemon holds a wait longer, and a silent connection is not cut.
      const options = { signal, timeout: CALL_MS, resetTimeoutOnProgress: true, onprogress: () => {} }
      return answerOf(await client.callTool({ name, arguments: args }, options))
    }, signal)
  }

  async close(): Promise<void> {
    await this.#client?.close().catch(() => {})
    this.#client = undefined
  }

  /** Which tools take a key: those that write. */
  async #keyedTools(signal?: AbortSignal): Promise<Set<string>> {
    this.#keyed ??= await this.#patiently(async (client) => {
      const { tools } = await client.listTools({}, { signal })
      return new Set(tools.filter((tool) => tool.inputSchema.properties?.idempotency_key).map((tool) => tool.name))
    }, signal)
    return this.#keyed
  }

  async #patiently<T extends object>(ask: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const patienceMs = this.#options.patienceMs ?? PATIENCE_MS
    let failingSince: number | undefined
    let delay = RETRY_MS.first
    // From the first failure on: a wait that was held for minutes may well be cut at its end.
    const isOver = () => {
      failingSince ??= performance.now()
      return performance.now() - failingSince >= patienceMs
    }
    for (;;) {
      try {
        const answer = await ask(await this.#connected())
        if (!isPassing(answer) || isOver()) return answer
      } catch (error) {
        signal?.throwIfAborted()
        await this.close()
        if (isFinal(error)) throw error
        if (isOver()) throw new Error(`Signalbox did not answer for ${patienceMs / 1000} s: ${reasonOf(error)}`)
      }
      await pause(delay, undefined, { signal })
      delay = Math.min(delay * 2, RETRY_MS.most)
    }
  }

  async #connected(): Promise<Client> {
    if (this.#client) return this.#client
    // Of this version every request stands alone: there is no session that a restart could end.
    const client = new Client(
      { name: 'signalbox-scripted-agent', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } }, jsonSchemaValidator: TRUST },
    )
    // A daemon that dies in the middle of an answer ends its stream, and the client would wait for the rest of it until its time is up.
    client.onerror = () => void client.close()
    const headers = { authorization: `Bearer ${this.#options.token}` }
    await client.connect(new StreamableHTTPClientTransport(new URL(this.#options.url), { requestInit: { headers } }))
    this.#client = client
    return client
  }
}

/** The daemon checks what it answers; to compile the schemas of all its tools again would take longer than most scripts. */
const TRUST: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator: <T>() => ((data: T) => ({ valid: true, data, errorMessage: undefined })) as JsonSchemaValidator<T>,
}

function answerOf(result: { isError?: boolean; structuredContent?: unknown; content: unknown }): Answer {
  const value = (result.structuredContent ?? { content: result.content }) as Fields
  return result.isError ? { ok: false, code: String(value.error?.code ?? 'INTERNAL_ERROR'), value } : { ok: true, value }
}

function isPassing(answer: object): boolean {
  return 'code' in answer && PASSING.has(String(answer.code))
}

/** `fetch failed` says nothing; its cause says who refused. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}

/** What will not be otherwise the next time: the daemon answered, and said no. */
function isFinal(error: unknown): boolean {
  const status = (error as { status?: unknown }).status
  return error instanceof ProtocolError || (typeof status === 'number' && status >= 400 && status < 500 && status !== 429)
}
