import { processorMs } from '../child.ts'
import { RawClient, toolCall } from '../client.ts'
import type { Ground } from '../ground.ts'
import { perSecond } from '../harness.ts'

type Agent = Ground['agents'][number]

/** So many clients that call one tool of one server again and again. */
export class Load {
  readonly #pid: number
  readonly #clients: RawClient[]
  readonly #calls: (() => Promise<unknown>)[]
  #made = 0
  #usedMs = 0

  private constructor(pid: number, clients: RawClient[], requests: Buffer[]) {
    this.#pid = pid
    this.#clients = clients
    this.#calls = clients.map((client, i) => () => {
      this.#made++
      return client.send(requests[i] as Buffer)
    })
  }

  /** To the daemon and to the echo go the same bytes. */
  static start(
    server: { url: string; pid: number },
    { agents }: Ground,
    clients: number,
    tool: string,
    argsOf: (agent: Agent) => object,
  ): Load {
    const all = RawClient.all(server.url, clients)
    const requests = all.map((client, i) => {
      const agent = agents[i] as Agent
      return toolCall(client, agent.token, tool, argsOf(agent))
    })
    return new Load(server.pid, all, requests)
  }

  /** Calls per second. */
  async run(ms: number, calls: number): Promise<number> {
    await Promise.all(this.#clients.map((client) => client.connected()))
    const before = processorMs(this.#pid)
    const rate = await perSecond(this.#calls, ms, calls)
    this.#usedMs += processorMs(this.#pid) - before
    // Warming up is not what a call costs.
    if (calls > 0) this.#usedMs = this.#made = 0
    return rate
  }

  /** What one call costs the server, whatever else the machine does. */
  get microsecondsPerCall(): number {
    return (this.#usedMs / this.#made) * 1_000
  }

  close(): void {
    for (const client of this.#clients) client.close()
  }
}

export function costNote(load: Load, limit: Load): string {
  return `processor time ${Math.round(load.microsecondsPerCall)} µs a call, ${Math.round(limit.microsecondsPerCall)} µs at the limit`
}
