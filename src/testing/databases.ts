import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { capabilities } from '../capabilities/index.ts'
import { openEngine } from '../db/open.ts'

let template: Promise<Buffer> | undefined

/** A SQLite file that is already set up: its migrations take longer than most tests. */
export async function migratedFile(path: string): Promise<void> {
  template ??= migrated()
  writeFileSync(path, await template, { mode: 0o600 })
}

async function migrated(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-template-'))
  const path = join(folder, 'signalbox.db')
  const own = capabilities.map(({ name, migrations = [], values }) => ({ owner: name, migrations, values }))
  await (await openEngine(path, own)).close()
  const content = readFileSync(path)
  rmSync(folder, { recursive: true })
  return content
}

/** A PostgreSQL of our own: Debian's binaries, not as root, reachable only through a socket in a temporary folder. */
export interface Cluster {
  folder: string
  url(database: string): string
  /** `immediate` is as if it had crashed. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  start(): Promise<void>
  remove(): Promise<void>
}

/** Durable as in real life, or quick for tests that do not look at that. */
export async function startCluster(options: { durable?: boolean } = {}): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'sbpg-'))
  const data = join(folder, 'data')
  const as = unprivileged()
  if (as) chownSync(folder, as.uid, as.gid)
  chmodSync(folder, 0o755)
  const run = (tool: string, args: string[]) => command(join(binaries(), tool), args, { cwd: folder, ...as })
  await run('initdb', ['-D', data, '-U', 'signalbox', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'])
  const settings = [
    'listen_addresses=',
    `unix_socket_directories=${folder}`,
    'max_connections=200',
    'timezone=UTC',
    // Its own transactions would hold back the events of a test for a moment.
    ...(options.durable ? [] : ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_wal_size=256MB', 'autovacuum=off']),
  ]
  const flags = settings.flatMap((setting) => ['-c', setting]).join(' ')
  const cluster: Cluster = {
    folder,
    url: (database) => urlOf(folder, database),
    start: () => run('pg_ctl', ['-D', data, '-w', '-l', join(folder, 'log'), '-o', flags, 'start']),
    stop: (mode = 'fast') => run('pg_ctl', ['-D', data, '-m', mode, '-w', 'stop']),
    async remove() {
      await cluster.stop('immediate').catch(() => {})
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
    },
  }
  await cluster.start()
  return cluster
}

async function command(path: string, args: string[], options: { cwd: string; uid?: number; gid?: number }): Promise<void> {
  // Not a pipe: the server inherits it and would keep it open.
  const child = spawn(path, args, { ...options, stdio: 'ignore' })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${path} ${args.join(' ')} ended with ${code}`)
}

export const TEMPLATE = 'signalbox_template'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the server's socket; only the project that runs on PostgreSQL has it. */
    postgres: string
  }
}

function urlOf(folder: string, database: string): string {
  return `postgres://signalbox@localhost/${database}?host=${encodeURIComponent(folder)}`
}

/**
 * Fresh copies of the template, for one test each. The next one is made while a test works on the one before, and what a test leaves is
 * dropped while the next one runs.
 */
export class Clones {
  readonly #folder: string
  readonly #admin: Promise<pg.Client>
  #next: Promise<string>
  #made = 0

  constructor(folder: string) {
    this.#folder = folder
    this.#admin = connected(urlOf(folder, 'postgres'))
    this.#next = this.#make()
  }

  take(): Promise<string> {
    const taken = this.#next
    this.#next = this.#make()
    this.#next.catch(() => {})
    return taken
  }

  /** One statement after the other, on one connection: behind the clone that is being made. */
  drop(url: string): void {
    const name = new URL(url).pathname.slice(1)
    void this.#admin.then((admin) => admin.query(`DROP DATABASE "${name}" WITH (FORCE)`)).catch(() => {})
  }

  async #make(): Promise<string> {
    const name = `clone_${process.pid}_${++this.#made}`
    await (await this.#admin).query(`CREATE DATABASE "${name}" TEMPLATE "${TEMPLATE}" STRATEGY FILE_COPY`)
    // Each new connection costs the server 8 ms of processor time, and most tests ask one thing at a time.
    return `${urlOf(this.#folder, name)}&connection_limit=8`
  }
}

/** Of the process; nothing waits for its end. */
async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  ;(client as unknown as { connection: { stream: Socket } }).connection.stream.unref()
  return client
}

/** A fresh copy of a template, or an empty one. */
export async function createDatabase(folder: string, name: string, template = 'template0'): Promise<string> {
  await administer(urlOf(folder, 'postgres'), `CREATE DATABASE "${name}" TEMPLATE "${template}"`)
  return urlOf(folder, name)
}

export function dropDatabase(folder: string, name: string): Promise<void> {
  return administer(urlOf(folder, 'postgres'), `DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`)
}

export async function administer(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(sql).finally(() => client.end())
}

/** Debian keeps the server's programs out of the PATH, one folder per version. */
function binaries(): string {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql').sort((a, b) => Number(b) - Number(a)) : []
  const found = versions.map((version) => `/usr/lib/postgresql/${version}/bin`).find((folder) => existsSync(join(folder, 'initdb')))
  if (found) return found
  const onPath = (process.env.PATH ?? '').split(':').find((folder) => existsSync(join(folder, 'initdb')))
  if (onPath) return onPath
  throw new Error('PostgreSQL is not installed. Debian: apt-get install postgresql; macOS: brew install postgresql')
}

/** The server refuses to run as root. */
function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** As a person would move it: the whole database as one text, read by the other server. */
export function copyDatabase(from: string, to: string, name: string): void {
  loadDatabase(to, name, dumpDatabase(from, name))
}

export function dumpDatabase(folder: string, name: string): string {
  const text = execFileSync(join(binaries(), 'pg_dump'), ['-h', folder, '-U', 'signalbox', name], {
    ...unprivileged(),
    cwd: '/',
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  // A psql that is a few months older does not know this word, and would stop at it.
  return text.replace(/^\\(un)?restrict .*\n/gm, '')
}

export function loadDatabase(folder: string, name: string, text: string): void {
  execFileSync(join(binaries(), 'psql'), ['-h', folder, '-U', 'signalbox', '-q', '-v', 'ON_ERROR_STOP=1', name], {
    ...unprivileged(),
    cwd: '/',
    input: text,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
}

/** Stands between a client and the server, and cuts connections: all of them, or the next one that commits. */
export class CuttingProxy {
  readonly folder = mkdtempSync(join(tmpdir(), 'sbpx-'))
  readonly #server: Server
  readonly #open = new Set<Socket>()
  /** `before` the server hears of the commit, or `behind` it, so that nobody hears the server's answer. */
  cutAtCommit: 'before' | 'behind' | undefined
  /** What happens at the next commit instead of it; the server never hears of that one. */
  insteadOfCommit: (() => Promise<void>) | undefined
  /** New connections wait for it. */
  gate: Promise<void> | undefined
  cuts = 0

  private constructor(serverFolder: string) {
    this.#server = createServer(async (client) => {
      client.on('error', () => {})
      await this.gate
      this.#join(client, connect(join(serverFolder, SOCKET)))
    })
  }

  static async start(serverFolder: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(serverFolder)
    proxy.#server.listen(join(proxy.folder, SOCKET))
    await once(proxy.#server, 'listening')
    return proxy
  }

  cutAll(): void {
    for (const socket of this.#open) socket.destroy()
  }

  close(): void {
    this.cutAll()
    this.#server.close()
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 })
  }

  #join(client: Socket, server: Socket): void {
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#open.delete(socket)
        other.destroy()
      })
    }
    server.pipe(client)
    client.on('data', (bytes) => {
      const cut = this.cutAtCommit && bytes.includes('COMMIT\0') ? this.cutAtCommit : undefined
      if (cut === 'before') return this.#cut(client)
      if (this.insteadOfCommit && bytes.includes('COMMIT\0')) {
        this.gate = this.insteadOfCommit()
        this.insteadOfCommit = undefined
        return
      }
      if (cut === 'behind') {
        server.unpipe(client)
        // The answer shows that the server is through with it.
        server.once('data', () => this.#cut(client)).resume()
      }
      server.write(bytes)
    })
  }

  #cut(client: Socket): void {
    this.cuts++
    this.cutAtCommit = undefined
    client.destroy()
  }
}

const SOCKET = '.s.PGSQL.5432'
