import { UsageError } from './kernel/error.ts'

/** Each verb loads only what it needs: the stdio pipe must not pay for the daemon. */
async function main(args: string[]): Promise<void> {
  const [verb, ...rest] = args
  if (verb === 'help' && rest.length) return main([...rest, '--help'])
  switch (verb) {
    case '--version':
    case '-v':
      return void process.stdout.write(`${(await import('./daemon/version.ts')).VERSION}\n`)
    case 'serve':
      return (await import('./daemon/serve-command.ts')).serveCommand(rest)
    case 'mcp':
      return (await import('./daemon/mcp-command.ts')).mcpCommand(rest)
    case 'db':
      return (await import('./daemon/db-command.ts')).dbCommand(rest)
    default: {
      const { command } = await import('./daemon/cli-command.ts')
      const { processTerminal } = await import('./surfaces/cli/terminal.ts')
      process.exitCode = await command(args, process.env, processTerminal())
    }
  }
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  const known = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')
  process.stderr.write(`signalbox: ${known ? (error as Error).message : ((error as Error).stack ?? String(error))}\n`)
  process.exit(known ? 2 : 70)
}
