import { UsageError } from './kernel/error.ts'

const HELP = `Signalbox coordinates coding agents on shared repositories.

Usage:
  signalbox serve                 start the daemon
  signalbox mcp [--admin]         MCP on stdin/stdout, for an agent's configuration
  signalbox <noun> <verb> […]     call a tool: signalbox task create --title "Fix login"
  signalbox tools                 list what you may call
  signalbox events                follow what happens, one line an event
  signalbox db backup|restore|check|copy
  signalbox audit tail|verify|export
  signalbox <noun> <verb> --help  the flags of a tool
  signalbox --version

Environment: SIGNALBOX_HOME (~/.signalbox), SIGNALBOX_PORT (3001), SIGNALBOX_HOST, SIGNALBOX_TOKEN,
SIGNALBOX_DATABASE_URL, SIGNALBOX_ALLOWED_HOSTS, SIGNALBOX_LOG_LEVEL.`

/** Each verb loads only what it needs: the stdio pipe must not pay for the daemon. */
async function main(args: string[]): Promise<void> {
  const [verb, ...rest] = args
  switch (verb) {
    case undefined:
    case 'help':
    case '--help':
    case '-h':
      return void process.stdout.write(`${HELP}\n`)
    case '--version':
    case '-v':
      return void process.stdout.write(`${(await import('./daemon/version.ts')).VERSION}\n`)
    case 'serve':
      return (await import('./daemon/serve-command.ts')).serveCommand(rest)
    case 'mcp':
      return (await import('./daemon/mcp-command.ts')).mcpCommand(rest)
    case 'db':
      return (await import('./daemon/db-command.ts')).dbCommand(rest)
    case 'audit':
      return (await import('./daemon/audit-command.ts')).auditCommand(rest)
    default:
      return (await import('./daemon/cli-command.ts')).cliCommand(args)
  }
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  const known = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')
  process.stderr.write(`signalbox: ${known ? (error as Error).message : ((error as Error).stack ?? String(error))}\n`)
  process.exit(known ? 2 : 70)
}
