import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { BIN, type TestDaemon } from '../../src/testing/daemon.ts'
import { until } from '../../src/testing/signals.ts'
import { kill } from '../../src/testing/survivors.ts'
import { INITIALIZE, type Message } from './raw.ts'
import { Arrivals } from './waiting.ts'

/** `signalbox mcp` in a process of its own, spoken to line by line. */
export class Pipe {
  readonly #child: ChildProcessWithoutNullStreams
  readonly said = new Arrivals<Message>()
  readonly complained = new Arrivals<string>()
  readonly exited: Promise<number | string>
  #ids = 0

  constructor(daemon: Pick<TestDaemon, 'env'>, args: string[], env: Record<string, string> = {}) {
    this.#child = spawn(process.execPath, [BIN, 'mcp', ...args], { env: { ...daemon.env, ...env } })
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.said.add(JSON.parse(line) as Message))
    createInterface({ input: this.#child.stderr }).on('line', (line) => this.complained.add(line))
    this.exited = once(this.#child, 'close').then(([code, signal]) => code ?? signal)
  }

  /** One that has shaken hands as a 2025 client does. */
  static async open(daemon: Pick<TestDaemon, 'env'>, args: string[], env: Record<string, string> = {}): Promise<Pipe> {
    const pipe = new Pipe(daemon, args, env)
    const answer = await pipe.request(INITIALIZE.method, INITIALIZE.params)
    if (!answer.result) throw new Error(`initialize was refused: ${JSON.stringify(answer.error)}`)
    pipe.send({ method: 'notifications/initialized' })
    return pipe
  }

  get pid(): number {
    return this.#child.pid as number
  }

  line(text: string): void {
    this.#child.stdin.write(`${text}\n`)
  }

  send(message: Message): void {
    this.line(JSON.stringify({ jsonrpc: '2.0', ...message }))
  }

  /** Sends, and resolves with the answer, whatever it is. */
  request(method: string, params: object, id: string | number = `r${++this.#ids}`): Promise<Message> {
    const after = this.said.all.length
    this.send({ id, method, params })
    return this.said.next((message) => message.id === id && !message.method, { after })
  }

  /** The result of a tool, refusals too. */
  async call(name: string, args: object = {}): Promise<Message> {
    const { result, error } = await this.request('tools/call', { name, arguments: args })
    if (!result) throw new Error(`${name}: ${JSON.stringify(error)}`)
    return result.structuredContent
  }

  /** Ends its input and resolves with its exit code. */
  end(): Promise<number | string> {
    this.#child.stdin.end()
    return this.exited
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.exited
  }
}

/** The daemon that a pipe has started, by what it wrote into its state folder. */
export function startedPid(home: string): number | undefined {
  try {
    return (JSON.parse(readFileSync(join(home, 'daemon.json'), 'utf8')) as { pid: number }).pid
  } catch {
    return undefined
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A killed process that nobody has reaped yet still has a pid.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Also the ones that are only starting: with the first one gone they would take its place, and stay. */
export async function killStarted(home: string): Promise<void> {
  await until(() => {
    const serving = servingPids(home)
    for (const pid of serving) kill(pid)
    return serving.length === 0
  })
}

function servingPids(home: string): number[] {
  if (process.platform !== 'linux') return [startedPid(home)].filter((pid) => pid !== undefined).filter(isAlive)
  return readdirSync('/proc')
    .filter(
      (name) => /^\d+$/.test(name) && proc(name, 'environ').includes(`SIGNALBOX_HOME=${home}`) && proc(name, 'cmdline').includes('serve'),
    )
    .map(Number)
}

function proc(pid: string, file: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0')
  } catch {
    return []
  }
}
