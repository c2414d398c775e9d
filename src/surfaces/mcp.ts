import {
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  type JSONRPCMessage,
  type McpHttpHandler,
  PROTOCOL_VERSION_META_KEY,
  type ServerEvent,
  type ServerEventBus,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import type { SessionStore, StoredSession } from '../db/mcp-sessions.ts'
import type { Capability } from '../kernel/capability.ts'
import type { LoggedEvent } from '../kernel/event.ts'
import type { Feed } from '../kernel/log.ts'
import { mayRead, type Principal } from '../kernel/policy.ts'
import type { McpConnection, McpServerFactory } from './mcp-server.ts'
import { createUpdates, endedToken, type Updates } from './updates.ts'

export interface McpSurfaceParts {
  newServer: McpServerFactory
  sessions: SessionStore
  feed: Feed
  capabilities: Capability[]
  newSessionId(): string
  onError(error: Error): void
}

export interface McpSurface {
  handle(request: Request, body: unknown, connection: McpConnection): Promise<Response>
  sessionCount(): number
  close(): Promise<void>
}

interface LiveSession {
  transport: WebStandardStreamableHTTPServerTransport
  token: string
  usedAt: number
  /** Requests that are not over: they must not be cut off. */
  busy: number
  /** Whether the client holds the stream on which it hears what it did not ask for. */
  listening: boolean
  /** What could not be said for want of that stream, each thing once. */
  untold: Map<string, JSONRPCMessage>
}

const IDLE_MS = 30 * 60_000
const MOST_LIVE = 500
const MOST_PER_TOKEN = 200
const SWEEP_MS = 60_000
const MOST_LISTENING = 1_024

/** Both protocol eras on one address: 2026 requests stand alone, 2025 clients keep a session that survives our restart. */
export function createMcpSurface(parts: McpSurfaceParts): McpSurface {
  const { newServer, sessions, feed } = parts
  const live = new Map<string, LiveSession>()
  const adopting = new Map<string, Promise<LiveSession | undefined>>()
  const ending = new Set<string>()
  const updates = createUpdates(parts.capabilities)
  const listening = new Set<McpHttpHandler>()
  // By the request and not through an AsyncLocalStorage: on Node 20 that makes every promise of the process slower.
  const asking = new WeakMap<Request, McpConnection>()
  const modern = createMcpHandler(({ requestInfo }) => newServer(required(requestInfo && asking.get(requestInfo)), 'modern'), {
    legacy: 'reject',
    onerror: parts.onError,
  })

  async function handle(request: Request, body: unknown, connection: McpConnection): Promise<Response> {
    if (claimsModern(request, body) || !(await isLegacyRequest(request, body))) return alone(request, body, connection)
    const id = request.headers.get('mcp-session-id')
    if (id) return inSession(id, request, body, connection)
    if (isInitializeRequest(body)) return begin(request, body, connection)
    return rpcError(400, -32_000, 'No MCP session: send initialize first, or use protocol 2026-07-28.')
  }

  async function alone(request: Request, body: unknown, connection: McpConnection): Promise<Response> {
    const { method } = body as { method?: unknown }
    if (method === 'subscriptions/listen') return listen(request, body, connection)
    asking.set(request, { ...connection, method: String(method) })
    return modern.fetch(request, { parsedBody: body })
  }

  /** Each has a handler of its own, whose source of changes knows who listens. */
  async function listen(request: Request, body: unknown, connection: McpConnection): Promise<Response> {
    const handler = createMcpHandler(() => newServer(connection, 'modern'), {
      legacy: 'reject',
      bus: busOf(connection.principal, feed, updates),
      maxSubscriptions: listening.size < MOST_LISTENING ? 1 : 0,
      onerror: parts.onError,
    })
    listening.add(handler)
    connection.whenOver?.(() => listening.delete(handler))
    return handler.fetch(request, { parsedBody: body })
  }

  async function begin(request: Request, body: unknown, connection: McpConnection): Promise<Response> {
    const stored = {
      id: parts.newSessionId(),
      token: tokenOf(connection),
      dialect: connection.dialect ?? null,
      lane: connection.lane,
      initialize: JSON.stringify(body),
      subscriptions: '[]',
    }
    const session = await open(stored, connection)
    const response = await serve(session, request, body, connection)
    // Stored before the client hears of it: whatever it does next, a restart in between is survived.
    if (!response.ok) await drop(stored.id)
    else await sessions.add(stored).catch((error) => drop(stored.id).then(() => Promise.reject(error)))
    return response
  }

  async function inSession(id: string, request: Request, body: unknown, connection: McpConnection): Promise<Response> {
    const session = live.get(id) ?? (await adopt(id, connection))
    // Somebody else's session is as good as none: a session id is not a credential.
    if (!session || session.token !== tokenOf(connection)) return rpcError(404, -32_001, 'MCP session not found. Send initialize again.')
    const response = await serve(session, request, body, connection)
    if (request.method === 'DELETE' && response.ok) await end(id)
    return response
  }

  /** A late request of the same client must not take it up again before it is out of the database: nobody would end it then. */
  async function end(id: string): Promise<void> {
    ending.add(id)
    await drop(id)
    await sessions.remove(id).finally(() => ending.delete(id))
  }

  async function open(stored: StoredSession, connection: McpConnection): Promise<LiveSession> {
    const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => stored.id })
    transport.onerror = parts.onError
    const session = { transport, token: stored.token, usedAt: performance.now(), busy: 0, listening: false, untold: new Map() }
    keepUntold(session)
    const subscriptions = {
      known: JSON.parse(stored.subscriptions) as string[],
      keep: (uris: string[]) => sessions.subscribe(stored.id, uris),
    }
    await newServer({ ...connection, proof: undefined, subscriptions }, 'legacy').connect(transport)
    live.set(stored.id, session)
    await makeRoom(stored)
    return session
  }

  /** A session from before a restart: the stored initialize is replayed into a new transport. Two requests of one token share one adoption. */
  function adopt(id: string, connection: McpConnection): Promise<LiveSession | undefined> {
    const key = `${id} ${tokenOf(connection)}`
    const running = adopting.get(key) ?? revive(id, connection).finally(() => adopting.delete(key))
    adopting.set(key, running)
    return running
  }

  async function revive(id: string, connection: McpConnection): Promise<LiveSession | undefined> {
    const stored = ending.has(id) ? undefined : await sessions.find(id)
    if (!stored || stored.token !== tokenOf(connection)) return undefined
    const session = await open(stored, {
      ...connection,
      dialect: stored.dialect ?? undefined,
      lane: stored.lane === 'default' ? 'default' : 'admin',
    })
    await replay(session.transport, JSON.parse(stored.initialize))
    // What happened in between is not known: the client looks again at all that it follows.
    await session.transport.send({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
    for (const uri of JSON.parse(stored.subscriptions) as string[])
      await session.transport.send({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })
    return session
  }

  async function serve(session: LiveSession, request: Request, body: unknown, connection: McpConnection): Promise<Response> {
    session.usedAt = performance.now()
    const response = await session.transport.handleRequest(request, { parsedBody: body })
    const opensStream = request.method === 'GET' && response.ok
    session.busy++
    connection.whenOver?.(() => {
      session.busy--
      session.usedAt = performance.now()
      if (opensStream) session.listening = false
    })
    if (opensStream) await tellUntold(session)
    return response
  }

  async function drop(id: string): Promise<void> {
    const session = live.get(id)
    live.delete(id)
    await session?.transport.close()
  }

  /** One holder's sessions give way to each other before anybody else's do; the newest never does. */
  async function makeRoom(newest: StoredSession): Promise<void> {
    const byAge = [...live].filter(([id]) => id !== newest.id).sort(([, a], [, b]) => a.usedAt - b.usedAt)
    const own = byAge.filter(([, session]) => session.token === newest.token)
    if (own.length >= MOST_PER_TOKEN) return drop((own.find(([, session]) => session.busy === 0) ?? own[0])?.[0] as string)
    if (live.size <= MOST_LIVE) return
    const idle = byAge.find(([, session]) => session.busy === 0)
    if (idle) await drop(idle[0])
  }

  /** Clients seldom say goodbye. What is put away here is adopted again when its client returns; one that waits for us is no idler. */
  async function sweep(): Promise<void> {
    const now = performance.now()
    const idle = [...live].filter(([, session]) => session.busy === 0)
    for (const [id, session] of idle) if (now - session.usedAt > IDLE_MS) await drop(id)
    await sessions.keep([...live.keys()])
  }

  const sweeper = setInterval(() => void sweep().catch(parts.onError), SWEEP_MS)
  sweeper.unref()

  return {
    handle,
    sessionCount: () => live.size,
    async close() {
      clearInterval(sweeper)
      for (const handler of [modern, ...listening]) await handler.close()
      for (const id of [...live.keys()]) await drop(id)
    },
  }
}

/** Whoever says so in the request itself is never of the older era: that saves taking it apart twice. */
function claimsModern(request: Request, body: unknown): boolean {
  const { _meta: meta } = (body as { params?: { _meta?: unknown } } | undefined)?.params ?? {}
  return request.method === 'POST' && typeof meta === 'object' && meta !== null && Object.hasOwn(meta, PROTOCOL_VERSION_META_KEY)
}

/** The source of changes for a 2026 subscription: it tells only what its own reader may know. */
function busOf(principal: Principal, feed: Feed, updates: Updates): ServerEventBus {
  return {
    publish() {},
    subscribe(listener: (event: ServerEvent) => void) {
      const tell = (event: LoggedEvent) => {
        if (endedToken(event) === principal.tokenId) return stop()
        if (updates.toolsChanged(event)) listener({ kind: 'tools_list_changed' })
        if (mayRead(principal, event)) for (const uri of updates.uris(event)) listener({ kind: 'resource_updated', uri })
      }
      const stop = feed.subscribe((events) => events.forEach(tell))
      return stop
    },
  }
}

/** A client opens its stream a moment after it has connected, and again after a break: what it is told until then waits for it. */
function keepUntold(session: LiveSession): void {
  const { transport } = session
  const send = transport.send.bind(transport)
  transport.send = async (message, options) => {
    const needsStream = 'method' in message && !('id' in message) && options?.relatedRequestId === undefined
    if (needsStream && !session.listening) session.untold.set(JSON.stringify(message), message)
    else await send(message, options)
  }
}

async function tellUntold(session: LiveSession): Promise<void> {
  session.listening = true
  const messages = [...session.untold.values()]
  session.untold.clear()
  for (const message of messages) await session.transport.send(message)
}

async function replay(transport: WebStandardStreamableHTTPServerTransport, initialize: unknown): Promise<void> {
  const post = (message: unknown, session?: string) => {
    const headers = new Headers({ 'content-type': 'application/json', accept: 'application/json, text/event-stream' })
    if (session) headers.set('mcp-session-id', session)
    return transport.handleRequest(new Request('http://localhost/mcp', { method: 'POST', headers, body: '{}' }), { parsedBody: message })
  }
  const response = await post(initialize)
  await response.text()
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, transport.sessionId)
}

function tokenOf(connection: McpConnection): string {
  return connection.principal.tokenId ?? connection.principal.id
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('an MCP request arrived outside the surface')
  return value
}

export function rpcError(status: number, code: number, message: string, data?: unknown): Response {
  return Response.json({ jsonrpc: '2.0', id: null, error: { code, message, ...(data ? { data } : {}) } }, { status })
}
