import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { plan } from './answer.ts'
import { anthropic } from './anthropic.ts'
import type { Api, Body, Chunk } from './api.ts'
import { chat } from './chat.ts'
import type { Rule } from './conversation.ts'
import { gemini } from './gemini.ts'
import { responses } from './responses.ts'
import type { Fault } from './script.ts'

const APIS: Api[] = [anthropic, responses, chat, gemini]

export interface ModelRequest {
  api: string
  path: string
  body: unknown
}

export interface Model {
  url: string
  /** All that a model was asked, the oldest first. */
  requests: ModelRequest[]
  /** The next requests, so many, are refused like this. */
  fault(fault: Fault): void
  close(): Promise<void>
}

export interface ModelOptions {
  /** For prompts that carry no script. */
  rules?: Rule[]
  /** A free one unless told. */
  port?: number
}

/** A model on 127.0.0.1 that does what the prompt says. It keeps no conversation: any number of agents may share it. */
export async function startModel(options: ModelOptions = {}): Promise<Model> {
  const desk = new Desk(options.rules ?? [])
  const server = createServer((request, response) => {
    desk.answer(request, response).catch((error: Error) => {
      if (!response.headersSent) json(response, 500, { error: { message: `the scripted model failed: ${error.stack}` } })
      response.end()
    })
  })
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: desk.requests,
    fault: (fault) => void desk.faults.push({ ...fault }),
    close: () => closed(server, desk),
  }
}

async function closed(server: Server, desk: Desk): Promise<void> {
  desk.over.abort()
  const over = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await over
}

class Desk {
  readonly requests: ModelRequest[] = []
  readonly faults: Fault[] = []
  readonly over = new AbortController()
  /** How often a step was refused already. */
  readonly #refused = new Map<string, number>()
  readonly #rules: Rule[]

  constructor(rules: Rule[]) {
    this.#rules = rules
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '/', 'http://model').pathname
    const text = await bodyOf(request)
    const api = request.method === 'POST' ? APIS.find((one) => one.path.test(path)) : undefined
    if (!api) return besides(request, response, path, text)
    const body = parsed(text)
    this.requests.push({ api: api.name, path, body })
    await this.#reply(api, body, path, response)
  }

  async #reply(api: Api, body: Body, path: string, response: ServerResponse): Promise<void> {
    const conversation = api.read(body, path)
    const { answer, how, place } = plan(conversation, this.#rules)
    const fault = this.#nextFault() ?? this.#stepFault(how.error, JSON.stringify([place.steps, place.at]))
    if (fault) return refuse(api, fault, response)
    if (how.delayMs) await this.#pause(how.delayMs, response)
    if (how.hang || response.destroyed) return
    if (!conversation.stream) {
      if (how.cut) response.destroy()
      else json(response, 200, api.whole(answer, conversation))
      return
    }
    await stream(response, api.stream(answer, conversation), how.cut === true)
  }

  #nextFault(): Fault | undefined {
    const [fault] = this.faults
    if (!fault) return undefined
    fault.times -= 1
    if (fault.times <= 0) this.faults.shift()
    return fault
  }

  #stepFault(fault: (Omit<Fault, 'times'> & { times?: number }) | undefined, step: string): Omit<Fault, 'times'> | undefined {
    if (!fault) return undefined
    const key = createHash('sha256').update(step).digest('hex')
    const before = this.#refused.get(key) ?? 0
    this.#refused.set(key, before + 1)
    return before < (fault.times ?? 1) ? fault : undefined
  }

  /** Until the time is over, or nobody waits any more. */
  #pause(ms: number, response: ServerResponse): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      const stop = () => {
        clearTimeout(timer)
        resolve()
      }
      response.once('close', stop)
      this.over.signal.addEventListener('abort', stop, { once: true })
    })
  }
}

function refuse(api: Api, fault: Omit<Fault, 'times'>, response: ServerResponse): void {
  const wait = fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) }
  response.writeHead(fault.status, { 'content-type': 'application/json', ...wait, ...fault.headers })
  response.end(fault.body ?? JSON.stringify(api.refusal(fault)))
}

async function stream(response: ServerResponse, chunks: Chunk[], cut: boolean): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  const sent = cut ? chunks.slice(0, Math.ceil(chunks.length / 2)) : chunks
  const text = sent.map(
    ({ event, data }) => `${event ? `event: ${event}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`,
  )
  if (!cut) return void response.end(text.join(''))
  // What was said so far has to be on its way before the connection goes.
  await new Promise<void>((resolve) => response.write(text.join(''), () => resolve()))
  response.destroy()
}

/** What programs ask beside the work: whether anybody is there, which models there are, how long a prompt is. */
function besides({ method }: IncomingMessage, response: ServerResponse, path: string, text: string): void {
  if (method === 'HEAD') return void response.writeHead(200).end()
  const tokens = Math.ceil(text.length / 4)
  if (path.endsWith('/count_tokens')) return json(response, 200, { input_tokens: tokens })
  if (path.endsWith(':countTokens')) return json(response, 200, { totalTokens: tokens })
  if (path.endsWith('/models')) {
    const model = { id: 'scripted', object: 'model', type: 'model', display_name: 'Scripted', created_at: '2026-01-01T00:00:00Z' }
    return json(response, 200, { object: 'list', data: [model], has_more: false })
  }
  json(response, 404, { error: { type: 'not_found_error', message: `The scripted model has no ${method} ${path}.` } })
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function parsed(text: string): Body {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}
