import { chmodSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import type { LoggedEvent } from '../kernel/event.ts'
import type { Kernel } from '../kernel/invoke.ts'
import type { McpServerFactory } from './mcp-server.ts'
import { endedToken } from './updates.ts'

/** The first line on the socket: which daemon is meant, who calls, and what for. */
export interface Hello {
  signalbox: 1
  home: string
  token: string
  lane: 'default' | 'admin'
  dialect?: string
  toolsets?: string[]
}

export type Welcome = { ok: true; version: string } | { ok: false; code: string; message: string }

export interface SocketParts {
  path: string
  home: string
  version: string
  kernel: Kernel
  newServer: McpServerFactory
  ensureFolder(path: string): void
  onError(error: Error): void
}

const HELLO_MAX = 8_192
const HELLO_MS = 5_000
const UNREAD_MS = 1_000
const ANSWER_MS = 1_000
const LONGEST_LINE = 2_000_000

/** Serves MCP line by line to local shims. Only our own user reaches the socket, and each connection still proves its token. */
export async function listenOnSocket(parts: SocketParts): Promise<{ close(): Promise<void> }> {
  parts.ensureFolder(dirname(parts.path))
  // We hold the daemon's lock, so a socket that is still there belonged to one that died.
  rmSync(parts.path, { force: true })
  const open = new Map<Socket, string | undefined>()
  const stopWatching = parts.kernel.parts.feed.subscribe((events) => hangUp(open, events))
  const server: Server = createServer((socket) => {
    open.set(socket, undefined)
    socket.on('error', () => {})
    socket.once('close', () => open.delete(socket))
    void greet(socket, parts, (token) => open.set(socket, token)).catch(parts.onError)
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(parts.path, resolve))
  chmodSync(parts.path, 0o600)
  return {
    async close() {
      stopWatching()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      // What was answered must still get out; a client that does not read it is not waited for.
      for (const socket of open.keys()) {
        socket.destroySoon()
        setTimeout(() => socket.destroy(), UNREAD_MS).unref()
      }
      await closed
      rmSync(parts.path, { force: true })
    },
  }
}

async function greet(socket: Socket, parts: SocketParts, onProven: (token: string | undefined) => void): Promise<void> {
  const line = await firstLine(socket)
  const refuse = (code: string, message: string) => socket.end(`${JSON.stringify({ ok: false, code, message } satisfies Welcome)}\n`)
  const hello = parseHello(line)
  if (!hello) return void refuse('INVALID_INPUT', 'This socket speaks to `signalbox mcp` of the same version.')
  if (hello.home !== parts.home) return void refuse('CONFLICT', `This daemon serves ${parts.home}, not ${hello.home}.`)
  const { registry } = parts.kernel.parts
  const found = await parts.kernel.authenticate(hello.token)
  if (!found) {
    parts.kernel.parts.countRefusal('socket', 'UNAUTHENTICATED')
    return void refuse('UNAUTHENTICATED', 'This daemon did not issue that token.')
  }
  if (found.stale) {
    parts.kernel.parts.countRefusal(found.principal.id, 'AUTH_STALE_TOKEN')
    return void refuse('AUTH_STALE_TOKEN', `This token ${found.stale}.`)
  }
  const spoken = registry.spoken(hello.dialect)
  if (hello.dialect !== undefined && !spoken) return void refuse('INVALID_INPUT', `There is no dialect "${hello.dialect}".`)
  socket.write(`${JSON.stringify({ ok: true, version: parts.version } satisfies Welcome)}\n`)
  const connection = {
    secret: hello.token,
    principal: found.principal,
    lane: spoken?.lane ?? hello.lane,
    surface: 'stdio' as const,
    source: 'socket',
    dialect: hello.dialect,
    toolsets: hello.toolsets,
  }
  onProven(found.principal.tokenId)
  serveStdio(({ era }) => parts.newServer(connection, era), {
    transport: new SocketTransport(socket),
    onerror: parts.onError,
  })
}

/** Those whose token ended come back with it as it is now. Not at once: the call that ended it may be on this very connection. */
function hangUp(open: Map<Socket, string | undefined>, events: LoggedEvent[]): void {
  const ended = new Set(events.map(endedToken).filter((token) => token !== undefined))
  for (const [socket, token] of open) if (token && ended.has(token)) setTimeout(() => socket.destroySoon(), ANSWER_MS).unref()
}

/** The SDK only stops listening when it has had enough of a client: unless it is closed too, the client waits for ever. */
class SocketTransport extends StdioServerTransport {
  readonly #socket: Socket

  constructor(socket: Socket) {
    super(socket, socket, { maxBufferSize: LONGEST_LINE })
    this.#socket = socket
  }

  override async close(): Promise<void> {
    await super.close()
    this.#socket.destroySoon()
  }
}

/** Reads exactly the first line; whatever came behind it stays in the stream for the protocol. */
function firstLine(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = Buffer.alloc(0)
    const timer = setTimeout(() => fail('no hello in time'), HELLO_MS)
    const done = () => {
      clearTimeout(timer)
      socket.off('readable', read)
      socket.off('close', gone)
    }
    const fail = (why: string) => {
      done()
      socket.destroy()
      reject(new Error(`socket: ${why}`))
    }
    const gone = () => fail('closed before hello')
    const read = () => {
      for (let chunk = socket.read() as Buffer | null; chunk; chunk = socket.read() as Buffer | null) {
        text = Buffer.concat([text, chunk])
        const end = text.indexOf(10)
        if (end < 0 && text.length > HELLO_MAX) return fail('hello too long')
        if (end < 0) continue
        done()
        if (end + 1 < text.length) socket.unshift(text.subarray(end + 1))
        return resolve(text.toString('utf8', 0, end))
      }
    }
    socket.on('readable', read)
    socket.once('close', gone)
  })
}

function parseHello(line: string): Hello | undefined {
  try {
    const hello = JSON.parse(line) as Hello
    const valid =
      hello.signalbox === 1 &&
      typeof hello.home === 'string' &&
      typeof hello.token === 'string' &&
      ['default', 'admin'].includes(hello.lane)
    return valid ? hello : undefined
  } catch {
    return undefined
  }
}
