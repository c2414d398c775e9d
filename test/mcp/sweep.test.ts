import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createSessionStore } from '../../src/db/mcp-sessions.ts'
import { createMcpSurface, type McpSurface } from '../../src/surfaces/mcp.ts'
import { createServerFactory, type McpConnection } from '../../src/surfaces/mcp-server.ts'
import { openTestApp, type TestApp } from '../../src/testing/app.ts'
import { until } from '../../src/testing/signals.ts'
import { INITIALIZE, type Message, toolCall } from './raw.ts'

const MINUTE = 60_000

let app: TestApp
let surface: McpSurface
beforeEach(async () => {
  app = await openTestApp()
  // Only what the sweep goes by: the database keeps its own time.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const { kernel, feed, engine, host, registry } = app.app
  surface = createMcpSurface({
    newServer: createServerFactory({ kernel, feed, version: '0' }),
    sessions: createSessionStore(engine, host.now),
    feed,
    capabilities: registry.capabilities,
    newSessionId: () => host.id('mcp'),
    onError: () => {},
  })
})
afterEach(async () => {
  vi.useRealTimers()
  await surface.close()
  await app.close()
})

test('a session that nobody uses is put away after half an hour, and taken up again when its client returns', async () => {
  const readers = app.app.feed.readers
  const session = await open()
  expect(app.app.feed.readers).toBe(readers + 1)
  vi.advanceTimersByTime(29 * MINUTE)
  await me(session)
  vi.advanceTimersByTime(29 * MINUTE)
  expect(surface.sessionCount()).toBe(1)
  vi.advanceTimersByTime(3 * MINUTE)
  await until(() => surface.sessionCount() === 0)
  expect(app.app.feed.readers).toBe(readers)
  expect(await me(session)).toBe('owner')
  expect(surface.sessionCount()).toBe(1)
})

test('one whose request is not over, a wait or an open stream, is not put away', async () => {
  const over: (() => void)[] = []
  const session = await open()
  await me(session, { whenOver: (then) => over.push(then) })
  vi.advanceTimersByTime(90 * MINUTE)
  // Another one comes and goes in the meantime, so that a sweep has really run.
  const other = await open()
  vi.advanceTimersByTime(32 * MINUTE)
  await until(() => surface.sessionCount() === 1)
  for (const then of over) then()
  vi.advanceTimersByTime(32 * MINUTE)
  await until(() => surface.sessionCount() === 0)
  expect([await me(session), await me(other)]).toEqual(['owner', 'owner'])
})

test('beyond five hundred the longest unused gives way, never one that is at work', async () => {
  const busy = await open()
  await me(busy, { whenOver: () => {} })
  const idle = await open()
  // Many holders: of one token fewer than that are kept.
  for (let i = surface.sessionCount(); i < 500; i++) await open(`token_${i}`)
  vi.advanceTimersByTime(1)
  await open('token_500')
  expect(surface.sessionCount()).toBe(500)
  const before = surface.sessionCount()
  expect(await me(busy)).toBe('owner')
  expect(surface.sessionCount()).toBe(before)
  expect(await me(idle)).toBe('owner')
})

test('one holder that keeps every stream open takes no place from the others', async () => {
  const stays = { whenOver: () => {} }
  for (let i = 0; i < 250; i++) await surface.handle(request('GET', await open('greedy')), undefined, await as('greedy', stays))
  const session = await open('modest')
  expect(session).toMatch(/^mcp_/)
  expect((await surface.handle(request('POST', session), { jsonrpc: '2.0', ...toolCall(2, 'agent_me') }, await as('modest'))).status).toBe(
    200,
  )
})

test('a subscription is as lasting as its session', async () => {
  const { id } = await app.task()
  const session = await open()
  await ask({ id: 2, method: 'resources/subscribe', params: { uri: `signalbox://task/${id}` } }, session)
  vi.advanceTimersByTime(32 * MINUTE)
  await until(() => surface.sessionCount() === 0)
  await me(session)
  await app.owner.call('task_note', { task_id: id, body: 'changed' })
  expect(await listenUntil(session, `signalbox://task/${id}`)).toContain('notifications/resources/updated')
})

test('what happens before the client has opened its stream is told when it does, each thing once', async () => {
  const { id } = await app.task()
  const session = await open()
  await ask({ id: 2, method: 'resources/subscribe', params: { uri: `signalbox://task/${id}` } }, session)
  for (const body of ['one', 'two', 'three']) await app.owner.call('task_note', { task_id: id, body })
  await app.owner.call('setting_update', { key: 'roles.planner.deny', value: ['audit_*'] })
  const heard = await listenUntil(session, 'list_changed')
  expect(heard.match(/resources\/updated/g)).toHaveLength(1)
  // And again after a break: the stream is gone, the session is not.
  await app.owner.call('task_note', { task_id: id, body: 'four' })
  expect(await listenUntil(session, 'updated')).toContain(`signalbox://task/${id}`)
})

test('a session that was ended does not come back', async () => {
  const session = await open()
  expect((await surface.handle(request('DELETE', session), undefined, await connection())).ok).toBe(true)
  expect((await surface.handle(request('POST', session), { jsonrpc: '2.0', ...toolCall(3, 'agent_me') }, await connection())).status).toBe(
    404,
  )
})

async function open(tokenId?: string): Promise<string> {
  const response = await surface.handle(request('POST'), { jsonrpc: '2.0', id: 1, ...INITIALIZE }, await as(tokenId))
  await response.text()
  return response.headers.get('mcp-session-id') as string
}

async function as(tokenId?: string, more: Partial<McpConnection> = {}): Promise<McpConnection> {
  const own = await connection()
  return { ...own, ...more, principal: tokenId ? { ...own.principal, tokenId } : own.principal }
}

/** Opens the session's stream, and hangs up when the words have come. */
async function listenUntil(session: string, words: string): Promise<string> {
  const over: (() => void)[] = []
  const more = { whenOver: (then: () => void) => void over.push(then) }
  const stream = await surface.handle(request('GET', session), undefined, { ...(await connection()), ...more })
  const reader = (stream.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
  let heard = ''
  while (!heard.includes(words)) heard += (await reader.read()).value
  await reader.cancel()
  for (const then of over) then()
  return heard
}

async function me(session: string, more: Partial<McpConnection> = {}): Promise<string> {
  return (await ask(toolCall(2, 'agent_me'), session, more)).result.structuredContent.handle
}

async function ask(message: Message, session: string, more: Partial<McpConnection> = {}): Promise<Message> {
  const response = await surface.handle(request('POST', session), { jsonrpc: '2.0', ...message }, { ...(await connection()), ...more })
  const text = await response.text()
  return JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? text)
}

function request(method: string, session?: string): Request {
  const headers = new Headers({ accept: 'application/json, text/event-stream', 'content-type': 'application/json' })
  if (session) headers.set('mcp-session-id', session)
  return new Request('http://127.0.0.1/mcp', { method, headers, body: method === 'POST' ? '{}' : undefined })
}

async function connection(): Promise<McpConnection> {
  const secret = app.app.ownerToken
  const found = await app.app.identity.authenticate(app.app.engine.view, secret)
  if (!found) throw new Error('the owner is not known')
  // Requests without an HTTP server around them are over as soon as they are answered.
  return { secret, principal: found.principal, lane: 'admin', surface: 'mcp', source: 'test', whenOver: (then) => then() }
}
