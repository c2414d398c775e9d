import { Agent, request } from 'node:http'
import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { BIN } from '../../src/testing/daemon.ts'
import type { Mortal } from './mortal.ts'

// biome-ignore lint/suspicious/noExplicitAny: the answers of many tools, read by name
export type Fields = Record<string, any>

/** `lost`: the connection broke, so whether the call was done is not known. */
export type Outcome =
  | { kind: 'answer'; value: Fields }
  | { kind: 'refusal'; value: Fields }
  /** `stale`: on a connection that stood idle before, and perhaps was closed for that in the moment in which it was used. */
  | { kind: 'lost'; why: string; stale?: boolean }

export type Way = 'http' | 'mcp 2025' | 'mcp 2026' | 'stdio'

/** One client that keeps its connection through every death of the daemon. */
export interface Caller {
  way: Way
  /** Never rejects. */
  call(tool: string, input: Fields, signal?: AbortSignal): Promise<Outcome>
  /** What the server knows this client by; must be the same at the end as at the start. */
  session(): string | undefined
  close(): Promise<void>
}

/** Plain node:http: at a thousand calls a second fetch would be the bottleneck. One connection, used again and again. */
export function httpCaller(mortal: { url: string }, token: string): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return {
    way: 'http',
    session: () => undefined,
    async close() {
      agent.destroy()
    },
    call: (tool, input, signal) =>
      new Promise((resolve) => {
        const lost = (error: Error) => resolve({ kind: 'lost', why: error.message, stale: sending.reusedSocket })
        const sending = request(`${mortal.url}/api/tools/${tool}`, { method: 'POST', agent, headers, signal }, (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('error', lost)
          response.on('close', () => resolve(response.complete ? read(Buffer.concat(chunks)) : { kind: 'lost', why: 'cut off' }))
        })
        sending.on('error', lost)
        sending.end(JSON.stringify(input))
      }),
  }
}

function read(body: Buffer): Outcome {
  const { ok, result, error } = JSON.parse(body.toString()) as Fields
  return ok ? { kind: 'answer', value: result } : { kind: 'refusal', value: error }
}

export async function mcpCaller(mortal: Mortal, token: string, way: Exclude<Way, 'http'>): Promise<Caller> {
  const transport = way === 'stdio' ? overStdio(mortal, token) : overHttp(mortal, token)
  const client = new Client(
    { name: 'chaos', version: '1.0.0' },
    way === 'mcp 2026' ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {},
  )
  await client.connect(transport)
  return {
    way,
    session: () => (transport instanceof StreamableHTTPClientTransport ? transport.sessionId : undefined),
    async close() {
      if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession().catch(() => {})
      await client.close()
    },
    async call(tool, input, signal = mortal.death) {
      try {
        // The SDK's client does not notice that the stream of an answer broke (it would wait for its timeout), so it is told.
        const result = await client.callTool({ name: tool, arguments: input }, { signal, timeout: 120_000 })
        const value = result.structuredContent as Fields
        if (!result.isError) return { kind: 'answer', value }
        return value.error.code === 'DISCONNECTED' ? { kind: 'lost', why: value.error.message } : { kind: 'refusal', value: value.error }
      } catch (error) {
        return { kind: 'lost', why: (error as Error).message }
      }
    },
  }
}

function overHttp(mortal: Mortal, token: string): Transport {
  return new StreamableHTTPClientTransport(new URL(`${mortal.url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  })
}

function overStdio(mortal: Mortal, token: string): Transport {
  return new StdioClientTransport({
    command: process.execPath,
    args: [BIN, 'mcp', '--admin', '--no-start'],
    env: { ...mortal.daemon.env, SIGNALBOX_TOKEN: token },
    stderr: 'ignore',
  })
}
