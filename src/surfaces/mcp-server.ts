import {
  type CallToolResult,
  type Tool as McpTool,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Resource } from '../kernel/capability.ts'
import type { LoggedEvent } from '../kernel/event.ts'
import { type Answer, DEFAULT_HOLD_MS, type Kernel, type Proof, type Surface } from '../kernel/invoke.ts'
import type { Feed } from '../kernel/log.ts'
import { type Lane, mayRead, type Principal } from '../kernel/policy.ts'
import type { Found } from '../kernel/registry.ts'
import { createUpdates, endedToken, type Updates } from './updates.ts'

/** One client's connection: what it proved and what it asked for. The token is checked again at every call. */
export interface McpConnection {
  secret: string
  principal: Principal
  /** Of the one request that this connection is for; absent where it carries more than one. */
  proof?: Proof
  lane: Lane
  surface: Surface
  source: string
  dialect?: string
  toolsets?: string[]
  /** 2025-era sessions: what they subscribed to, kept where a restart does not reach it. */
  subscriptions?: { known: string[]; keep(uris: string[]): Promise<void> }
  /** 2026 requests stand alone: the only method that the server made for this one will be asked for. */
  method?: string
  /** Calls back when this request has been answered to its end, or its client has hung up. */
  whenOver?(then: () => void): void
}

export type Era = 'legacy' | 'modern'
export type McpServerFactory = (connection: McpConnection, era: Era) => Server

export interface McpServerParts {
  kernel: Kernel
  feed: Feed
  version: string
  holdMs?: number
}

/** Clients cut silent calls after 60 s; with progress they stay. */
const PROGRESS_EVERY_MS = 10_000
const HOLD_WITH_PROGRESS_MS = 240_000
const MOST_SUBSCRIPTIONS = 1_000

const INSTRUCTIONS =
  'Signalbox coordinates agents and people on shared repositories. Start with agent_me, then task_context for your task. Wait with task_wait or event_wait instead of asking again and again. A refused call says what to do next.'

/** Builds servers over one shared table of precomputed schemas: a new one is made for every modern request. */
export function createServerFactory(parts: McpServerParts): McpServerFactory {
  const { kernel } = parts
  const { registry } = kernel.parts
  const updates = createUpdates(registry.capabilities)
  const listed = new Map<string, McpTool>()
  const describe = (found: Found): McpTool => {
    const key = `${found.dialect?.name ?? ''}/${found.calledAs}`
    const known = listed.get(key) ?? describeTool(found)
    listed.set(key, known)
    return known
  }
  const toolset = new Map(registry.capabilities.flatMap((c) => c.tools.map((tool) => [tool.name, c.name] as const)))
  const resources = registry.capabilities.flatMap((c) => c.resources ?? [])
  const prompts = registry.capabilities.flatMap((c) => c.prompts ?? [])

  return (connection, era) => {
    const server = new Server(
      { name: 'signalbox', title: 'Signalbox', version: parts.version },
      {
        // Only what we really announce: prompts and the list of resources are the same for as long as the daemon runs.
        capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, prompts: {} },
        instructions: INSTRUCTIONS,
      },
    )
    const call = (tool: string, input: unknown, ctx: ServerContext, holdMs: number) =>
      kernel.invoke({
        tool,
        input,
        credential: { secret: connection.secret, proof: connection.proof },
        surface: connection.surface,
        lane: connection.lane,
        dialect: connection.dialect,
        source: connection.source,
        signal: era === 'legacy' ? endOf(ctx) : ctx.mcpReq.signal,
        holdMs: Math.min(holdMs, parts.holdMs ?? holdMs),
      })

    const handle = handlerOn(server, connection.method)
    handle('tools/list', async () => {
      const principal = await current(kernel, connection)
      const found = kernel.permitted(principal, connection.lane, connection.dialect)
      const wanted = connection.toolsets
      return { tools: found.filter((f) => !wanted || wanted.includes(toolset.get(f.tool.name) ?? '')).map(describe) }
    })

    handle('tools/call', async (request, ctx) => {
      const progress = startProgress(ctx)
      try {
        return toResult(await call(request.params.name, request.params.arguments ?? {}, ctx, progress.holdMs))
      } finally {
        progress.stop()
      }
    })

    handle('resources/list', async () => ({
      resources: resources
        .filter((r) => !r.argument)
        .map((r) => ({ uri: r.uri, name: r.name, description: r.description, mimeType: 'application/json' })),
    }))
    handle('resources/templates/list', async () => ({
      resourceTemplates: resources
        .filter((r) => r.argument)
        .map((r) => ({ uriTemplate: r.uri, name: r.name, description: r.description, mimeType: 'application/json' })),
    }))
    handle('resources/read', async (request, ctx) => {
      const { uri } = request.params
      const { resource, input } = matching(resources, uri)
      const answer = await call(resource.tool, input, ctx, DEFAULT_HOLD_MS)
      if (!answer.ok) throw new ProtocolError(ProtocolErrorCode.InvalidParams, answer.error.message, { uri, ...answer.error })
      return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(answer.value) }] }
    })

    handle('prompts/list', async () => ({
      prompts: prompts.map(({ name, title, description }) => ({ name, title, description })),
    }))
    handle('prompts/get', async (request) => {
      const prompt = prompts.find((p) => p.name === request.params.name)
      if (!prompt)
        throw new ProtocolError(
          ProtocolErrorCode.InvalidParams,
          `There is no prompt "${request.params.name}". Known: ${prompts.map((p) => p.name).join(', ')}.`,
        )
      const principal = await current(kernel, connection)
      return {
        description: prompt.description,
        messages: [{ role: 'user' as const, content: { type: 'text' as const, text: prompt.text(principal) } }],
      }
    })

    if (era === 'legacy') {
      const wanted = keepSubscriptions(server, resources, connection)
      tellOf(server, parts.feed, connection.principal, updates, (uri) => wanted.has(uri))
    }
    // On a shared 2026 connection the SDK holds the subscriptions and lets through what was asked for.
    else if (connection.surface === 'stdio') tellOf(server, parts.feed, connection.principal, updates, () => true)
    return server
  }
}

