import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { CODES, type ErrorBody, Refusal, refuse, TransientFault } from '../kernel/error.ts'
import type { EventFilter } from '../kernel/event.ts'
import { type Answer, type Kernel, type Proof, type Surface, unauthenticated } from '../kernel/invoke.ts'
import type { Feed, Ledger } from '../kernel/log.ts'
import { type Lane, maySee, type Principal } from '../kernel/policy.ts'
import type { Health } from '../ports/daemon.ts'
import { Bodies, jsonBody } from './body.ts'
import { type Executed, execute, refusedWith, routed } from './execute.ts'
import type { McpSurface } from './mcp.ts'
import type { Metrics } from './metrics.ts'
import { openApi } from './openapi.ts'
import type { Page } from './pages.ts'
import type { EventStreams } from './sse.ts'

export interface HttpParts {
  kernel: Kernel
  feed: Feed
  ledger: Ledger
  mcp: McpSurface
  streams: EventStreams
  metrics: Metrics
  health(): Health
  /** The dashboard, where there is one. */
  pages?(path: string, accept: string): Page | undefined
  /** Hostnames that the Host header may carry, besides the loopback ones. */
  allowedHosts: string[]
  holdMs?: number
  log(message: string, details: object): void
}

type Env = { Bindings: HttpBindings }
type Ctx = Context<Env>

/** The methods that go through the kernel's door. */
const MCP_CALLS = new Set(['tools/call', 'resources/read'])
const CHALLENGE = 'Bearer realm="signalbox"'
/** What comes in one piece or two is read before its token is asked for: that would cost every call a second look. */
const SMALL_BODY = 16_384
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

export function createHttp(parts: HttpParts): Hono<Env> {
  const app = new Hono<Env>()
  const bodies = new Bodies()
  const hosts = new Set([...LOOPBACK, ...parts.allowedHosts])

  app.use(async (c, next) => {
    const foreign = foreignSource(c, hosts)
    if (foreign) {
      parts.kernel.parts.countRefusal(sourceOf(c), 'FOREIGN_SOURCE')
      return answerError(c, parts, { code: 'PERMISSION_DENIED', message: foreign }, 403)
    }
    await next()
    harden(c)
  })
  app.onError((error, c) => {
    if (error instanceof Refusal) return answerError(c, parts, error.body)
    if (error instanceof TransientFault) return answerError(c, parts, { code: 'TRANSIENT_ERROR', message: CODES.TRANSIENT_ERROR.meaning })
    // A client that hung up is no failure of ours, and a storm of them must not fill the log.
    if (!c.req.raw.signal.aborted) parts.log('request failed', { path: c.req.path, error: String(error) })
    return answerError(c, parts, { code: 'INTERNAL_ERROR', message: 'Signalbox failed on this request.' })
  })
  app.notFound((c) => {
    const page = ['GET', 'HEAD'].includes(c.req.method) ? parts.pages?.(c.req.path, c.req.header('accept') ?? '') : undefined
    if (page) return c.body(page.body, 200, page.headers)
    return answerError(c, parts, {
      code: 'RESOURCE_NOT_FOUND',
      message: `There is nothing at ${c.req.method} ${c.req.path.slice(0, 100)}.`,
      hint: 'Tools are at POST /api/tools/<name>, MCP at /mcp, events at GET /api/events.',
    })
  })

  app.get('/healthz', (c) => {
    const { ok, version, uptime_seconds } = parts.health()
    return c.json({ ok, version, uptime_seconds })
  })

  app.get('/metrics', async (c) => {
    admit(c, parts, (await requirePrincipal(c, parts)).principal)
    return c.text(parts.metrics.render(gauges(parts)))
  })

  app.get('/api/tools', async (c) => {
    const { principal } = await requirePrincipal(c, parts)
    admit(c, parts, principal)
    const found = parts.kernel.permitted(principal, laneOf(c, parts), c.req.query('dialect'))
    return c.json({
      ok: true,
      tools: found.map(({ tool, calledAs, adapter }) => ({
        name: calledAs,
        title: tool.title,
        description: adapter?.description ?? tool.description,
        impact: adapter?.impact ?? tool.impact,
        profile: tool.profile,
        input: adapter?.inputJson ?? tool.inputJson,
        output: adapter ? undefined : tool.outputJson,
      })),
    })
  })

  let description: object | undefined
  app.get('/api/openapi.json', async (c) => {
    admit(c, parts, (await requirePrincipal(c, parts)).principal)
    description ??= openApi(parts.kernel.parts.registry, parts.health().version)
    return c.json(description)
  })

  app.post('/api/tools/:name', async (c) => {
    const secret = bearer(c)
    if (!secret) return answerError(c, parts, refused(parts, c))
    const input = await bodyOf(c, parts, bodies)
    const answer = await parts.kernel.invoke({
      tool: c.req.param('name'),
      input,
      credential: { secret },
      surface: surfaceOf(c),
      lane: laneOf(c, parts),
      dialect: c.req.query('dialect'),
      actFor: c.req.header('signalbox-act-for'),
      source: sourceOf(c),
      signal: c.req.raw.signal,
      holdMs: parts.holdMs,
    })
    return answerJson(c, parts, answer)
  })

  app.get('/api/events', async (c) => {
    const { principal } = await requirePrincipal(c, parts)
    admit(c, parts, principal)
    const after = c.req.header('last-event-id') ?? c.req.query('after') ?? parts.feed.head
    // A bad cursor must be a clear answer, not a stream that never speaks.
    await parts.ledger.tail(parts.kernel.parts.storage.view, after, {}, 1)
    const filter = await filterOf(c, parts.kernel, principal)
    const dialect = c.req.query('dialect')
    const shape = dialect === undefined ? undefined : parts.kernel.parts.registry.dialect(dialect).event
    void parts.streams.attach(c.env.outgoing as never, principal, filter, after, shape).catch(() => c.env.outgoing.destroy())
    return RESPONSE_ALREADY_SENT
  })

  for (const dialect of routed(parts.kernel.parts.registry))
    app.post(dialect.route.path, async (c) => {
      const secret = bearer(c)
      if (!secret) return answerError(c, parts, refused(parts, c))
      const body = await bodyOf(c, parts, bodies)
      // A token that has ended is refused at the door, where that is recorded.
      const proof = await parts.kernel.authenticate(secret)
      const how = { surface: surfaceOf(c), lane: laneOf(c, parts), source: sourceOf(c), signal: c.req.raw.signal, holdMs: parts.holdMs }
      return answerExecuted(c, await execute(parts.kernel, dialect, { ...how, secret, proof, body }))
    })

  app.all('/mcp', async (c) => {
    if (!bearer(c)) return answerError(c, parts, refused(parts, c))
    // Asked for once more after it: the call must not go by what was true when a slow client began to send it.
    const body = c.req.method === 'POST' ? await bodyOf(c, parts, bodies) : undefined
    const found = await requirePrincipal(c, parts)
    if (!MCP_CALLS.has(String((body as { method?: unknown } | undefined)?.method))) admit(c, parts, found.principal)
    const dialect = c.req.query('dialect')
    if (dialect !== undefined) parts.kernel.parts.registry.dialect(dialect)
    const response = await parts.mcp.handle(c.req.raw, body, {
      ...found,
      lane: laneOf(c, parts),
      surface: 'mcp',
      source: sourceOf(c),
      dialect,
      toolsets: c.req.query('toolsets')?.split(','),
      whenOver: (then) => whenOver(c, then),
    })
    if (response.status === 404 && c.req.header('mcp-session-id'))
      parts.kernel.parts.countRefusal(found.principal.id, 'MCP_SESSION_NOT_FOUND')
    return response
  })
  return app
}

