import { UsageError } from '../kernel/error.ts'
import type { Daemon, Reach, Withheld } from '../surfaces/cli/call.ts'
import { runCli } from '../surfaces/cli/index.ts'
import type { Terminal } from '../surfaces/cli/terminal.ts'
import { loadWidths } from '../surfaces/cli/text.ts'
import { loadConfig } from './config.ts'
import { atOdds, isSamePlace, leadsElsewhere, tokenOf, urlOf } from './given.ts'
import { ownerTokenPath, readAddress, readSecret, secretsOnDisk } from './home.ts'
import { isServed } from './lock.ts'
import { VERSION } from './version.ts'

export type Env = Record<string, string | undefined>

/** Everything that is said to a running daemon. Returns the exit code. */
export async function command(args: string[], env: Env, terminal: Terminal): Promise<number> {
  const [first = '--help', ...rest] = args
  const context = { reach: reachFrom(env), terminal, env }
  if (terminal.tty.out || terminal.tty.err || terminal.colours) await loadWidths()
  if (['--help', '-h'].includes(first)) return runCli(['help'], context.reach, terminal)
  if (first === 'audit' && rest.length) return (await import('./audit-command.ts')).auditCommand(rest, context)
  if (first === 'status') return (await import('./status-command.ts')).statusCommand(rest, context)
  if (first === 'open') return (await import('./open-command.ts')).openCommand(rest, context)
  if (first === 'attach') return (await import('./attach-command.ts')).attachCommand(rest, context)
  return runCli(args, context.reach, terminal)
}

export function reachFrom(env: Env): Reach {
  return { version: VERSION, daemon: () => daemonOf(env) }
}

/** The URL of the environment wins, then a port that was named; else the daemon of this state folder has written where it is. */
function daemonOf(env: Env): Daemon {
  const config = loadConfig(env)
  const ofEnvironment = urlOf(env)
  if (ofEnvironment) return daemonOfEnvironment(ofEnvironment, config.home, env)
  const named = portNamedBy(env)
  const written = readAddress(config.home)?.url
  const fallback = addressOf(config.host, config.port || 3001)
  const url = written && (!named || isSamePlace(written, fallback)) ? written : fallback
  const why = whyThere(config.home, url, named, written)
  if (env.SIGNALBOX_TOKEN) return { url, token: env.SIGNALBOX_TOKEN, why }
  const token = ownerToken(config.home)
  if (url === written) return { url, token, why, others: () => secretsOnDisk(config.home).filter((secret) => secret !== token) }
  return { url, token: undefined, why, withheld: token ? withheld(config.home, url, named, written) : undefined }
}

/** An agent's token is for the daemon that gave it: wherever else the same environment points, it is not sent. */
function daemonOfEnvironment(url: string, home: string, env: Env): Daemon {
  const why = 'named by SIGNALBOX_URL'
  const other = elsewhere(url, env)
  const token = tokenOf(env) ?? (leadsElsewhere(url, home) ? undefined : ownerToken(home))
  if (token && !other) return { url, token, why }
  const withheld = other ?? {
    message: `SIGNALBOX_URL names ${url}, and there is no token for it.`,
    hint: 'Set SIGNALBOX_TOKEN to a token of that daemon, or unset SIGNALBOX_URL.',
  }
  return { url, token: undefined, why, withheld }
}

function elsewhere(url: string, env: Env): Withheld | undefined {
  const port = portNamedBy(env)
  const { host } = loadConfig(env)
  if (port && !isSamePlace(url, addressOf(host, Number(env[port])))) return atOdds(url, `${port}=${env[port]}`)
  return env.SIGNALBOX_HOME ? leadsElsewhere(url, env.SIGNALBOX_HOME) : undefined
}

function portNamedBy(env: Env): string | undefined {
  const name = env.SIGNALBOX_PORT ? 'SIGNALBOX_PORT' : 'MCP_SERVER_PORT'
  return Number(env[name]) > 0 ? name : undefined
}

function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** The owner's token is for the daemon of its state folder: whoever listens elsewhere must not learn it. */
function withheld(home: string, url: string, named: string | undefined, written: string | undefined): Withheld {
  const where = written ? `is at ${written}` : 'has not said yet where it is'
  const go = named && written ? `Unset ${named} to go there` : 'Wait until it has started'
  return {
    message: `The daemon of ${home} ${where}, so its owner's token was not sent to ${url}${named ? ` (named by ${named})` : ''}.`,
    hint: `${go}. For another Signalbox at ${url}, set SIGNALBOX_TOKEN to a token of that one.`,
  }
}

function whyThere(home: string, url: string, named: string | undefined, written: string | undefined): string {
  if (!named) return written ? `where the daemon of ${home} was last` : `the default; no daemon of ${home} has said where it is`
  const elsewhere = written && written !== url ? `; the daemon of ${home} was last at ${written}: unset ${named} to go there` : ''
  return `named by ${named}${elsewhere}`
}

function ownerToken(home: string): string | undefined {
  const token = readSecret(ownerTokenPath(home))
  if (!token) throw new UsageError(`There is no token in ${ownerTokenPath(home)} yet. Start the daemon once with: signalbox serve`)
  return isServed(home) ? token : undefined
}