/** Eight of them for every request, of which one is asked for, would cost more than many a call. */
function handlerOn(server: Server, only: string | undefined): Server['setRequestHandler'] {
  const set = server.setRequestHandler.bind(server) as (method: string, ...handler: unknown[]) => void
  return ((method: string, ...handler: unknown[]) => {
    if (only === undefined || only === method) set(method, ...handler)
  }) as Server['setRequestHandler']
}

/** A 2025-era client subscribes by request, and is told on its own stream. */
function keepSubscriptions(server: Server, resources: Resource[], { subscriptions }: McpConnection): Set<string> {
  const wanted = new Set<string>(subscriptions?.known)
  const keep = async () => {
    await subscriptions?.keep([...wanted])
    return {}
  }
  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) => {
    matching(resources, uri)
    if (wanted.size >= MOST_SUBSCRIPTIONS && !wanted.has(uri))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `At most ${MOST_SUBSCRIPTIONS} subscriptions. Subscribe to a list instead.`)
    wanted.add(uri)
    return keep()
  })
  server.setRequestHandler('resources/unsubscribe', async ({ params: { uri } }) => {
    wanted.delete(uri)
    return keep()
  })
  return wanted
}

/** Passes changes on for as long as the connection lives. */
function tellOf(server: Server, feed: Feed, principal: Principal, updates: Updates, isWanted: (uri: string) => boolean): void {
  const tell = (event: LoggedEvent) => {
    // The caller that ended its own token still gets its answer: nothing is closed, it is only told no more.
    if (endedToken(event) === principal.tokenId) return stop()
    if (updates.toolsChanged(event)) void server.sendToolListChanged().catch(() => {})
    if (!mayRead(principal, event)) return
    for (const uri of updates.uris(event)) if (isWanted(uri)) void server.sendResourceUpdated({ uri }).catch(() => {})
  }
  const stop = feed.subscribe((events) => events.forEach(tell))
  const closed = server.onclose
  server.onclose = () => {
    stop()
    closed?.()
  }
}

async function current(kernel: Kernel, connection: McpConnection): Promise<Principal> {
  const found = await kernel.authenticate(connection.secret)
  if (!found || found.stale)
    throw new ProtocolError(ProtocolErrorCode.InvalidRequest, 'This token is no longer valid. Reconnect with a new one.', {
      code: 'AUTH_STALE_TOKEN',
    })
  return found.principal
}

function describeTool({ tool, calledAs, adapter }: Found): McpTool {
  const impact = adapter?.impact ?? tool.impact
  const annotations = {
    title: tool.title,
    readOnlyHint: impact === 'read',
    destructiveHint: impact === 'destructive',
    idempotentHint: impact === 'read',
    openWorldHint: false,
  }
  const inputSchema = (adapter?.inputJson ?? tool.inputJson) as McpTool['inputSchema']
  const base = { name: calledAs, title: tool.title, description: adapter?.description ?? tool.description, inputSchema, annotations }
  return {
    ...base,
    ...(adapter ? {} : { outputSchema: { type: 'object', anyOf: [tool.outputJson, REFUSED] } as McpTool['outputSchema'] }),
    // Clients that load schemas on demand keep these few at hand.
    ...(tool.core ? { _meta: { 'anthropic/alwaysLoad': true } } : {}),
  }
}

/** Clients that check what is structured do so with refusals too: they would tell the model of a bad schema in the place of the reason. */
const REFUSED = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: { code: { type: 'string' }, message: { type: 'string' } },
      required: ['code', 'message'],
    },
  },
  required: ['error'],
}

/** The same as structured content and as text: some clients show the model only the one, some only the other. */
export function toResult(answer: Answer): CallToolResult {
  const structured = answer.ok ? answer.value : (answer.shaped ?? { error: answer.error })
  return {
    content: [{ type: 'text', text: JSON.stringify(structured) }],
    structuredContent: structured,
    ...(answer.ok ? {} : { isError: true }),
  }
}

function startProgress(ctx: ServerContext): { holdMs: number; stop(): void } {
  const progressToken = ctx.mcpReq._meta?.progressToken
  if (progressToken === undefined) return { holdMs: DEFAULT_HOLD_MS, stop: () => {} }
  let progress = 0
  const timer = setInterval(() => {
    progress++
    void ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, message: 'waiting' } }).catch(() => {})
  }, PROGRESS_EVERY_MS)
  return { holdMs: HOLD_WITH_PROGRESS_MS, stop: () => clearInterval(timer) }
}

/** A client that hung up is not waited for: its request ends with its connection. In a session the SDK does not see to that. */
function endOf(ctx: ServerContext): AbortSignal {
  const http = ctx.http?.req?.signal
  return http ? AbortSignal.any([ctx.mcpReq.signal, http]) : ctx.mcpReq.signal
}

function matching(resources: Resource[], uri: string): { resource: Resource; input: Record<string, string> } {
  for (const resource of resources) {
    if (!resource.argument) {
      if (resource.uri === uri) return { resource, input: {} }
      continue
    }
    const [before, after] = resource.uri.split('{id}') as [string, string]
    const id = uri.startsWith(before) && uri.endsWith(after) ? uri.slice(before.length, uri.length - after.length) : ''
    if (/^[\w-]{1,64}$/.test(id)) return { resource, input: { [resource.argument]: id } }
  }
  throw new ResourceNotFoundError(uri)
}
