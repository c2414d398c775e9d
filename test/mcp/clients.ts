import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { BIN, type TestDaemon } from '../../src/testing/daemon.ts'
import { deferred } from '../../src/testing/signals.ts'

export const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
export const MODERN = '2026-07-28'
export const VERSIONS = [...LEGACY, MODERN] as const
export type Version = (typeof VERSIONS)[number]
export const TRANSPORTS = ['http', 'stdio'] as const
export type TransportName = (typeof TRANSPORTS)[number]
export const EVERY_WAY = TRANSPORTS.flatMap((transport) => VERSIONS.map((version) => ({ transport, version })))

export interface Connected {
  client: Client
  /** The last session id that the server gave out; 2025 over HTTP only. */
  session(): string | undefined
  /** The process of the pipe; stdio only. */
  pid(): number | undefined
  /** Resolves when the server can tell this client something that it did not ask for. */
  listening: Promise<void>
  close(): Promise<void>
}

export interface ConnectOptions {
  token?: string
  /** What follows /mcp in the address, like `?lane=default`. */
  query?: string
  /** For `signalbox mcp`. */
  args?: string[]
}

/** The SDK's own client, held to one protocol version. */
export async function connect(
  daemon: TestDaemon,
  transport: TransportName,
  version: Version,
  options: ConnectOptions = {},
): Promise<Connected> {
  const client = new Client(
    { name: 'signalbox-test', version: '1' },
    version === MODERN ? { versionNegotiation: { mode: { pin: version } } } : { supportedProtocolVersions: [version] },
  )
  const streaming = deferred()
  const wire = transport === 'http' ? overHttp(daemon, options, streaming.resolve) : overStdio(daemon, options)
  await client.connect(wire)
  return {
    client,
    session: () => (wire instanceof StreamableHTTPClientTransport ? wire.sessionId : undefined),
    pid: () => (wire instanceof StdioClientTransport ? (wire.pid ?? undefined) : undefined),
    listening: transport === 'http' && version !== MODERN ? streaming.promise : Promise.resolve(),
    close: () => client.close(),
  }
}

function overHttp(
  daemon: TestDaemon,
  { token = daemon.token, query = '' }: ConnectOptions,
  onStream: () => void,
): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(`${daemon.url}/mcp${query}`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
    // As long as a restart takes on a busy machine: by default the client gives up after two tries.
    reconnectionOptions: { initialReconnectionDelay: 100, maxReconnectionDelay: 100, reconnectionDelayGrowFactor: 1, maxRetries: 200 },
    async fetch(url, init) {
      const headers = new Headers(init?.headers)
      // Else whoever stands still for seconds writes into a connection that the daemon has closed meanwhile.
      headers.set('connection', 'close')
      const response = await fetch(url, { ...init, headers })
      if (init?.method === 'GET' && response.ok) onStream()
      return response
    },
  })
}

function overStdio(daemon: TestDaemon, { token, args = ['--admin', '--no-start'] }: ConnectOptions): StdioClientTransport {
  return new StdioClientTransport({
    command: process.execPath,
    args: [BIN, 'mcp', ...args],
    env: { ...daemon.env, ...(token ? { SIGNALBOX_TOKEN: token } : {}) },
    stderr: 'ignore',
  })
}

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
export type Structured = Record<string, any>

/** The structured answer, which must say the same as the text beside it. */
export async function call({ client }: Connected, name: string, args: Record<string, unknown> = {}, more = {}): Promise<Structured> {
  const result = await client.callTool({ name, arguments: args }, more)
  const [content] = result.content
  if (content?.type !== 'text' || result.content.length !== 1) throw new Error(`${name} answered ${JSON.stringify(result.content)}`)
  const structured = result.structuredContent as Structured
  if (content.text !== JSON.stringify(structured)) throw new Error(`${name}: text and structured content differ: ${content.text}`)
  return structured
}

export async function refused(connected: Connected, name: string, args: Record<string, unknown> = {}): Promise<Structured> {
  const result = await connected.client.callTool({ name, arguments: args })
  if (!result.isError) throw new Error(`${name} was expected to be refused`)
  const structured = result.structuredContent as Structured
  if ((result.content[0] as { text: string }).text !== JSON.stringify(structured)) throw new Error(`${name}: text and structure differ`)
  return structured.error
}
