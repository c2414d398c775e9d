import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { UsageError } from '../kernel/error.ts'
import { Shim } from '../surfaces/shim.ts'
import { loadConfig } from './config.ts'
import { leadsElsewhere, tokenOf, urlOf } from './given.ts'
import { ensurePrivateFolder, ownerTokenPath, readSecret, socketToTrust } from './home.ts'

export const MCP_HELP = `signalbox mcp: speak MCP on stdin and stdout, for clients that start their servers.

  --admin            ask for the admin lane (create and manage; default: read, notes, waits)
  --home FOLDER      the state folder, instead of SIGNALBOX_HOME
  --dialect NAME     speak with the names of one of the documented systems
  --toolsets A,B     list only the tools of these capabilities
  --no-start         do not start the daemon when none is running

The identity is SIGNALBOX_TOKEN, else what SIGNALBOX_TOKEN_FILE holds, else the owner's token in $SIGNALBOX_HOME.`

export async function mcpCommand(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      admin: { type: 'boolean' },
      home: { type: 'string' },
      dialect: { type: 'string' },
      toolsets: { type: 'string' },
      'no-start': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return void process.stdout.write(`${MCP_HELP}\n`)
  if (values.home) process.env.SIGNALBOX_HOME = values.home
  const { home } = loadConfig(process.env)
  // A daemon that was started inside a run would belong to its tree, and end with it. The one that it belongs to comes back.
  const inRun = process.env.SIGNALBOX_RUN !== undefined
  const mayStart = !values['no-start'] && !inRun
  const shim = new Shim({
    input: process.stdin,
    output: process.stdout,
    socketPath: () => socketToTrust(home, process.env),
    hello: () => ({
      signalbox: 1,
      home,
      token: token(home),
      lane: values.admin ? 'admin' : 'default',
      dialect: values.dialect,
      toolsets: values.toolsets?.split(','),
    }),
    startDaemon: mayStart ? () => startDaemon(home) : undefined,
    lastWords: () => lastWords(home),
    waits: inRun,
    log: (message) => process.stderr.write(`signalbox mcp: ${message}\n`),
  })
  await shim.run()
  process.exit(0)
}

function token(home: string): string {
  const given = tokenOf(process.env)
  const url = urlOf(process.env)
  const elsewhere = given && url ? leadsElsewhere(url, home) : undefined
  if (elsewhere) throw new UsageError(`${elsewhere.message} ${elsewhere.hint}`)
  const found = given ?? readSecret(ownerTokenPath(home))
  if (!found)
    throw new UsageError(`There is no token: set SIGNALBOX_TOKEN, or start the daemon once so that it writes ${ownerTokenPath(home)}.`)
  return found
}

/** A process of its own that outlives this client; what it says goes to a file beside the database. */
function startDaemon(home: string): void {
  ensurePrivateFolder(home)
  const log = openSync(logPath(home), 'a', 0o600)
  const { SIGNALBOX_TOKEN: _, SIGNALBOX_TOKEN_FILE: __, ...env } = process.env
  const child = spawn(process.execPath, [process.argv[1] as string, 'serve'], {
    detached: true,
    stdio: ['ignore', log, log],
    env,
    cwd: home,
  })
  child.unref()
  closeSync(log)
}

const logPath = (home: string) => join(home, 'daemon.log')

function lastWords(home: string): string | undefined {
  const path = logPath(home)
  const last = existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n').at(-1) : undefined
  return last ? `It said last: ${last} (${path})` : undefined
}
