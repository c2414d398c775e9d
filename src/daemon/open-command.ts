import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'
import { Refusal, UsageError } from '../kernel/error.ts'
import { call, type Reach } from '../surfaces/cli/call.ts'
import { answering } from '../surfaces/cli/index.ts'
import type { Terminal } from '../surfaces/cli/terminal.ts'
import type { Env } from './cli-command.ts'

const HELP = `signalbox open: open the dashboard, signed in as you. The link works once and only for a short time.

  --print    only print the link; on a machine shared with others, since they can see the arguments of a browser that starts
  --json     print JSON
`

/** The answer of `token_link`. */
interface Link {
  url_path: string
  expires_at: string
}

export async function openCommand(
  args: string[],
  { reach, terminal, env }: { reach: Reach; terminal: Terminal; env: Env },
): Promise<number> {
  const options = { print: { type: 'boolean' }, json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const
  const { print, json = false, help } = parseArgs({ args, options }).values
  if (help) {
    terminal.out(HELP)
    return 0
  }
  return answering(json, terminal, async () => {
    const link = (await call(reach, 'token_link', {}).catch(withoutDashboard)) as unknown as Link
    const url = new URL(link.url_path, reach.daemon().url).href
    terminal.out(json ? `${JSON.stringify({ url, expires_at: link.expires_at }, null, 2)}\n` : `${url}\n`)
    const opened = !print && !json && terminal.tty.out && (await launch(url, env))
    if (terminal.tty.err && !json)
      terminal.err(opened ? 'Opened in your browser. The link works once.\n' : 'Open it in a browser. The link works once.\n')
    return 0
  })
}

function withoutDashboard(error: unknown): never {
  if (error instanceof Refusal && error.body.code === 'TOOL_NOT_FOUND')
    throw new UsageError('The daemon that runs has no dashboard; it is of another version than this command. Restart it: signalbox serve')
  throw error
}

/** Whether there is a screen and a program to open it on. It goes on by itself: what the browser does is no concern of this command. */
async function launch(url: string, env: Env): Promise<boolean> {
  const [command, ...args] = browser(env)
  if (!command) return false
  const child = spawn(command, [...args, url], { detached: true, stdio: 'ignore', env })
  child.unref()
  return new Promise((resolve) => {
    child.once('spawn', () => resolve(true))
    child.on('error', () => resolve(false))
  })
}

function browser(env: Env): string[] {
  if (process.platform === 'darwin') return ['open']
  if (process.platform === 'win32') return ['cmd', '/c', 'start', '']
  return env.DISPLAY || env.WAYLAND_DISPLAY ? ['xdg-open'] : []
}
