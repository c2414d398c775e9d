import { RawClient, toolCall } from '../client.ts'
import { type Ground, inOrder, type World } from '../ground.ts'
import { CLIENTS, percentile, type Row, row } from '../harness.ts'

const AIM = { text: 'p99 ≤ 10 ms', met: ({ measured }: { measured: number }) => measured <= 10 }

/** How a server is made to wait, and to wake whoever waits for a key. */
interface Waking {
  url: string
  wait(client: RawClient, i: number): Buffer
  wake(client: RawClient, i: number): Buffer
  /** Resolves when so many calls wait. */
  waiting(count: number): Promise<void>
}

/** Many wait, each for its own task; one task after the other gets a note, and its waiter comes back. */
export async function waitRows(world: World): Promise<Row[]> {
  const grounds = await world.grounds()
  const echo = await world.echo()
  const limit: Waking = {
    url: echo.url,
    wait: (client, i) => toolCall(client, '', 'hold', { key: i }),
    wake: (client, i) => toolCall(client, '', 'release', { key: i }),
    waiting: async () => {},
  }
  return (await inOrder(CLIENTS, (clients) => measure(clients))).flat()

  async function measure(clients: number): Promise<Row[]> {
    const sides = { limit: await Waiters.start(limit, clients) } as Record<string, Waiters>
    for (const ground of grounds) sides[ground.engine] = await Waiters.start(onDaemon(ground), clients)
    const { rounds, quick } = world.options
    for (let round = 0; round < rounds; round++) for (const side of Object.values(sides)) await side.wakeSome(quick ? 20 : 60, round > 0)
    for (const side of Object.values(sides)) side.close()
    const p99 = (name: string) => percentile((sides[name] as Waiters).took, 0.99)
    return grounds.map(({ engine }) =>
      row({
        family: 'wait',
        what: 'wait wake-up (event_wait), p99',
        engine,
        clients,
        unit: 'ms',
        measured: p99(engine),
        limit: p99('limit'),
        limitOf: 'SDK echo that holds',
        aim: AIM,
        note: `p50 ${percentile((sides[engine] as Waiters).took, 0.5).toFixed(1)} ms, ${percentile((sides.limit as Waiters).took, 0.5).toFixed(1)} ms at the limit`,
      }),
    )
  }
}

export function onDaemon({ daemon, agents }: Ground): Waking {
  const agent = (i: number) => agents[i] as Ground['agents'][number]
  return {
    url: daemon.url,
    wait: (client, i) => toolCall(client, agent(i).token, 'event_wait', { task_id: agent(i).task, timeout_seconds: 40 }),
    wake: (client, i) => toolCall(client, agent(i).token, 'task_note', { task_id: agent(i).task, body: 'go on' }),
    waiting: async (count) => {
      while ((await daemon.call('system_health')).waiting_calls < count) await new Promise((resolve) => setTimeout(resolve, 1))
    },
  }
}

/** So many clients that wait, and one that wakes them. */
export class Waiters {
  readonly took: number[] = []
  readonly #how: Waking
  readonly #clients: RawClient[]
  readonly #writer: RawClient
  #answers: Promise<number>[] = []
  #next = 0

  private constructor(how: Waking, clients: number) {
    this.#how = how
    this.#clients = RawClient.all(how.url, clients)
    this.#writer = new RawClient(how.url)
  }

  static async start(how: Waking, clients: number): Promise<Waiters> {
    const waiters = new Waiters(how, clients)
    await Promise.all([waiters.#writer, ...waiters.#clients].map((client) => client.connected()))
    return waiters
  }

  /** From the moment at which the change is sent to the moment at which its waiter has its answer. */
  async wakeSome(count: number, counts: boolean): Promise<void> {
    await Promise.all([this.#writer, ...this.#clients].map((client) => client.connected()))
    for (const i of this.#clients.keys()) this.#begin(i)
    for (let n = 0; n < count; n++) {
      await this.#how.waiting(this.#clients.length)
      const i = this.#next++ % this.#clients.length
      const began = performance.now()
      const written = this.#writer.send(this.#how.wake(this.#writer, i))
      const at = (await this.#answers[i]) as number
      await written
      if (counts) this.took.push(at - began)
      this.#begin(i)
    }
    // The last ones are woken too, so that nothing is left waiting while the other side has its turn.
    await this.#how.waiting(this.#clients.length)
    for (const i of this.#clients.keys()) await this.#writer.send(this.#how.wake(this.#writer, i))
    await Promise.all(this.#answers)
  }

  #begin(i: number): void {
    const client = this.#clients[i] as RawClient
    this.#answers[i] = client.send(this.#how.wait(client, i)).then(() => performance.now())
  }

  close(): void {
    for (const client of [...this.#clients, this.#writer]) client.close()
  }
}
