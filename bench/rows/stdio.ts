import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { BIN } from '../../src/testing/daemon.ts'
import { type Ground, inOrder, type World } from '../ground.ts'
import { alternate, CLIENTS, perSecond, type Row, row, type Side } from '../harness.ts'

/** task_get through `signalbox mcp`: one pipe, with as many calls under way as there are clients. */
export async function stdioRows(world: World): Promise<Row[]> {
  const grounds = await world.grounds()
  const task = (ground: Ground) => (ground.agents[0] as Ground['agents'][number]).task
  const pipes = new Map<string, { pipe: Pipe; task: string }>()
  const echo = [join(import.meta.dirname, 'sdk-echo.js'), '--stdio']
  const script = await world.echoScript()
  pipes.set('limit', { pipe: await Pipe.open(echo, { BENCH_SCRIPT: script }), task: task(grounds[0] as Ground) })
  for (const ground of grounds) {
    const env = { ...ground.daemon.env, SIGNALBOX_TOKEN: (ground.agents[0] as Ground['agents'][number]).token }
    pipes.set(ground.engine, { pipe: await Pipe.open([BIN, 'mcp', '--no-start'], env), task: task(ground) })
  }
  const rows = await inOrder(CLIENTS, (clients) => measure(clients))
  for (const { pipe } of pipes.values()) pipe.close()
  return rows.flat()

  async function measure(clients: number): Promise<Row[]> {
    const sides: Record<string, Side> = {}
    for (const [name, { pipe, task }] of pipes) {
      const call = () => pipe.request('tools/call', { name: 'task_get', arguments: { task_id: task } })
      sides[name] = (ms, calls) => perSecond(Array(clients).fill(call), ms, calls)
    }
    const found = await alternate(sides, world.options)
    return grounds.map(({ engine }) =>
      row({
        family: 'stdio',
        what: 'stdio through the shim (task_get)',
        engine,
        clients,
        unit: 'calls/s',
        measured: found[engine] as number,
        limit: found.limit as number,
        limitOf: 'SDK echo over stdio',
      }),
    )
  }
}

/** A process that speaks MCP line by line, as a 2025 client does. */
class Pipe {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #waiting = new Map<number, (line: string) => void>()
  #ids = 0

  private constructor(args: string[], env: Record<string, string>) {
    this.#child = spawn(process.execPath, args, { env: { ...process.env, ...env, NODE_NO_WARNINGS: '1' } })
    this.#child.stderr.pipe(process.stderr)
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#take(line))
  }

  static async open(args: string[], env: Record<string, string>): Promise<Pipe> {
    const pipe = new Pipe(args, env)
    await pipe.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } })
    pipe.#send({ method: 'notifications/initialized' })
    return pipe
  }

  /** Only the id is read: taking the whole answer apart would be our work, not the server's. */
  #take(line: string): void {
    const id = Number(/"id":(\d+)/.exec(line)?.[1])
    this.#waiting.get(id)?.(line)
    this.#waiting.delete(id)
  }

  #send(message: object): void {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  async request(method: string, params: object): Promise<void> {
    const id = ++this.#ids
    const line = await new Promise<string>((resolve) => {
      this.#waiting.set(id, resolve)
      this.#send({ id, method, params })
    })
    if (!line.includes('"result"') || line.includes('"isError":true')) throw new Error(`${method} over stdio: ${line.slice(0, 500)}`)
  }

  close(): void {
    this.#child.kill('SIGKILL')
  }
}