/** A page in the user's browser can reach loopback: what did not mean to talk to this daemon is turned away first. */
function foreignSource(c: Ctx, hosts: Set<string>): string | undefined {
  const host = c.req.header('host') ?? ''
  const name = host.replace(/:\d+$/, '').toLowerCase()
  if (!hosts.has(name)) return `The Host header "${host.slice(0, 100)}" is not this daemon's. Set SIGNALBOX_ALLOWED_HOSTS if it should be.`
  const origin = c.req.header('origin')
  if (origin === undefined || sameOrigin(origin, host)) return undefined
  return `Requests from the web page "${origin.slice(0, 100)}" are not accepted.`
}

/** Exactly our own address, port included: an agent's development server is on this machine too. */
function sameOrigin(origin: string, host: string): boolean {
  return [`http://${host}`, `https://${host}`].includes(origin.toLowerCase())
}

function harden(c: Ctx): void {
  if (c.res.headers.has('x-hono-already-sent')) return
  c.res.headers.set('x-content-type-options', 'nosniff')
  c.res.headers.set('referrer-policy', 'no-referrer')
  if (!c.res.headers.has('content-security-policy'))
    c.res.headers.set('content-security-policy', "default-src 'none'; frame-ancestors 'none'")
  if (!c.res.headers.has('cache-control')) c.res.headers.set('cache-control', 'no-store')
}

/** What does not come to the kernel's door is limited here: a storm of sessions or streams costs as much as one of calls. */
function admit(c: Ctx, parts: HttpParts, principal: Principal): void {
  whenOver(c, parts.kernel.admit(principal))
}

function whenOver(c: Ctx, then: () => void): void {
  if (c.env.outgoing.destroyed) then()
  else c.env.outgoing.once('close', then)
}

