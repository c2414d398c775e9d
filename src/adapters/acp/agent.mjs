// An agent on the official SDK, for the tests: its side of the protocol checks all that the harness sends against the protocol's schema.
// Its one argument is a JSON object that says what it can; each prompt says what it does, unless that says so too.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Readable, Writable } from 'node:stream'
import { agent, ndJsonStream, RequestError } from '@agentclientprotocol/sdk'

const can = JSON.parse(process.argv[2] ?? '{}')
const cancels = new Map()
let servers = []
let calls = 0

const opened = { modes: can.modes && { currentModeId: 'slow', availableModes: can.modes.map((id) => ({ id, name: id })) } }

function open({ cwd, mcpServers }) {
  if (can.needsLogin) throw RequestError.authRequired()
  if (cwd !== process.cwd()) throw RequestError.invalidParams({ details: `${cwd} is not where it was started` })
  servers = mcpServers
  return opened
}

agent({ name: 'example' })
  .onRequest('initialize', () => ({
    protocolVersion: can.version ?? 1,
    agentInfo: { name: 'example', version: '1.0.0' },
    agentCapabilities: {
      loadSession: can.load !== undefined,
      sessionCapabilities: can.resume ? { resume: {} } : {},
    },
    authMethods: can.needsLogin ? [{ id: 'login', name: 'Log in', description: 'Run `example login` in a terminal' }] : [],
  }))
  .onRequest('session/new', ({ params }) => ({ sessionId: 'session-1', ...open(params) }))
  .onRequest('session/resume', ({ params }) => open(params))
  .onRequest('session/load', async ({ params, client }) => {
    if (params.sessionId !== can.load) throw RequestError.internalError({ details: 'No previous sessions found for this project.' })
    await say(client, params.sessionId, 'HISTORY')
    await update(client, params.sessionId, { sessionUpdate: 'tool_call', toolCallId: 'old', title: 'old', status: 'completed' })
    return open(params)
  })
  .onRequest('session/set_mode', ({ params }) => {
    process.stderr.write(`mode ${params.modeId}\n`)
    if (can.refusesModes) throw RequestError.invalidParams({ details: 'not as root' })
    return {}
  })
  .onRequest('session/set_config_option', ({ params }) => {
    if (params.value !== can.model) throw RequestError.invalidParams({ details: `it has ${can.model}` })
    process.stderr.write(`model ${params.value}\n`)
    return { configOptions: [] }
  })
  .onRequest('session/prompt', ({ params, client }) => prompt(client, params.sessionId, params.prompt.map(({ text }) => text).join('\n')))
  .onNotification('session/cancel', ({ params }) => cancels.get(params.sessionId)?.())
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)))

const DEEDS = { talk, die, stay, pause, shortly, permit, tools, err, stop, codexLimit, fs, announce }

/** A prompt is the name of a deed and what it is given, or words to repeat. */
async function prompt(client, session, text) {
  const [, name, given] = can.always ? ['', can.always] : (/^do (\w+) ?(.*)$/ms.exec(text) ?? [])
  const deed = name && DEEDS[name]
  if (deed) return deed(client, session, given)
  await say(client, session, `heard: ${text}`)
  return { stopReason: 'end_turn' }
}

async function talk(client, session) {
  await update(client, session, { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'Hm, ' } })
  await update(client, session, { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'Zürich.' } })
  for (const word of ['Zürich ', '→ ', '🚂', '\nand back']) await say(client, session, word)
  await update(client, session, { sessionUpdate: 'plan', entries: [{ content: 'go', priority: 'high', status: 'pending' }] })
  await call(client, session, { rawInput: { command: 'ls' } }, { status: 'completed', rawOutput: 'grün' })
  await call(client, session, { rawInput: { command: 'ls nowhere' } }, { status: 'failed', rawOutput: { code: 2 } })
  await say(client, session, 'done')
  return { stopReason: 'end_turn' }
}

async function die(client, session) {
  await say(client, session, 'quota exceeded')
  await call(client, session, { rawInput: { command: 'kill' } })
  process.exit(3)
}

async function stay(client, session) {
  const cancelled = new Promise((resolve) => cancels.set(session, resolve))
  await say(client, session, 'READY')
  await call(client, session, { rawInput: { command: 'sleep' } })
  await cancelled
  return { stopReason: can.forgetsCancel ? 'end_turn' : 'cancelled' }
}

/** Long enough for a message to come in the middle: until it is told to go on by a signal. */
async function pause(client, session) {
  const goOn = once(process, 'SIGUSR2')
  await say(client, session, 'READY')
  await call(client, session, { rawInput: { command: 'wait' } })
  await goOn
  return { stopReason: 'end_turn' }
}

/** For whoever can give no signal. */
async function shortly(client, session) {
  await say(client, session, 'READY')
  await call(client, session, { rawInput: { command: 'sleep 1.5' } })
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  return { stopReason: 'end_turn' }
}

