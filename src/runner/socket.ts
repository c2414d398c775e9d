import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

export interface Input {
  seq: number
  data?: string
  close?: boolean
  signal?: 'SIGINT' | 'SIGTERM'
}

/** The first line of a connection. Agents share our user and reach the sockets of other runs: without the secret nothing is said or taken. */
export interface Hello {
  secret: string
}

/** What a runner says to whoever proved to know its secret: first whose it is, then how long the spool is each time it grew. */
export type Said = { run: string; size: number } | { size: number } | { ack: number; taken: boolean }

export interface Line {
  /** Told soon, once for many writes. */
  grew(): void
  close(): void
}

/** As much as a person would ever paste, with room. */
const MOST_LINE = 32 * 1024 * 1024
const MOST_HELLO = 1024
const HELLO_MS = 5_000

export async function listen(
  path: string,
  hello: { run: string; secret: string; size: () => number },
  take: (input: Input) => Promise<boolean>,
): Promise<Line> {
  const clients = new Set<Socket>()
  const welcome = (client: Socket) => {
    client.setTimeout(0)
    clients.add(client)
    say(client, { run: hello.run, size: hello.size() })
    client.on('drain', () => say(client, { size: hello.size() }))
  }
  const server = createServer((client) => {
    client.on('close', () => clients.delete(client))
    client.on('error', () => client.destroy())
    client.setTimeout(HELLO_MS, () => client.destroy())
    void readLines(
      client,
      async (line) => {
        if (!clients.has(client)) {
          requireSecret(line, hello.secret)
          return welcome(client)
        }
        const input = JSON.parse(line) as Input
        say(client, { ack: input.seq, taken: await take(input) })
      },
      () => (clients.has(client) ? MOST_LINE : MOST_HELLO),
    ).catch(() => client.destroy())
  })
  await once(server.listen(path), 'listening')
  let telling = false
  return {
    grew() {
      if (telling) return
      telling = true
      setImmediate(() => {
        telling = false
        // One that does not read is told when it has read what it was told before.
        for (const client of clients) if (!client.writableNeedDrain) say(client, { size: hello.size() })
      })
    },
    close() {
      server.close()
      for (const client of clients) client.destroy()
    },
  }
}

function say(client: Socket, what: Said): void {
  if (!client.destroyed) client.write(`${JSON.stringify(what)}\n`)
}

function requireSecret(line: string, secret: string): void {
  if (!timingSafeEqual(digest((JSON.parse(line) as Hello).secret), digest(secret))) throw new Error('another secret')
}

/** Of one length, as a comparison in constant time needs it. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** One after the other; a line that has no end is not waited for. */
export async function readLines(socket: Socket, take: (line: string) => unknown, most = () => MOST_LINE): Promise<void> {
  let rest: Buffer[] = []
  let held = 0
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    let from = 0
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
      await take(Buffer.concat([...rest, chunk.subarray(from, end)]).toString('utf8'))
      from = end + 1
      rest = []
      held = 0
    }
    rest.push(chunk.subarray(from))
    held += chunk.length - from
    if (held > most()) throw new Error('a line is too long')
  }
}
