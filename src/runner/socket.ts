import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

export interface Input {
  seq: number
  data?: string
  close?: boolean
  signal?: 'SIGINT' | 'SIGTERM'
}

/** What a runner says to whoever is connected: first whose it is, then how long the spool is each time it grew. */
export type Said = { run: string; size: number } | { size: number } | { ack: number; taken: boolean }

export interface Line {
  /** Told soon, once for many writes. */
  grew(): void
  close(): void
}

/** As much as a person would ever paste, with room. */
const MOST_LINE = 32 * 1024 * 1024

export async function listen(
  path: string,
  hello: { run: string; size: () => number },
  take: (input: Input) => Promise<boolean>,
): Promise<Line> {
  const clients = new Set<Socket>()
  const server = createServer((client) => {
    clients.add(client)
    client.on('close', () => clients.delete(client))
    client.on('error', () => client.destroy())
    say(client, { run: hello.run, size: hello.size() })
    client.on('drain', () => say(client, { size: hello.size() }))
    void readLines(client, async (line) => {
      const input = JSON.parse(line) as Input
      say(client, { ack: input.seq, taken: await take(input) })
    }).catch(() => client.destroy())
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

/** One after the other; a line that has no end is not waited for. */
export async function readLines(socket: Socket, take: (line: string) => unknown): Promise<void> {
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
    if (held > MOST_LINE) throw new Error('a line is too long')
  }
}
