import { connect, type Socket } from 'node:net'
import { RawClient, toolCall } from '../client.ts'
import { type Ground, inOrder, type World } from '../ground.ts'
import { alternate, CLIENTS, type Row, row, type Side } from '../harness.ts'

const READERS = 200

/** Every note becomes an event at 200 readers. What counts is how many events arrive a second, all readers together. */
export async function streamRows(world: World): Promise<Row[]> {
  const grounds = await world.grounds()
  const frame = await oneFrame(grounds[0] as Ground)
  const bare = await world.bareHttp({ BENCH_FRAME: frame })
  const fans = new Map<string, FanOut>()
  fans.set('limit', await FanOut.start(bare.url, '/stream', '', (client) => client.post('/publish', {}, {})))
  for (const { engine, daemon, agents } of grounds) {
    const note = (client: RawClient, i: number) => {
      const { token, task } = agents[i] as Ground['agents'][number]
      return toolCall(client, token, 'task_note', { task_id: task, body: 'go on' })
    }
    fans.set(engine, await FanOut.start(daemon.url, '/api/events?types=task.noted', daemon.token, note))
  }
  const rows = await inOrder(CLIENTS, (clients) => measure(clients))
  for (const fan of fans.values()) fan.close()
  return rows.flat()

  async function measure(clients: number): Promise<Row[]> {
    const sides: Record<string, Side> = {}
    for (const [name, fan] of fans) sides[name] = (ms) => fan.deliveriesPerSecond(clients, ms)
    const found = await alternate(sides, world.options)
    return grounds.map(({ engine }) =>
      row({
        family: 'stream',
        what: `SSE fan-out to ${READERS} readers`,
        engine,
        clients,
        unit: 'events/s',
        measured: found[engine] as number,
        limit: found.limit as number,
        limitOf: 'bare node:http',
        note: `${Math.round((found[engine] as number) / READERS)} writes a second, ${Math.round((found.limit as number) / READERS)} at the limit`,
      }),
    )
  }
}

/** As long as one of ours. */
async function oneFrame({ daemon, cursor }: Ground): Promise<string> {
  const { events } = await daemon.call('event_wait', { cursor, types: ['task.noted'], limit: 1 })
  const [event] = events
  return `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}

/** 200 streams that count what comes, and clients that cause it. */
class FanOut {
  readonly #url: string
  readonly #requestOf: (client: RawClient, i: number) => Buffer
  readonly #readers: Socket[] = []
  #seen = 0
  #whenSeen: { count: number; then(): void } | undefined

  private constructor(url: string, requestOf: (client: RawClient, i: number) => Buffer) {
    this.#url = url
    this.#requestOf = requestOf
  }

  static async start(url: string, path: string, token: string, requestOf: (client: RawClient, i: number) => Buffer): Promise<FanOut> {
    const fan = new FanOut(url, requestOf)
    for (let i = 0; i < READERS; i++) await fan.#read(path, token)
    return fan
  }

  #read(path: string, token: string): Promise<void> {
    const { port, hostname, host } = new URL(this.#url)
    const socket = connect(Number(port), hostname)
    this.#readers.push(socket)
    socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n\r\n`)
    return new Promise((resolve, reject) => {
      socket.on('error', reject)
      socket.on('data', (chunk) => {
        resolve()
        this.#count(chunk)
      })
    })
  }

  /** Each event has one line of data; a line that is cut in two is counted where it begins. */
  #count(chunk: Buffer): void {
    for (let at = chunk.indexOf('data: '); at >= 0; at = chunk.indexOf('data: ', at + 6)) this.#seen++
    if (this.#whenSeen && this.#seen >= this.#whenSeen.count) this.#whenSeen.then()
  }

  async deliveriesPerSecond(clients: number, ms: number): Promise<number> {
    const all = RawClient.all(this.#url, clients)
    await Promise.all(all.map((client) => client.connected()))
    this.#seen = 0
    const began = performance.now()
    let written = 0
    const loop = async (client: RawClient, i: number) => {
      const request = this.#requestOf(client, i)
      while (performance.now() - began < ms) {
        await client.send(request)
        written++
      }
    }
    await Promise.all(all.map(loop))
    await this.#delivered(written * READERS)
    for (const client of all) client.close()
    return this.#seen / ((performance.now() - began) / 1_000)
  }

  /** "data: " may be cut in two between chunks, once in a while: that must not be waited for. */
  async #delivered(count: number): Promise<void> {
    if (this.#seen >= count) return
    const all = new Promise<void>((then) => {
      this.#whenSeen = { count, then }
    })
    await Promise.race([all, this.#quiet()])
    this.#whenSeen = undefined
  }

  async #quiet(): Promise<void> {
    for (let before = -1; before !== this.#seen; ) {
      before = this.#seen
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
  }

  close(): void {
    for (const reader of this.#readers)
      reader
        .removeAllListeners()
        .on('error', () => {})
        .destroy()
  }
}