async function permit(client, session, given) {
  const toolCallId = `call-${++calls}`
  const toolCall = {
    toolCallId,
    title: 'rm -rf build',
    kind: 'execute',
    status: 'pending',
    rawInput: { command: 'rm' },
    ...JSON.parse(given || '{}'),
  }
  const options = ['allow_always', 'allow_once', 'reject_once'].map((kind) => ({ optionId: `the-${kind}`, kind, name: kind }))
  const { outcome } = await client.request('session/request_permission', { sessionId: session, toolCall, options })
  const allowed = outcome.optionId === 'the-allow_once'
  await update(client, session, {
    sessionUpdate: 'tool_call_update',
    toolCallId,
    status: allowed ? 'completed' : 'failed',
    rawOutput: outcome.optionId ?? outcome.outcome,
  })
  if (!allowed && can.stopsWhenRefused) return { stopReason: 'cancelled' }
  await say(client, session, `it was ${outcome.optionId ?? outcome.outcome}`)
  return { stopReason: 'end_turn' }
}

/** Calls one of the tools that it was given, as an agent's own MCP client would; `later` between two calls it says READY and waits. */
async function tools(client, session, given) {
  const { name, args, later } = JSON.parse(given)
  const [{ command, args: argv, env }] = servers
  const child = spawn(command, argv, {
    env: Object.fromEntries(env.map(({ name, value }) => [name, value])),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  let id = 0
  const ask = async (method, params) => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params })}\n`)
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error('the server ended')
      const message = JSON.parse(value)
      if (message.id === id) return JSON.stringify(message.result?.structuredContent ?? message.result ?? message.error)
    }
  }
  const clientInfo = { name: 'example', version: '1' }
  await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`)
  await say(client, session, await ask('tools/call', { name, arguments: args }))
  if (later) {
    const goOn = once(process, 'SIGUSR2')
    await call(client, session, { rawInput: { command: 'READY' } })
    await goOn
    let [answer, asked] = ['', 0]
    do {
      asked = performance.now()
      answer = await ask('tools/call', { name, arguments: later })
      // Asked before the pipe saw that the daemon was gone, or on a busy machine, where a daemon may take longer to start than anybody waits.
    } while (
      answer.includes('went away before it answered') ||
      (answer.includes('No Signalbox daemon is running') && performance.now() - asked > 10_000)
    )
    await say(client, session, answer)
  }
  child.stdin.end()
  return { stopReason: 'end_turn' }
}

async function err(client, session, given) {
  const { code, message, data } = JSON.parse(given)
  await say(client, session, 'trying')
  throw new RequestError(code, message, data)
}

async function stop(client, session, given) {
  await say(client, session, 'stopping')
  return { stopReason: given }
}

async function codexLimit(client, session) {
  await say(client, session, 'exceeded retry limit, last status: 429 Too Many Requests\n\n')
  return { stopReason: 'end_turn', usage: null, _meta: { quota: { token_count: null, model_usage: [] } } }
}

async function fs(client, session) {
  const refused = await client.request('fs/read_text_file', { sessionId: session, path: '/etc/passwd' }).catch((error) => error)
  const unknown = await client.request('terminal/create', { sessionId: session, command: 'id' }).catch((error) => error)
  await say(client, session, `${refused.code} ${unknown.code}`)
  return { stopReason: 'end_turn' }
}

/** As real ones do: announced, then with its input, then a late word after its end. */
async function announce(client, session) {
  const toolCallId = 'announced'
  const more = (fields) => update(client, session, { sessionUpdate: 'tool_call_update', toolCallId, ...fields })
  await update(client, session, { sessionUpdate: 'tool_call', toolCallId, title: 'bash', kind: 'execute', status: 'pending', rawInput: {} })
  await more({ status: 'in_progress', title: 'ls', rawInput: { command: 'ls' } })
  await more({ status: 'in_progress', content: [{ type: 'content', content: { type: 'text', text: 'a' } }] })
  await more({ status: 'completed', content: [{ type: 'content', content: { type: 'text', text: 'a.txt' } }] })
  await more({ status: 'completed', rawOutput: 'late' })
  await update(client, session, { sessionUpdate: 'tool_call', toolCallId: 'forgotten', title: 'never told again', status: 'pending' })
  return { stopReason: 'end_turn' }
}

async function call(client, session, begun, ended) {
  const toolCallId = `call-${++calls}`
  const update_ = { sessionUpdate: 'tool_call', toolCallId, title: 'shell', kind: 'execute', status: 'in_progress', ...begun }
  await update(client, session, update_)
  if (ended) await update(client, session, { sessionUpdate: 'tool_call_update', toolCallId, ...ended })
}

function say(client, session, text) {
  return update(client, session, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
}

function update(client, sessionId, update) {
  return client.notify('session/update', { sessionId, update })
}
