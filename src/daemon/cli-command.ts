import { UsageError } from '../kernel/error.ts'
import type { Daemon, Reach } from '../surfaces/cli/call.ts'
import { runCli } from '../surfaces/cli/index.ts'
import type { Terminal } from '../surfaces/cli/terminal.ts'
import { loadConfig } from './config.ts'
import { ownerTokenPath, readAddress, readSecret } from './home.ts'
import { isServed } from './lock.ts'
import { VERSION } from './version.ts'

export type Env = Record<string, string | undefined>

/** Everything that is said to a running daemon. Returns the exit code. */
export async function command(args: string[], env: Env, terminal: Terminal): Promise<number> {
  const [first = '--help', ...rest] = args
  const context = { reach: reachFrom(env), terminal, env }
  if (['--help', '-h'].includes(first)) return runCli(['help'], context.reach, terminal)
  if (first === 'audit' && rest.length) return (await import('./audit-command.ts')).auditCommand(rest, context)
  if (first === 'status') return (await import('./status-command.ts')).statusCommand(rest, context)
  if (first === 'open') return (await import('./open-command.ts')).openCommand(rest, context)
  return runCli(args, context.reach, terminal)
}

export function reachFrom(env: Env): Reach {
  return { version: VERSION, daemon: () => daemonOf(env) }
}

/** A port that was named wins; else the daemon of this state folder has written where it is. */
function daemonOf(env: Env): Daemon {
  const config = loadConfig(env)
  const named = (['SIGNALBOX_PORT', 'MCP_SERVER_PORT'] as const).find((name) => Number(env[name]) > 0)
  const written = readAddress(config.home)?.url
  const fallback = `http://${config.host}:${config.port || 3001}`
  const url = named ? fallback : (written ?? fallback)
  return { url, token: env.SIGNALBOX_TOKEN || ownerToken(config.home), why: why(config.home, url, named, written) }
}

function why(home: string, url: string, named: string | undefined, written: string | undefined): string {
  if (!named) return written ? `where the daemon of ${home} was last` : `the default; no daemon of ${home} has said where it is`
  const elsewhere = written && written !== url ? `; the daemon of ${home} was last at ${written}: unset ${named} to go there` : ''
  return `named by ${named}${elsewhere}`
}

function ownerToken(home: string): string | undefined {
  const token = readSecret(ownerTokenPath(home))
  if (!token) throw new UsageError(`There is no token in ${ownerTokenPath(home)} yet. Start the daemon once with: signalbox serve`)
  return isServed(home) ? token : undefined
}
