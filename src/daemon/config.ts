import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { isPostgres } from '../db/address.ts'
import { UsageError } from '../kernel/error.ts'

export interface Config {
  home: string
  host: string
  port: number
  /** The path of a SQLite file, or a postgres:// address. */
  database: string
  /** Hostnames, besides the loopback ones, under which clients may reach the daemon. */
  allowedHosts: string[]
  logLevel: string
  /** Longest time that a silent call is held; undefined leaves the surfaces' own limits. */
  holdMs: number | undefined
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost'])

export function defaultHome(): string {
  return join(homedir(), '.signalbox')
}

type Env = Record<string, string | undefined>

export function loadConfig(env: Env): Config {
  const home = resolve(env.SIGNALBOX_HOME || defaultHome())
  const host = env.SIGNALBOX_HOST || '127.0.0.1'
  const allowedHosts = (env.SIGNALBOX_ALLOWED_HOSTS ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter(Boolean)
  if (!LOOPBACK.has(host) && !allowedHosts.length) {
    throw new UsageError(
      `SIGNALBOX_HOST=${host} would let other machines in. Signalbox starts there only when you say under which names they reach it: ` +
        `set SIGNALBOX_ALLOWED_HOSTS=my-machine.example (comma separated), and put TLS in front. Every request still needs a token. ` +
        `For this machine only, leave SIGNALBOX_HOST unset.`,
    )
  }
  return {
    home,
    host,
    port: portOf(env),
    database: databaseOf(env, home),
    allowedHosts,
    logLevel: levelOf(env),
    holdMs: holdMs(env),
  }
}

function portOf(env: Env): number {
  const [name, text] = env.SIGNALBOX_PORT ? ['SIGNALBOX_PORT', env.SIGNALBOX_PORT] : ['MCP_SERVER_PORT', env.MCP_SERVER_PORT || '3001']
  const port = Number(text)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UsageError(`${name}=${text} is not a port; use a number from 0 to 65535.`)
  return port
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

function levelOf(env: Env): string {
  const [name, text] = env.SIGNALBOX_LOG_LEVEL
    ? ['SIGNALBOX_LOG_LEVEL', env.SIGNALBOX_LOG_LEVEL]
    : ['MCP_LOG_LEVEL', env.MCP_LOG_LEVEL || 'info']
  const level = text.toLowerCase()
  if (!LEVELS.includes(level))
    throw new UsageError(`${name}=${text} is not a level; use ${LEVELS.slice(0, -1).join(', ')} or ${LEVELS.at(-1)}.`)
  return level
}

function databaseOf(env: Env, home: string): string {
  const url = env.SIGNALBOX_DATABASE_URL
  if (url) {
    if (isPostgres(url) && URL.canParse(url)) return url
    const path = /^(?:sqlite|file):(?:\/\/)?(\/.*)$/.exec(url)?.[1]
    if (!path)
      throw new UsageError(
        'SIGNALBOX_DATABASE_URL is not understood; use sqlite:/path/to/file.db, postgres://user@host/database or, for a socket, ' +
          'postgres://user@localhost/database?host=/folder. Special characters in a password are percent-encoded, or it goes into PGPASSWORD.',
      )
    return resolve(path)
  }
  return env.MCP_DATABASE_PATH ? resolve(env.MCP_DATABASE_PATH) : join(home, 'signalbox.db')
}

function holdMs(env: Env): number | undefined {
  if (!env.MCP_TOOL_TIMEOUT) return undefined
  const ms = Number(env.MCP_TOOL_TIMEOUT)
  if (!Number.isFinite(ms) || ms <= 0) throw new UsageError(`MCP_TOOL_TIMEOUT=${env.MCP_TOOL_TIMEOUT} is not a number of milliseconds.`)
  return ms
}
