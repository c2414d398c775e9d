import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { json } from 'node:stream/consumers'
import type { ErrorBody } from '../kernel/error.ts'
import { migratedFile } from './databases.ts'
import { kill, survivors } from './survivors.ts'

export const BIN = resolve(import.meta.dirname, '../../bin/signalbox.js')

type Fields = Record<string, unknown>
// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
export type Reply = { status: number; ok: boolean; result: any; error: ErrorBody }

export interface DaemonOptions {
  home?: string
  port?: number
  env?: Record<string, string>
  /** Put before `node bin/signalbox.js serve`: faketime, unshare … */
  wrapper?: string[]
  /** The wrapper gives it mounts of its own: its folder is another one than ours of that name. */
  hasOwnMounts?: boolean
  /** Of another checkout. */
  bin?: string
}

/** The real program in a process of its own, on a free port and in a folder of its own. */
export class TestDaemon {
  readonly home: string
  readonly #options: DaemonOptions
  #child: ChildProcess | undefined
  url = ''
  log = ''

  constructor(options: DaemonOptions = {}) {
    this.#options = options
    this.home = options.home ?? mkdtempSync(join(tmpdir(), 'signalbox-e2e-'))
  }

  static async start(options: DaemonOptions = {}): Promise<TestDaemon> {
    const daemon = new TestDaemon(options)
    if (options.home === undefined) await migratedFile(join(daemon.home, 'signalbox.db'))
    await daemon.start()
    return daemon
  }

  get env(): Record<string, string> {
    const { SIGNALBOX_TOKEN: _, SIGNALBOX_TOKEN_FILE: __, SIGNALBOX_URL: ___, ...rest } = process.env as Record<string, string>
    return {
      ...rest,
      SIGNALBOX_HOME: this.home,
      XDG_RUNTIME_DIR: this.home,
      SIGNALBOX_PORT: String(this.#options.port ?? 0),
      ...this.#options.env,
    }
  }

  get pid(): number {
    return this.#child?.pid as number
  }

  get token(): string {
    return readFileSync(join(this.homeFromHere, 'owner.token'), 'utf8').trim()
  }

  /** Its state folder, by a path that leads there from this process. */
  get homeFromHere(): string {
    return this.#options.hasOwnMounts ? `/proc/${this.pid}/root${this.home}` : this.home
  }

  /** Resolves when it answers; rejects with what it printed when it ends first. On a restart it keeps its port. */
  async start(): Promise<void> {
    const [command = process.execPath, ...args] = [
      ...(this.#options.wrapper ?? []),
      process.execPath,
      this.#options.bin ?? BIN,
      'serve',
      '--quiet',
    ]
    const port = this.url ? new URL(this.url).port : undefined
    const child = spawn(command, args, {
      env: { ...this.env, ...(port ? { SIGNALBOX_PORT: port } : {}) },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    child.stderr?.on('data', (chunk) => {
      this.log += String(chunk)
    })
    const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })
    // Not at its exit: its last words may still be in the pipe then.
    const ended = once(child, 'close').then(([code, signal]) => {
      throw new Error(`the daemon ended with ${code ?? signal}: ${this.log}`)
    })
    const [line] = (await Promise.race([once(lines, 'line'), ended])) as [string]
    ended.catch(() => {})
    this.url = line
  }

  /** Ends it and resolves with its exit code or signal. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? child?.signalCode ?? 0
    const exited = once(child, 'exit')
    child.kill(signal)
    const [code, by] = (await exited) as [number | null, string | null]
    await allRead(child)
    return code ?? (by as string)
  }

  async remove(): Promise<void> {
    await this.end('SIGKILL')
    // Runs outlive their daemon; nobody would ever ask for these again.
    for (let left = survivors(this.home); left.length; left = survivors(this.home)) for (const { pid } of left) kill(pid)
    rmSync(this.home, { recursive: true, force: true, maxRetries: 10 })
  }

  async post(
    tool: string,
    input: unknown = {},
    token: string = this.token,
    { headers = {}, signal }: { headers?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<Reply> {
    const own = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers }
    // A connection of its own: into one that is kept, a test may write at the moment in which the daemon closes it.
    const asked = request(`${this.url}/api/tools/${tool}`, { method: 'POST', agent: false, headers: own, signal })
    asked.end(JSON.stringify(input))
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    return { status: response.statusCode as number, ...((await json(response)) as Omit<Reply, 'status'>) }
  }

  // biome-ignore lint/suspicious/noExplicitAny: see Reply
  async call(tool: string, input: Fields = {}, token?: string): Promise<any> {
    const reply = await this.post(tool, input, token)
    if (!reply.ok) throw new Error(`${tool} was refused: ${JSON.stringify(reply.error)}`)
    return reply.result
  }

  /** Runs `signalbox <args>` against this daemon. */
  async cli(args: string[], input?: string, env: Record<string, string> = {}): Promise<{ code: number; stdout: string; stderr: string }> {
    const { SIGNALBOX_PORT: _, ...base } = this.env
    const child = spawn(process.execPath, [BIN, ...args], { env: { ...base, ...env } })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk) => {
      stdout += String(chunk)
    })
    child.stderr.on('data', (chunk) => {
      stderr += String(chunk)
    })
    child.stdin.end(input ?? '')
    const [code] = (await once(child, 'close')) as [number]
    return { code, stdout, stderr }
  }
}

/** What it printed last may come after its exit; something that it started may keep the pipe open, so nobody waits for that for ever. */
async function allRead({ stdout, stderr }: ChildProcess): Promise<void> {
  const limit = AbortSignal.timeout(5_000)
  const open = [stdout, stderr].filter((stream) => stream && !stream.closed)
  await Promise.all(open.map((stream) => once(stream as NonNullable<typeof stream>, 'close', { signal: limit }))).catch(() => {})
}
