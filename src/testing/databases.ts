import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'

/** A PostgreSQL of our own: Debian's binaries, not as root, reachable only through a socket in a temporary folder. */
export interface Cluster {
  folder: string
  url(database: string): string
  stop(mode?: 'fast' | 'immediate'): void
  start(): void
  remove(): void
}

export function startCluster(options: { durable?: boolean } = {}): Cluster {
  const folder = mkdtempSync(join(tmpdir(), 'sbpg-'))
  const data = join(folder, 'data')
  const as = unprivileged()
  if (as) chownSync(folder, as.uid, as.gid)
  chmodSync(folder, 0o755)
  const run = (tool: string, args: string[]) => execFileSync(join(binaries(), tool), args, { stdio: 'pipe', cwd: folder, ...as })
  run('initdb', ['-D', data, '-U', 'signalbox', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'])
  const settings = [
    'listen_addresses=',
    `unix_socket_directories=${folder}`,
    'max_connections=200',
    'timezone=UTC',
    ...(options.durable ? [] : ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']),
  ]
  const flags = settings.flatMap((setting) => ['-c', setting]).join(' ')
  const cluster: Cluster = {
    folder,
    url: (database) => urlOf(folder, database),
    start: () => void run('pg_ctl', ['-D', data, '-w', '-l', join(folder, 'log'), '-o', flags, 'start']),
    stop: (mode = 'fast') =>
      void spawnSync(join(binaries(), 'pg_ctl'), ['-D', data, '-m', mode, '-w', 'stop'], { stdio: 'pipe', cwd: folder, ...as }),
    remove() {
      cluster.stop('immediate')
      rmSync(folder, { recursive: true, force: true })
    },
  }
  cluster.start()
  return cluster
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
