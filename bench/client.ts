import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const HEAD_END = Buffer.from('\r\n\r\n')
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n')
const SILENT_MS = 3_000
const REFUSED = Buffer.from('"isError":true')

/** One kept connection that sends ready-made bytes: the client must not be what is measured. */
export class RawClient {
  readonly #url: URL
  #socket: Socket | undefined
  #usedAt = 0
  #parts: Buffer[] = []
  #waiting: { resolve(body: Buffer): void; reject(error: Error): void } | undefined

  constructor(url: string) {
    this.#url = new URL(url)
  }

  static all(url: string, count: number): RawClient[] {
    return Array.from({ length: count }, () => new RawClient(url))
  }

  /** A server hangs up on whoever is silent for five seconds, which is what the other side's turn may take. */
  async connected(): Promise<void> {
    if (this.#socket && !this.#socket.destroyed && performance.now() - this.#usedAt < SILENT_MS) return
    this.close()
    const socket = connect(Number(this.#url.port), this.#url.hostname)
    await once(socket, 'connect')
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#take(chunk))
    socket.on('error', (error) => this.#fail(socket, error))
    socket.on('close', () => this.#fail(socket, new Error('the server closed the connection')))
    this.#socket = socket
    this.#usedAt = performance.now()
  }

  /** The bytes of a POST, to be sent as often as one likes. */
  post(path: string, headers: Record<string, string>, body: unknown): Buffer {
    const text = JSON.stringify(body)
    const lines = Object.entries({
      host: this.#url.host,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`)
  }

  /** Sends, and resolves with the body of the answer; rejects when it is no success. */
  send(request: Buffer): Promise<Buffer> {
    const socket = this.#socket
    if (!socket || socket.destroyed) return this.connected().then(() => this.send(request))
    this.#usedAt = performance.now()
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      socket.write(request)
    })
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }

  #take(chunk: Buffer): void {
    this.#parts.push(chunk)
    const all = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts)
    const headEnd = all.indexOf(HEAD_END)
    if (headEnd < 0) return
    const head = all.toString('latin1', 0, headEnd)
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
    const body = all.subarray(headEnd + HEAD_END.length)
    const whole = length === undefined ? all.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK) : body.length >= Number(length)
    if (!whole) return
    this.#parts = []
    const waiting = this.#waiting
    this.#waiting = undefined
    if (head.startsWith('HTTP/1.1 200') && !body.includes(REFUSED)) waiting?.resolve(body)
    else waiting?.reject(new Error(`${head.split('\r\n')[0]}: ${body.toString().slice(0, 500)}`))
  }

  #fail(socket: Socket, error: Error): void {
    if (socket !== this.#socket) return
    this.#waiting?.reject(error)
    this.#waiting = undefined
  }
}

const MODERN = '2026-07-28'
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
}

/** A tool call as Claude Code sends it. */
export function toolCall(client: RawClient, token: string, name: string, args: object): Buffer {
  const headers = {
    authorization: `Bearer ${token}`,
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': MODERN,
    'mcp-method': 'tools/call',
    'mcp-name': name,
  }
  return client.post('/mcp', headers, {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: args, _meta: ENVELOPE },
  })
}

/** What the tool answered, from an answer as JSON or as a stream. */
// biome-ignore lint/suspicious/noExplicitAny: the answers of several tools, read by name
export function answerOf(body: Buffer): any {
  const text = body.toString()
  const json = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)
  return JSON.parse(json).result.structuredContent
}
