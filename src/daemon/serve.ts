import { createServer, type Server } from 'node:http'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { getRequestListener } from '@hono/node-server'
import { type Logger, pino } from 'pino'
import { createGit } from '../adapters/git-cli/index.ts'
import { startedBeside } from '../adapters/git-cli/starter.ts'
import { listeners } from '../adapters/listeners/index.ts'
import { createNotifier } from '../adapters/notify/index.ts'
import { createPackages } from '../adapters/packages/index.ts'
import { harnesses, interactives } from '../adapters/programs.ts'
import { createRunner } from '../adapters/runner/index.ts'
import { createTerminal } from '../adapters/tmux/index.ts'
import { capabilities } from '../capabilities/index.ts'
import { isPostgres, whereIs } from '../db/address.ts'
import { createSessionStore } from '../db/mcp-sessions.ts'
import { damaged } from '../db/sqlite.ts'
import { DamagedDatabase } from '../db/sqlite-connection.ts'
import { calledAs } from '../kernel/audit.ts'
import { UsageError } from '../kernel/error.ts'
import type { CallRecord, Feed } from '../kernel/log.ts'
import { redactText } from '../kernel/redact.ts'
import type { Harnesses } from '../ports/harness.ts'
import { createHttp } from '../surfaces/http.ts'
import { createMcpSurface } from '../surfaces/mcp.ts'
import { createServerFactory } from '../surfaces/mcp-server.ts'
import { Metrics } from '../surfaces/metrics.ts'
import { createPages } from '../surfaces/pages.ts'
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
import { lockDatabase, lockHome } from './lock.ts'
import { VERSION } from './version.ts'

export interface RunningDaemon {
  url: string
  home: string
  /** Signs the owner's browser in, once. */
  signInLink(): Promise<string | undefined>
  stop(): Promise<void>
}

const SHUTDOWN_MS = 5_000
/** Hundreds of waits come back in one moment after a restart: beyond the queue the system drops them, and each tries again seconds later. */
const BACKLOG = 4_096

interface Parts {
  harnesses: Harnesses
  /** Where the other files of the build are. */
  build: URL
}

const ownParts = (): Parts => ({ harnesses, build: new URL('./', import.meta.url) })

