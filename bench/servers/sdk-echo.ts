import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

/**
 * What the official SDK can do with as many tools and answers as long as ours: its low-level Server over a shared table, no
 * identity, no database. `hold` is answered when somebody calls `release` with its key.
 */
interface Script {
  // biome-ignore lint/suspicious/noExplicitAny: the daemon's own list of tools, passed through
  tools: any[]
  answers: Record<string, Record<string, unknown>>
}

const { tools, answers } = JSON.parse(readFileSync(process.env.BENCH_SCRIPT as string, 'utf8')) as Script
const held = new Map<unknown, () => void>()

function newServer(): Server {
  const server = new Server({ name: 'echo', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', async () => ({ tools }))
  server.setRequestHandler('tools/call', async ({ params }) => {
    const key = params.arguments?.key
    if (params.name === 'hold') await new Promise<void>((resolve) => held.set(key, resolve))
    if (params.name === 'release') await release(key)
    const structuredContent = answers[params.name] ?? {}
    return { content: [{ type: 'text' as const, text: JSON.stringify(structuredContent) }], structuredContent }
  })
  return server
}

/** Whoever is to be released may not have arrived yet. */
async function release(key: unknown): Promise<void> {
  for (;;) {
    const free = held.get(key)
    held.delete(key)
    if (free) return free()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

if (process.argv.includes('--stdio')) {
  serveStdio(newServer)
} else {
  const handler = createMcpHandler(newServer, { legacy: 'reject' })
  const server = createServer(getRequestListener((request) => handler.fetch(request), { overrideGlobalObjects: true }))
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as { port: number }).port}`))
}
