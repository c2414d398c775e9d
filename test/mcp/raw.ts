import type { TestDaemon } from '../../src/testing/daemon.ts'
import { MODERN } from './clients.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
export type Message = Record<string, any>

export interface RawAnswer {
  status: number
  session: string | undefined
  /** The message that answers the request, from JSON or from a stream. */
  message: Message
}

export const INITIALIZE = {
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}

const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
}

export interface RawOptions {
  token?: string
  session?: string
  query?: string
  method?: string
  signal?: AbortSignal
}

/** One message as a bare HTTP request, with the id and the session that the test wants. */
export async function raw(daemon: TestDaemon, message: Message | undefined, options: RawOptions = {}): Promise<RawAnswer> {
  const modern = message?.params?._meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined
  const response = await fetch(`${daemon.url}/mcp${options.query ?? ''}`, {
    method: options.method ?? 'POST',
    signal: options.signal,
    headers: {
      authorization: `Bearer ${options.token ?? daemon.token}`,
      accept: 'application/json, text/event-stream',
      // Else whoever stands still for seconds writes into a connection that the daemon has closed meanwhile.
      connection: 'close',
      ...(message ? { 'content-type': 'application/json' } : {}),
      ...(options.session ? { 'mcp-session-id': options.session } : {}),
      ...(modern ? { 'mcp-protocol-version': MODERN, 'mcp-method': message?.method, 'mcp-name': message?.params?.name } : {}),
    },
    body: message ? JSON.stringify({ jsonrpc: '2.0', ...message }) : undefined,
  })
  const text = await response.text()
  return { status: response.status, session: response.headers.get('mcp-session-id') ?? undefined, message: read(text, message?.id) }
}

/** A 2025 session that belongs to the token. */
export async function openSession(daemon: TestDaemon, options: RawOptions = {}): Promise<string> {
  const { session } = await raw(daemon, { id: 1, ...INITIALIZE }, options)
  if (!session) throw new Error('no session was given out')
  await raw(daemon, { method: 'notifications/initialized' }, { ...options, session })
  return session
}

export function toolCall(id: string | number, name: string, args: object = {}): Message {
  return { id, method: 'tools/call', params: { name, arguments: args } }
}

export function modernCall(id: string | number, name: string, args: object = {}): Message {
  return { id, method: 'tools/call', params: { name, arguments: args, _meta: ENVELOPE } }
}

function read(text: string, id: unknown): Message {
  const lines = text.startsWith('{') ? [text] : text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [line.slice(6)] : []))
  const messages = lines.map((line) => JSON.parse(line) as Message)
  return messages.find((message) => message.id === id) ?? messages[0] ?? {}
}