/** Starts everything, in the order in which it can fail with the clearest message. */
export async function serve(config: Config, { harnesses, build } = ownParts()): Promise<RunningDaemon> {
  const { home } = config
  ensurePrivateFolder(home)
  const lock = lockHome(home, 'start another one')
  const databaseLock = isPostgres(config.database) ? undefined : lockFile(config.database)
  const log = pino(
    { level: config.logLevel, base: undefined, hooks: { streamWrite: redactText } },
    pino.destination({ dest: 2, sync: true }),
  )
  const socketAt = socketPath(home, process.env)
  // Apart from the daemon's own, which agents call: in these one could type into the agents and terminals of others.
  const sockets = join(dirname(socketAt), 'own')
  const listening = promised<string>()
  const metrics = new Metrics(capabilities.flatMap((c) => c.tools.map((tool) => tool.name)))
  const app = await createApp({
    database: config.database,
    ports: {
      git: createGit({
        worktrees: join(home, 'worktrees'),
        own: join(home, 'git'),
        exec: startedBeside(fileURLToPath(new URL('git-starter.js', build))),
      }),
      listeners,
      packages: createPackages({ folder: join(home, 'packages'), privateFolder: ensurePrivateFolder, env: process.env }),
      ownerFile: createOwnerFile(home),
      harnesses,
      interactives,
      notifier: createNotifier(process.env),
      terminal: createTerminal({ sockets, olderSockets: dirname(socketAt), privateFolder: ensurePrivateFolder, env: process.env }),
      runner: createRunner({
        folder: join(home, 'runs'),
        sockets,
        entry: fileURLToPath(new URL('runner.js', build)),
        privateFolder: ensurePrivateFolder,
        env: process.env,
        hidden: { home },
      }),
    },
    hostName: `${hostname()}:${home}`,
    address: listening.promise,
    ownerSecrets: secretsOnDisk(home),
    // What is staged is on disk: should this fail, the next start completes it, and the caller still gets its secret.
    onOwnerRotated: (isCurrent) => adoptStagedToken(home, isCurrent).catch((error) => log.error(String(error))),
    onDefect: (error, call) =>
      log.error(
        { call: call.id, tool: call.tool, err: error instanceof Error ? { message: error.message, stack: error.stack } : String(error) },
        'defect',
      ),
    onCall(call) {
      metrics.record(call)
      logCall(log, call)
    },
  }).catch((error) => Promise.reject(error instanceof DamagedDatabase ? damaged(config.database, error) : error))
  settleOwnerToken(home, app.ownerToken)
  for (const notice of app.engine.notices) log.warn(notice)

  const { kernel, feed } = app
  // Not their data: a letter is private.
  if (log.isLevelEnabled('debug'))
    feed.subscribe((events) => {
      for (const { type, subject, actor } of events) log.debug({ type, subject, actor }, 'event')
    })
  const { ledger } = app.engine
  const onError = (error: Error) => log.debug({ error: error.message }, 'protocol')
  const newServer = createServerFactory({ kernel, feed, version: VERSION, holdMs: config.holdMs })
  const mcp = createMcpSurface({
    newServer,
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
    pages: createPages(fileURLToPath(new URL('ui/', build))),
    allowedHosts: config.allowedHosts,
    holdMs: config.holdMs,
    log: (message, details) => log.error(details, message),
  })
  // It puts its own Request and Response in the place of Node's: those make a web stream of every body, which costs more than the call.
  const server = createServer(getRequestListener(http.fetch, { overrideGlobalObjects: true }))
  // Nothing went wrong with the database: the next start must not take this one for a crash.
  const close = async (error: unknown): Promise<never> => {
    await app.close()
    throw error
  }
  const port = await listen(server, config).catch(close)
  const socket = await listenOnSocket({
    path: socketAt,
    home,
    version: VERSION,
    kernel,
    newServer,
    ensureFolder: ensurePrivateFolder,
    onError,
  }).catch(close)

  const url = `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}`
  writeAddress(home, url, socketAt)
  listening.resolve(url)
  const database = isPostgres(config.database) ? whereIs(config.database) : config.database
  log.info({ version: VERSION, url, home, database }, 'listening')

  return {
    url,
    home,
    async signInLink() {
      const answer = await kernel.invoke({ tool: 'token_link', input: {}, credential: { secret: app.ownerToken }, surface: 'daemon' })
      return answer.ok ? `${url}${(answer.value as { url_path: string }).url_path}` : undefined
    },
    async stop() {
      log.info('stopping')
      const deadline = setTimeout(() => process.exit(1), SHUTDOWN_MS)
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeIdleConnections()
      // Waits answer with their cursor, so that clients resume; only then are the connections taken away.
      feed.interrupt()
      await answered(feed)
      streams.close()
      await socket.close()
      await mcp.close()
      setTimeout(() => server.closeAllConnections(), 1_000).unref()
      await closed
      await app.close()
      databaseLock?.release()
      lock.release()
      clearTimeout(deadline)
      log.info('stopped')
    },
  }
}

/** Neither what was given nor what was answered: that is in the audit, for those who may read it. */
function logCall(log: Logger, call: CallRecord): void {
  if (!log.isLevelEnabled('debug')) return
  const { id, principal, surface, outcome, code, duration_ms: ms } = call
  log.debug({ call: id, tool: calledAs(call).name, principal, surface, outcome, code, ms }, 'call')
}

function promised<T>(): { promise: Promise<T>; resolve(value: T): void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

/** One daemon to a file; a server keeps its own order among several. */
function lockFile(path: string) {
  refuseLink(path)
  return lockDatabase(path)
}

/** Every wait has ended, and its answer has had its turn to be written. */
async function answered(feed: Feed): Promise<void> {
  while (feed.waiters > 0) await nextTurn()
  await nextTurn()
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
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
    server.listen({ port: config.port, host: config.host, backlog: BACKLOG }, () => resolve((server.address() as { port: number }).port))
  })
}
