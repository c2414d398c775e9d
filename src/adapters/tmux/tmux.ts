import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Named } from '../../ports/terminal.ts'

const ANSWERS_WITHIN_MS = 10_000
const MOST_OUTPUT = 32_000_000
const MAX_SOCKET_PATH = 100
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/
/** The one that the program runs in, whatever else a person opens beside it: the first of its server. */
export const PANE = '%0'
/** Older ones have no flags for control clients. */
const LEAST = [3, 2] as const
const INSTALL = process.platform === 'darwin' ? 'brew install tmux' : 'sudo apt-get install tmux'

export type Probed = { found: true; version: string } | { found: false; why: string; install: string }

export interface Answer {
  ok: boolean
  out: string
  error: string
}

interface How {
  env?: Record<string, string | undefined>
  cwd?: string
  input?: string
}

/** One server, by its socket. No shell reads what it is told. */
export class Tmux {
  readonly socket: string
  readonly #env: Record<string, string | undefined>

  constructor(socket: string, env: Record<string, string | undefined>) {
    this.socket = socket
    this.#env = clientEnvironment(env)
  }

  /** Never the person's own configuration, nor their default server. UTF-8 whatever the daemon's locale is: anything else would come as `_`. */
  argv(...command: string[]): string[] {
    return ['-u', '-S', this.socket, '-f', '/dev/null', ...command]
  }

  ask(command: string[], { env = this.#env, cwd = '/', input }: How = {}): Promise<Answer> {
    const options = { env, cwd, timeout: ANSWERS_WITHIN_MS, maxBuffer: MOST_OUTPUT, killSignal: 'SIGKILL' as const }
    return new Promise((resolve, reject) => {
      const child = execFile('tmux', this.argv(...command), options, (error, out, err) => {
        if (error && (error.killed || typeof error.code !== 'number')) reject(new Error(`tmux did not answer: ${error.message}`))
        else resolve({ ok: error === null, out, error: err.trim() })
      })
      // One that ended before it read all has said why.
      child.stdin?.on('error', () => {})
      child.stdin?.end(input ?? '')
    })
  }

  async do(command: string[], how: How = {}): Promise<string> {
    const { ok, out, error } = await this.ask(command, how)
    if (!ok) throw new Error(`tmux ${command[0]}: ${error || 'failed without a word'}`)
    return out
  }
}

/** Nothing of ours, and not the terminal that the daemon was started in. */
export function clientEnvironment({ PATH, HOME, LANG }: Record<string, string | undefined>): Record<string, string | undefined> {
  return { PATH, HOME, LANG }
}

/** The same for the same session, so that a daemon that comes later finds it. */
export function socketOf(folder: string, { id, name }: Named): string {
  if (!NAME.test(name)) throw new Error(`${JSON.stringify(name)} cannot be the name of a terminal.`)
  const path = join(folder, `${createHash('sha256').update(id).digest('hex').slice(0, 16)}.tmux`)
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH)
    throw new Error(`The socket path ${path} is longer than ${MAX_SOCKET_PATH} bytes. Set XDG_RUNTIME_DIR to a shorter folder.`)
  return path
}

/** At the end of an argument tmux would take it for the end of a command. */
export function literal(argument: string): string {
  return argument.endsWith(';') ? `${argument.slice(0, -1)}\\;` : argument
}

export async function probeTmux(env: Record<string, string | undefined>): Promise<Probed> {
  const said = await new Promise<string | undefined>((resolve) => {
    execFile('tmux', ['-V'], { env: clientEnvironment(env), timeout: ANSWERS_WITHIN_MS }, (error, out) => resolve(error ? undefined : out))
  })
  if (said === undefined) return { found: false, why: 'tmux is not on the PATH of the daemon.', install: INSTALL }
  const version = said.trim().replace(/^tmux\s+/, '')
  if (!isRecent(version))
    return { found: false, why: `tmux ${version} is too old; at least ${LEAST.join('.')} is needed.`, install: INSTALL }
  return { found: true, version }
}

/** Builds between two releases have no number, and are newer than those that have. */
export function isRecent(version: string): boolean {
  const [, major, minor] = /(\d+)\.(\d+)/.exec(version) ?? []
  if (major === undefined || minor === undefined) return true
  return Number(major) > LEAST[0] || (Number(major) === LEAST[0] && Number(minor) >= LEAST[1])
}
