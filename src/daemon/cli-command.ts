import { UsageError } from '../kernel/error.ts'
import { type Reach, toolCommand } from '../surfaces/cli.ts'
import { loadConfig } from './config.ts'
import { ownerTokenPath, readAddress, readSecret } from './home.ts'
import { isServed } from './lock.ts'
import { VERSION } from './version.ts'

export const reach: Reach = { version: VERSION, daemon }

export function cliCommand(args: string[]): Promise<void> {
  return toolCommand(args, reach)
}

/** A port that was named wins; else the daemon of this state folder has written where it is. */
function daemon(): { url: string; token: string | undefined } {
  const config = loadConfig(process.env)
  const named = process.env.SIGNALBOX_PORT || process.env.MCP_SERVER_PORT
  const url = (!named && readAddress(config.home)?.url) || `http://${config.host}:${config.port}`
  const token = process.env.SIGNALBOX_TOKEN || ownerToken(config.home)
  return { url, token }
}

function ownerToken(home: string): string | undefined {
  const token = readSecret(ownerTokenPath(home))
  if (!token) throw new UsageError(`There is no token in ${ownerTokenPath(home)} yet. Start the daemon once with: signalbox serve`)
  return isServed(home) ? token : undefined
}
