import { createServer, type Server } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { pino } from 'pino'
import { createGit } from '../adapters/git-cli/index.ts'
import { createSessionStore } from '../db/mcp-sessions.ts'
import { UsageError } from '../kernel/error.ts'
import { redactText } from '../kernel/redact.ts'
import { createHttp } from '../surfaces/http.ts'
import { createMcpSurface } from '../surfaces/mcp.ts'
import { createServerFactory } from '../surfaces/mcp-server.ts'
import { Metrics } from '../surfaces/metrics.ts'
import { listenOnSocket } from '../surfaces/socket.ts'
import { EventStreams } from '../surfaces/sse.ts'
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import {
  adoptStagedToken,
  createOwnerFile,
  ensurePrivateFolder,
  refuseLink,
  secretsOnDisk,
  settleOwnerToken,
  socketPath,
  writeAddress,
} from './home.ts'
import { lockHome } from './lock.ts'
import { VERSION } from './version.ts'

export interface RunningDaemon {
  url: string
  home: string
  stop(): Promise<void>
}

const SHUTDOWN_MS = 5_000

/** Starts everything, in the order in which it can fail with the clearest message. */
export async function serve(config: Config): Promise<RunningDaemon> {
  const { home } = config
  ensurePrivateFolder(home)
  const lock = lockHome(home, 'start another one')
  refuseLink(config.databasePath)
  const log = pino(
    { level: config.logLevel, base: undefined, hooks: { streamWrite: redactText } },
    pino.destination({ dest: 2, sync: true }),
  )
  const metrics = new Metrics()
  const app = await createApp({
    databasePath: config.databasePath,
    ports: { git: createGit(), ownerFile: createOwnerFile(home) },
    ownerSecrets: secretsOnDisk(home),
    onOwnerRotated: () => adoptStagedToken(home),
    onDefect: (error, call) =>
      log.error(
        { call: call.id, tool: call.tool, err: error instanceof Error ? { message: error.message, stack: error.stack } : String(error) },
        'defect',
      ),
    onCall: (call) => metrics.record(call),
  })
  settleOwnerToken(home, app.ownerToken)
  for (const notice of app.engine.notices) log.warn(notice)

  const { kernel, feed } = app
  const { ledger } = app.engine
  const onError = (error: Error) => log.debug({ error: error.message }, 'protocol')
  const factory = createServerFactory({ kernel, feed, version: VERSION, holdMs: config.holdMs })
  const mcp = createMcpSurface({
    factory,
    sessions: createSessionStore(app.engine, app.host.now),
    feed,
    capabilities: app.registry.capabilities,
    newSessionId: () => app.host.id('mcp'),
    onError,
  })
  app.counts.mcpSessions = mcp.sessionCount
  const streams = new EventStreams(feed, ledger)
  const health = () => kernel.parts.ports.daemon.health()
  const http = createHttp({
    kernel,
    feed,
    ledger,
    mcp,
    streams,
    metrics,
    health,
    allowedHosts: config.allowedHosts,
    holdMs: config.holdMs,
    log: (message, details) => log.error(details, message),
  })
  const server = createServer(getRequestListener(http.fetch, { overrideGlobalObjects: false }))
  const port = await listen(server, config)
  const socket = await listenOnSocket({
    path: socketPath(home, process.env),
    home,
    version: VERSION,
    kernel,
    factory,
    ensureFolder: ensurePrivateFolder,
    onError,
  })

  const url = `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}`
  writeAddress(home, url)

  return {
    url,
    home,
    async stop() {
      // Waits answer with their cursor first, so that clients resume; then nothing new is let in.
      feed.interrupt()
      const deadline = setTimeout(() => process.exit(1), SHUTDOWN_MS)
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeIdleConnections()
      streams.close()
      await socket.close()
      await mcp.close()
      setTimeout(() => server.closeAllConnections(), 1_000).unref()
      await closed
      await app.close()
      lock.release()
      clearTimeout(deadline)
    },
  }
}

function listen(server: Server, config: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') return reject(error)
      reject(
        new UsageError(
          `Port ${config.port} on ${config.host} is taken, perhaps by another Signalbox. Stop that program, or start with SIGNALBOX_PORT=${config.port + 1}.`,
        ),
      )
    })
    server.listen(config.port, config.host, () => resolve((server.address() as { port: number }).port))
  })
}