/** A token that nobody knows must not make us read a megabyte first. */
async function bodyOf(c: Ctx, parts: HttpParts, bodies: Bodies): Promise<unknown> {
  const { incoming } = c.env
  if (Number(incoming.headers['content-length']) <= SMALL_BODY) return jsonBody(incoming)
  const { principal } = await requirePrincipal(c, parts)
  const { count, release } = bodies.open(principal.tokenId ?? principal.id)
  whenOver(c, release)
  return jsonBody(incoming, (bytes) => {
    try {
      count(bytes)
    } catch (error) {
      parts.kernel.parts.countRefusal(principal.id, 'RATE_LIMITED')
      throw error
    }
  })
}

async function requirePrincipal(c: Ctx, parts: HttpParts): Promise<{ principal: Principal; secret: string; proof: Proof }> {
  const secret = bearer(c)
  const found = secret ? await parts.kernel.authenticate(secret) : undefined
  if (!secret || !found) throw new Refusal(refused(parts, c))
  if (found.stale) {
    parts.kernel.parts.countRefusal(found.principal.id, 'AUTH_STALE_TOKEN')
    throw refuse('AUTH_STALE_TOKEN', `This token ${found.stale}.`, { hint: 'Ask for a new one and reconnect.' })
  }
  return { principal: found.principal, secret, proof: found }
}

function refused(parts: HttpParts, c: Ctx): ErrorBody {
  parts.kernel.parts.countRefusal(sourceOf(c), 'UNAUTHENTICATED')
  return unauthenticated()
}

function bearer(c: Ctx): string | undefined {
  return /^Bearer ([\w.~+/-]{1,200}=*)$/i.exec(c.req.header('authorization') ?? '')?.[1]
}

function answerJson(c: Ctx, parts: HttpParts, answer: Answer): Response {
  if (answer.ok) return c.json({ ok: true, result: answer.value })
  if (answer.shaped) return c.json(answer.shaped, CODES[answer.error.code].status as never)
  return answerError(c, parts, answer.error)
}

function answerError(c: Ctx, { kernel }: HttpParts, error: ErrorBody, status: number = CODES[error.code].status): Response {
  const dialect = routed(kernel.parts.registry).find(({ route }) => route.path === c.req.path)
  if (dialect) return answerExecuted(c, refusedWith(kernel, dialect, error))
  const retry = error.details?.retry_after_seconds
  if (status === 401) c.header('www-authenticate', CHALLENGE)
  if (typeof retry === 'number') c.header('retry-after', String(retry))
  return c.json({ ok: false, error }, status as never)
}

function answerExecuted(c: Ctx, { status, body, retrySeconds }: Executed): Response {
  if (status === 401) c.header('www-authenticate', CHALLENGE)
  if (retrySeconds !== undefined) c.header('retry-after', String(retrySeconds))
  return c.json(body, status as never)
}

/** A person's own token is the admin lane here; a client may ask for less. */
function laneOf(c: Ctx, { kernel }: HttpParts): Lane {
  const asked = c.req.query('lane') ?? kernel.parts.registry.spoken(c.req.query('dialect'))?.lane
  return asked === 'default' ? 'default' : 'admin'
}

function surfaceOf(c: Ctx): Surface {
  return c.req.header('user-agent')?.startsWith('signalbox-cli/') ? 'cli' : 'http'
}

function sourceOf(c: Ctx): string {
  return c.env.incoming?.socket?.remoteAddress ?? 'unknown'
}

async function filterOf(c: Ctx, kernel: Kernel, principal: Principal): Promise<EventFilter> {
  const idOf = async (kind: string) => {
    const ref = c.req.query(kind)
    if (ref === undefined) return undefined
    const found = await kernel.parts.registry.thing(kind).find(kernel.parts.storage.view, ref)
    if (!found) throw refuse('RESOURCE_NOT_FOUND', `There is no ${kind} "${ref.slice(0, 64)}".`)
    const outside = maySee(principal, kind, found.id, found.within)
    if (outside) throw outside
    return found.id
  }
  return { types: c.req.query('types')?.split(',').slice(0, 50), project: await idOf('project'), task: await idOf('task') }
}

function gauges(parts: HttpParts): Record<string, number> {
  const { database, waiting_calls, mcp_sessions, uptime_seconds } = parts.health()
  return {
    uptime_seconds,
    database_bytes: database.size_bytes,
    queued_writes: database.queued_writes,
    commits: database.commits,
    committed_calls: database.committed_calls,
    events_held_back_ms: database.events_held_back_ms,
    waiting_calls,
    event_streams: parts.streams.size,
    mcp_sessions,
    resident_bytes: process.memoryUsage.rss(),
  }
}
