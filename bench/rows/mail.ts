import { randomUUID } from 'node:crypto'
import { processorMs } from '../child.ts'
import { RawClient, toolCall } from '../client.ts'
import { type Ground, inOrder, type World } from '../ground.ts'
import { alternate, percentile, type Row, row, type Side } from '../harness.ts'

const WRITERS = [1, 10, 30]
const MANY = 30
const RATE = { text: '≥ 1,000/s', met: ({ measured }: { measured: number }) => measured >= 1_000 }
const P99 = { text: 'p99 < 50 ms', met: ({ measured }: { measured: number }) => measured < 50 }

/** mail_send over MCP from agents that write to each other, answered when the letter is on the disk. */
export async function mailRows(world: World): Promise<Row[]> {
  const grounds = await world.grounds()
  const echo = await world.echo()
  return (await inOrder(WRITERS, (writers) => measure(writers))).flat()

  async function measure(writers: number): Promise<Row[]> {
    const limit = new Writers(echo, grounds[0] as Ground, writers)
    const others = grounds.map((ground) => ({ ground, load: new Writers(ground.daemon, ground, writers) }))
    const sides: Record<string, Side> = { limit: (ms, calls) => limit.run(ms, calls) }
    for (const { ground, load } of others) sides[ground.engine] = (ms, calls) => load.run(ms, calls)
    const found = await alternate(sides, world.options)
    for (const load of [limit, ...others.map(({ load }) => load)]) load.close()
    return others.flatMap(({ ground: { engine }, load }) => {
      const isAim = engine === 'sqlite' && writers === MANY
      const common = { family: 'mail', engine, clients: writers, limitOf: 'SDK echo' }
      return [
        row({
          ...common,
          what: 'letters (mail_send)',
          unit: 'letters/s',
          measured: found[engine] as number,
          limit: found.limit as number,
          aim: isAim ? RATE : undefined,
          note: `processor time ${load.microseconds} µs a letter, ${limit.microseconds} µs at the limit`,
        }),
        row({
          ...common,
          what: 'a letter until it is stored, p99',
          unit: 'ms',
          measured: percentile(load.took, 0.99),
          limit: percentile(limit.took, 0.99),
          aim: isAim ? P99 : undefined,
          note: `p50 ${percentile(load.took, 0.5).toFixed(1)} ms, ${percentile(limit.took, 0.5).toFixed(1)} ms at the limit`,
        }),
      ]
    })
  }
}

/** In front of the number that makes each letter another. */
const MARK = 'number '
const DIGITS = 10

/** Each has a receiver of its own. No two letters are alike: the same again would be refused. */
class Writers {
  readonly took: number[] = []
  readonly #clients: RawClient[]
  readonly #requests: Buffer[]
  readonly #pid: number
  #written = 0
  #usedMs = 0

  constructor({ url, pid }: { url: string; pid: number }, { agents }: Ground, writers: number) {
    this.#pid = pid
    this.#clients = RawClient.all(url, writers)
    this.#requests = this.#clients.map((client, i) => {
      const to = agents[(i + 1) % agents.length] as Ground['agents'][number]
      const letter = letterTo(to.id, `${MARK}${'0'.repeat(DIGITS)} of ${i}, ${randomUUID()}`)
      return toolCall(client, (agents[i] as Ground['agents'][number]).token, 'mail_send', letter)
    })
  }

  async run(ms: number, atLeast: number): Promise<number> {
    await Promise.all(this.#clients.map((client) => client.connected()))
    const before = processorMs(this.#pid)
    const began = performance.now()
    let done = 0
    const loop = async (client: RawClient, request: Buffer) => {
      const at = request.indexOf(MARK) + MARK.length
      while (performance.now() - began < ms || done < atLeast) {
        request.write(String(++this.#written).padStart(DIGITS, '0'), at)
        const sent = performance.now()
        await client.send(request)
        this.took.push(performance.now() - sent)
        done++
      }
    }
    await Promise.all(this.#clients.map((client, i) => loop(client, this.#requests[i] as Buffer)))
    const seconds = (performance.now() - began) / 1_000
    this.#usedMs += processorMs(this.#pid) - before
    // Warming up is not what a letter takes.
    if (atLeast > 0) this.#usedMs = this.took.length = 0
    return done / seconds
  }

  /** What one letter costs the server, whatever else the machine does. */
  get microseconds(): number {
    return Math.round((this.#usedMs / this.took.length) * 1_000)
  }

  close(): void {
    for (const client of this.#clients) client.close()
  }
}

/** Of a usual size. */
export function letterTo(to_agent_id: string, unlike: string) {
  return {
    to_agent_id,
    subject: 'The parser is done',
    body: `It reads the configuration once and notices a change within a second. The tests pass; you can build on the branch. ${unlike}`,
  }
}
