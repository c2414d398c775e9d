import { parseArgs } from 'node:util'
import { isPostgres, whereIs } from '../db/address.ts'
import { translated } from '../db/sqlite-connection.ts'
import { Refusal, UsageError } from '../kernel/error.ts'
import { type Config, defaultHome, loadConfig } from './config.ts'
import { ownerTokenPath } from './home.ts'
import { serve } from './serve.ts'
import { VERSION } from './version.ts'

const HELP = `signalbox serve: start the daemon and keep running.

  --port N    instead of SIGNALBOX_PORT (3001)
  --quiet     print only the address`

export async function serveCommand(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { port: { type: 'string' }, quiet: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help) return void process.stdout.write(`${HELP}\n`)
  const config = loadConfig({ ...process.env, ...(values.port ? { SIGNALBOX_PORT: values.port } : {}) })
  const daemon = await serve(config).catch((error) => Promise.reject(unwritable(error, config.home)))
  process.stdout.write(values.quiet ? `${daemon.url}\n` : greeting(daemon.url, config, await daemon.signInLink()))

  let stopping = false
  const stop = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1)
    stopping = true
    process.stderr.write(`signalbox: ${signal}, finishing what was accepted…\n`)
    void daemon.stop().then(() => process.exit(0))
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  process.on('SIGHUP', () => {})
}

const DISK_SAYS_NO = ['EROFS', 'ENOSPC', 'EDQUOT', 'EACCES', 'EPERM']

/** A disk that is full, read-only or not ours to write on is the reader's to mend: a stack does not help there. */
function unwritable(error: NodeJS.ErrnoException, home: string): Error {
  const refused = translated(error)
  const why = refused instanceof Refusal ? refused.body.message : DISK_SAYS_NO.includes(error.code ?? '') ? `${error.message}.` : undefined
  return why
    ? new UsageError(`Signalbox cannot start on ${home}. ${why} Free some space there, or make it writable, and start again.`)
    : error
}

function greeting(url: string, { home, database }: Config, link: string | undefined): string {
  const where = home === defaultHome() ? '' : ` --home ${quote(home)}`
  const shim = `${quote(process.execPath)} ${quote(process.argv[1] as string)} mcp${where}`
  return `
Signalbox ${VERSION} is running at ${url}
${isPostgres(database) ? `State: ${home}, database: PostgreSQL, ${whereIs(database)}` : `State and database: ${home}`}

Open the dashboard (this link signs one browser in, once; \`signalbox open\` makes another):

  ${link ?? url}

Connect an agent by pasting one line into a terminal:

  Claude Code   claude mcp add signalbox -- ${shim} --admin
  Codex         codex mcp add signalbox -- ${shim} --admin
  Gemini CLI    gemini mcp add signalbox ${shim} --admin
  over HTTP     claude mcp add --transport http signalbox ${url}/mcp --header "Authorization: Bearer $(cat ${quote(ownerTokenPath(home))})"

Leave --admin out to let it read, note and wait, but not create or manage.

Try it:  signalbox project create --name "My project"
         signalbox task create --title "First task"
         signalbox events

`
}

function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
