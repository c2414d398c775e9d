import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { Refusal, refuse } from '../kernel/error.ts'

const MAX_BODY = 1_048_576
const MOST_NESTED = 64
const MOST_OF_ONE = 16
const MOST_OF_ALL = 64
const MB = 1_048_576

/** What bodies may take that are being read or answered, of one token and altogether: else who sends many slowly fills the memory. */
export class Bodies {
  #all = 0
  readonly #of = new Map<string, number>()

  /** `count` throws when a piece is one too many; `release` gives all of it back. */
  open(token: string): { count(bytes: number): void; release(): void } {
    let counted = 0
    const add = (bytes: number) => {
      counted += bytes
      this.#all += bytes
      const now = (this.#of.get(token) ?? 0) + bytes
      if (now) this.#of.set(token, now)
      else this.#of.delete(token)
      return now
    }
    return {
      count: (bytes) => {
        const own = add(bytes)
        if (own > MOST_OF_ONE * MB) throw tooMuch(`Requests of more than ${MOST_OF_ONE} MB are under way from this token.`)
        if (this.#all > MOST_OF_ALL * MB) throw tooMuch(`Requests of more than ${MOST_OF_ALL} MB are under way.`)
      },
      release: () => void add(-counted),
    }
  }
}

function tooMuch(message: string): Refusal {
  return refuse('RATE_LIMITED', message, { hint: 'Try again when some of them are answered.', details: { retry_after_seconds: 1 } })
}

/** Only JSON: a form or text/plain is what a foreign page can send without asking. */
export async function jsonBody(incoming: IncomingMessage | Http2ServerRequest, count?: (bytes: number) => void): Promise<unknown> {
  const type = (incoming.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw new Refusal({ code: 'INVALID_INPUT', message: 'Send JSON with Content-Type: application/json.' })
  const text = decoded(await readAll(incoming, count))
  if (text === '') return {}
  const body = parsed(text)
  if (isDeeperThan(MOST_NESTED, body)) throw refuse('INVALID_INPUT', `The body is nested deeper than ${MOST_NESTED} levels.`)
  return body
}

/** From the connection itself: as a web stream every body would cost more than many a call. */
function readAll(incoming: IncomingMessage | Http2ServerRequest, count: (bytes: number) => void = () => {}): Promise<Buffer> {
  if (Number(incoming.headers['content-length']) > MAX_BODY) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let received = 0
    const take = (chunk: Buffer) => {
      received += chunk.length
      if (received > MAX_BODY) return done(() => reject(tooLarge()))
      try {
        count(chunk.length)
        chunks.push(chunk)
      } catch (error) {
        done(() => reject(error))
      }
    }
    const end = () => done(() => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
    const cutOff = () => done(() => reject(new Error('the client hung up in the middle of its request')))
    const done = (then: () => void) => {
      incoming.off('data', take).off('end', end).off('error', cutOff).off('close', cutOff)
      then()
    }
    if (incoming.destroyed) return cutOff()
    incoming.on('data', take).on('end', end).on('error', cutOff).on('close', cutOff)
  })
}

function tooLarge(): Refusal {
  return refuse('PAYLOAD_TOO_LARGE', `The request is larger than ${MAX_BODY} bytes.`, {
    hint: 'Send less at once; keep long text in files of the repository.',
  })
}

/** What is not UTF-8 would be stored as something that nobody wrote. */
function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw refuse('INVALID_INPUT', 'The body is not UTF-8.')
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw refuse('INVALID_INPUT', 'The body is not valid JSON.')
  }
}

/** Whoever walks through such a value step by step, like JSON.stringify, runs out of stack. */
function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(levels - 1, inner))
}
