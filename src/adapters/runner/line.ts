import { once } from 'node:events'
import { lstatSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { dirname } from 'node:path'
import type { Input } from '../../ports/runner.ts'
import type { RunnerRecord } from '../../runner/record.ts'
import { type Hello, readLines, type Said } from '../../runner/socket.ts'

/** A runner that is there answers at once; a stopped one never does. */
const HELLO_MS = 5_000
const ACK_MS = 30_000

export interface RunnerLine {
  /** True once the connection is gone. */
  closed(): boolean
  /** Undefined when the connection broke before it was answered. */
  send(input: Input): Promise<boolean | undefined>
  close(): void
}

/** Undefined when nobody answers there, or somebody else. */
export async function callRunner(record: RunnerRecord, run: string, onNews: () => void): Promise<RunnerLine | undefined> {
  if (!isOurs(dirname(record.socket))) return undefined
  const socket = createConnection(record.socket)
  const acks = new Map<number, (taken: boolean | undefined) => void>()
  let greeted = (_run: string | undefined) => {}
  const hello = new Promise<string | undefined>((resolve) => {
    greeted = resolve
  })
  const over = () => {
    socket.destroy()
    greeted(undefined)
    for (const answer of acks.values()) answer(undefined)
    onNews()
  }
  socket.once('error', over).once('close', over)
  void readLines(socket, (line) => {
    const said = JSON.parse(line) as Said
    if ('run' in said) greeted(said.run)
    if ('ack' in said) acks.get(said.ack)?.(said.taken)
    if ('size' in said) onNews()
  }).catch(over)

  if (record.secret !== undefined) socket.write(`${JSON.stringify({ secret: record.secret } satisfies Hello)}\n`)
  if ((await within(HELLO_MS, hello)) !== run) {
    socket.destroy()
    return undefined
  }
  return {
    closed: () => socket.destroyed,
    async send(input) {
      if (socket.destroyed) return undefined
      const answer = new Promise<boolean | undefined>((resolve) => acks.set(input.seq, resolve))
      await written(socket, `${JSON.stringify(input)}\n`)
      return within(ACK_MS, answer)
    },
    close: () => socket.destroy(),
  }
}

async function written(socket: Socket, text: string): Promise<void> {
  if (!socket.write(text)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {})
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** What an agent is told goes through this folder: one that somebody else put there is not used. */
function isOurs(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false })
  if (!found?.isDirectory()) return false
  return found.uid === process.getuid?.() && (found.mode & 0o077) === 0
}
