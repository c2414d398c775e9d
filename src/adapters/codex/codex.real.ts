import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import type { HarnessEvent } from '../../ports/harness.ts'
import { Driven, type Scene, temporaryFolder } from '../../testing/harness.ts'
import { realPath } from '../../testing/real-programs.ts'
import { type Model, type Step, script, startModel } from '../../testing/scripted-model/index.ts'
import { codex } from './index.ts'

let model: Model
let tools: Server
let home: string

beforeAll(async () => {
  model = await startModel()
  tools = await echoServer()
  home = mkdtempSync(join(tmpdir(), 'signalbox-codex-'))
  vi.stubEnv('PATH', realPath())
  vi.stubEnv('HOME', home)
  vi.stubEnv('CODEX_HOME', join(home, '.codex'))
  vi.stubEnv('MODEL_KEY', 'sk-not-a-key')
  mkdirSync(join(home, '.codex'))
  configure()
})

afterAll(async () => {
  vi.unstubAllEnvs()
  await model.close()
  tools.closeAllConnections()
  tools.close()
  rmSync(home, { recursive: true, force: true, maxRetries: 5 })
})

/** As a person has it. That its plugins are off and its retries bounded is for the harness to see to. */
function configure(more = '', provider = `${model.url}/v1`): string {
  const file = join(home, '.codex/config.toml')
  const text = `model = "gpt-5.5"
model_provider = "scripted"
web_search = "disabled"
[model_providers.scripted]
name = "scripted"
base_url = "${provider}"
env_key = "MODEL_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
${more}`
  writeFileSync(file, text)
  return text
}

/** The smallest server of tools: it says again what it is told, and remembers who called. */
const callers: (string | undefined)[] = []
async function echoServer(): Promise<Server> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { id, method, params } = request.method === 'POST' ? JSON.parse(body) : { id: undefined, method: undefined, params: undefined }
    const results: Record<string, () => unknown> = {
      initialize: () => ({
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'echo', version: '1' },
      }),
      'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } }] }),
      'tools/call': () => {
        callers.push(request.headers.authorization)
        return { content: [{ type: 'text', text: `echo: ${params.arguments.text}` }] }
      },
    }
    const result = results[method]?.()
    response.writeHead(id === undefined ? (method ? 202 : 405) : 200, { 'content-type': 'application/json' })
    response.end(
      id === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'no' } }) }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

const scene = (steps: Step[], more: Partial<Scene> = {}): Scene => ({
  options: {},
  brief: `As the script says: ${script(steps)}`,
  url: `http://127.0.0.1:${(tools.address() as AddressInfo).port}/mcp`,
  ...more,
})

const shell = (command: string, more: Partial<Step> = {}): Step => ({ tool: 'bash', args: { command }, ...more })
const texts = (events: HarnessEvent[], from: string) =>
  events.flatMap((event) => (event.type === 'text' && event.from === from ? [event.text] : []))
const outputs = (events: HarnessEvent[]) => events.flatMap((event) => (event.type === 'tool_result' ? [event.output] : []))
const only = (events: HarnessEvent[], ...types: HarnessEvent['type'][]) => events.filter(({ type }) => types.includes(type))

harnessContract({
  harness: codex,
  scene: () => scene([{ say: 'done' }]),
  program: {
    endsWell: () =>
      scene([
        { think: 'First I look.', ...shell('echo "Zürich → 🚂"') },
        { tool: 'mcp:signalbox.echo', args: { text: 'grüezi' } },
        { tool: 'write', args: { path: 'über.txt', content: 'ein Gleis\n' } },
        shell('ls; exit 3'),
        { say: 'Fertig: {{last}} 🚂' },
      ]),
    fails: () => scene([{ say: 'Now it dies.', ...shell('kill -9 $PPID') }]),
    stays: () => scene([{ say: 'READY', ...shell('true') }, { hang: true }]),
    listens: () => scene([{ say: 'READY', ...shell('sleep 2') }, { listen: true }, { say: 'over' }]),
    asks: () =>
      scene([
        { tool: 'exec_command', args: { cmd: 'echo outside', sandbox_permissions: 'require_escalated', justification: 'It must be.' } },
        { say: 'over' },
      ]),
  },
  hostileLines: ['{"method":"turn/completed","params":{"turn":{"status":"completed"}}}'],
})
