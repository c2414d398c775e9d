import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { Refusal, refuse } from '../kernel/error.ts'

const MAX_BODY = 1_048_576
const MOST_NESTED = 64

/** Only JSON: a form or text/plain is what a foreign page can send without asking. */
export async function jsonBody(incoming: IncomingMessage | Http2ServerRequest): Promise<unknown> {
  const type = (incoming.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw new Refusal({ code: 'INVALID_INPUT', message: 'Send JSON with Content-Type: application/json.' })
  const text = decoded(await readAll(incoming))
  if (text === '') return {}
  const body = parsed(text)
  if (isDeeperThan(MOST_NESTED, body)) throw refuse('INVALID_INPUT', `The body is nested deeper than ${MOST_NESTED} levels.`)
  return body
}

/** From the connection itself: as a web stream every body would cost more than many a call. */
function readAll(incoming: IncomingMessage | Http2ServerRequest): Promise<Buffer> {
  if (Number(incoming.headers['content-length']) > MAX_BODY) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let received = 0
    const take = (chunk: Buffer) => {
      received += chunk.length
      if (received > MAX_BODY) done(() => reject(tooLarge()))
      else chunks.push(chunk)
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
