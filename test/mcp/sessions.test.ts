import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { call, connect, LEGACY, refused } from './clients.ts'
import { INITIALIZE, modernCall, openSession, raw, toolCall } from './raw.ts'
import { Arrivals, health, waiters } from './waiting.ts'

let daemon: TestDaemon
let agents: { token: string; agent_id: string }[]
beforeAll(async () => {
  daemon = await TestDaemon.start()
  await daemon.call('project_create', { name: 'Web' })
  agents = [await daemon.call('agent_invite', { role: 'orchestrator' }), await daemon.call('agent_invite', { role: 'planner' })]
})
afterAll(() => daemon.remove())

async function killAndRestart(): Promise<void> {
  expect(await daemon.end('SIGKILL')).toBe('SIGKILL')
  await daemon.start()
}

describe('a session from before a SIGKILL', () => {
  test.each(LEGACY)('goes on at %s, and its client notices nothing', async (version) => {
    const connected = await connect(daemon, 'http', version)
    const session = connected.session()
    const before = await call(connected, 'task_create', { title: 'Before' })
    await killAndRestart()
    expect((await call(connected, 'task_get', { task_id: before.task_id })).task.title).toBe('Before')
    expect(await call(connected, 'task_create', { title: 'After' })).toMatchObject({ handle: expect.any(String) })
    expect(connected.session()).toBe(session)
    expect(connected.client.getNegotiatedProtocolVersion()).toBe(version)
    await connected.close()
  })

  test('is taken up once, however many requests come first', async () => {
    const session = await openSession(daemon)
    await killAndRestart()
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => raw(daemon, toolCall(i, 'agent_me'), { session })))
    expect(answers.map(({ status, message }) => [status, message.id])).toEqual(answers.map((_, i) => [200, i]))
    expect((await health(daemon)).mcp_sessions).toBe(1)
  })

  test('stays with its token: to another it does not exist, and the owner goes on unharmed', async () => {
    const [mine, theirs] = agents.map(({ token }) => token) as [string, string]
    const session = await openSession(daemon, { token: mine })
    const both = async () => {
      const [foreign, own] = await Promise.all([
        raw(daemon, toolCall(2, 'agent_me'), { session, token: theirs }),
        raw(daemon, toolCall(2, 'agent_me'), { session, token: mine }),
      ])
      expect(foreign).toMatchObject({ status: 404, message: { error: { code: -32_001 } } })
      expect(own.message.result.structuredContent.id).toBe(agents[0]?.agent_id)
    }
    await both()
    await killAndRestart()
    await both()
    expect((await raw(daemon, undefined, { session, token: theirs, method: 'GET' })).status).toBe(404)
    expect((await raw(daemon, undefined, { session, token: theirs, method: 'DELETE' })).status).toBe(404)
    await both()
  })

  test('keeps the lane that it asked for', async () => {
    const session = await openSession(daemon, { query: '?lane=default' })
    const create = async (query: string) =>
      (await raw(daemon, toolCall(2, 'task_create', { title: 'x' }), { session, query })).message.result
    expect((await create('')).structuredContent.error.code).toBe('PERMISSION_DENIED')
    await killAndRestart()
    expect((await create('')).structuredContent.error.code).toBe('PERMISSION_DENIED')
  })

  test('goes on telling what was subscribed to, and what may have been missed meanwhile', async () => {
    const { id: task_id } = (await daemon.call('task_create', { title: 'Watched' })).task
    const uri = `signalbox://task/${task_id}`
    const connected = await connect(daemon, 'http', '2025-11-25')
    const told = new Arrivals<string>()
    connected.client.setNotificationHandler('notifications/resources/updated', ({ params }) => told.add(params.uri))
    const tools = new Arrivals<true>()
    connected.client.setNotificationHandler('notifications/tools/list_changed', () => tools.add(true))
    await connected.listening
    await connected.client.subscribeResource({ uri })
    await killAndRestart()
    // The stream comes back by itself; until it does, what happens is kept for it.
    await told.next((one) => one === uri)
    await tools.next(() => true)
    const known = told.all.length
    await daemon.call('task_note', { task_id, body: 'after the restart' })
    expect(await told.next(() => true, { after: known })).toBe(uri)
    await connected.client.unsubscribeResource({ uri })
    await connected.close()
  })

  test('is over for good when its client ended it', async () => {
    const connected = await connect(daemon, 'http', '2025-11-25')
    const session = connected.session() as string
    const other = await openSession(daemon)
    const transport = connected.client.transport as { terminateSession?(): Promise<void> }
    await transport.terminateSession?.()
    const gone = async () => (await raw(daemon, toolCall(2, 'agent_me'), { session })).status
    expect(await gone()).toBe(404)
    await killAndRestart()
    expect(await gone()).toBe(404)
    expect((await raw(daemon, toolCall(2, 'agent_me'), { session: other })).status).toBe(200)
    await connected.close()
  })

  test('ends with its token', async () => {
    const { token, token_id } = await daemon.call('agent_invite', { role: 'planner' })
    const session = await openSession(daemon, { token })
    await daemon.call('token_revoke', { token_id })
    expect((await raw(daemon, toolCall(2, 'agent_me'), { session, token })).status).toBe(401)
    await killAndRestart()
    expect((await raw(daemon, toolCall(2, 'agent_me'), { session, token })).status).toBe(401)
  })
})

test('a session that never was, and a request without one, get an answer that says what to do', async () => {
  const never = await raw(daemon, toolCall(2, 'agent_me'), { session: 'mcp_never' })
  expect(never).toMatchObject({ status: 404, message: { error: { message: expect.stringContaining('initialize') } } })
  const without = await raw(daemon, toolCall(2, 'agent_me'))
  expect(without).toMatchObject({ status: 400, message: { error: { message: expect.stringContaining('initialize') } } })
})

test('what a revoked token was subscribed to is told to it no more', async () => {
  const { token, token_id } = await daemon.call('agent_invite', { role: 'orchestrator' })
  const { id: task_id } = (await daemon.call('task_create', { title: 'Watched' })).task
  const uri = `signalbox://task/${task_id}`
  const follow = async (as: string | undefined, version: '2025-11-25' | '2026-07-28') => {
    const connected = await connect(daemon, 'http', version, { token: as })
    const told = new Arrivals<string>()
    connected.client.setNotificationHandler('notifications/resources/updated', ({ params }) => told.add(params.uri))
    await connected.listening
    if (version === '2026-07-28') await connected.client.listen({ resourceSubscriptions: [uri] })
    else await connected.client.subscribeResource({ uri })
    return { connected, told }
  }
  const followers = [await follow(token, '2025-11-25'), await follow(token, '2026-07-28')]
  const owner = await follow(undefined, '2025-11-25')
  await daemon.call('task_note', { task_id, body: 'one' })
  await Promise.all(followers.map(({ told }) => told.next(() => true)))
  await owner.told.next(() => true)
  await daemon.call('token_revoke', { token_id })
  await daemon.call('task_note', { task_id, body: 'two' })
  await owner.told.next(() => true, { after: 1 })
  expect(followers.map(({ told }) => told.all.length)).toEqual([1, 1])
  for (const { connected } of [...followers, owner]) await connected.close()
})

describe('[S5] equal request ids', () => {
  const IDS = Array.from({ length: 60 }, (_, i) => i + 1)

  test('in two sessions are never crossed', async () => {
    const sessions = await Promise.all(agents.map(({ token }) => openSession(daemon, { token })))
    const answers = await Promise.all(
      IDS.flatMap((id) => agents.map(({ token }, who) => raw(daemon, toolCall(id, 'agent_me'), { token, session: sessions[who] }))),
    )
    expect(answers.map(({ message }) => [message.id, message.result.structuredContent.id])).toEqual(
      IDS.flatMap((id) => agents.map(({ agent_id }) => [id, agent_id])),
    )
  })

  test('in two sessions, one waiting and one answering, are never crossed', async () => {
    const { id: task_id } = (await daemon.call('task_create', { title: 'Waited for' })).task
    const sessions = await Promise.all(agents.map(({ token }) => openSession(daemon, { token })))
    const waits = agents.map(({ token }, who) => raw(daemon, toolCall(7, 'task_wait', { task_id }), { token, session: sessions[who] }))
    const quick = await Promise.all(
      agents.map(async ({ token }) => raw(daemon, toolCall(7, 'agent_me'), { token, session: await openSession(daemon, { token }) })),
    )
    expect(quick.map(({ message }) => message.result.structuredContent.id)).toEqual(agents.map(({ agent_id }) => agent_id))
    await waiters(daemon, 2)
    await daemon.call('task_move', { task_id, status: 'IN_PROGRESS' })
    for (const { message } of await Promise.all(waits))
      expect(message).toMatchObject({ id: 7, result: { structuredContent: { code: 'TASK_CHANGED', task_id } } })
  })

  test('of the stateless era are never crossed', async () => {
    const answers = await Promise.all(IDS.flatMap((id) => agents.map(({ token }) => raw(daemon, modernCall(id, 'agent_me'), { token }))))
    expect(answers.map(({ message }) => [message.id, message.result.structuredContent.id])).toEqual(
      IDS.flatMap((id) => agents.map(({ agent_id }) => [id, agent_id])),
    )
  })

  test('over two pipes are never crossed', async () => {
    const pipes = await Promise.all(agents.map(({ token }) => connect(daemon, 'stdio', '2025-11-25', { token, args: ['--no-start'] })))
    const answers = await Promise.all(IDS.flatMap(() => pipes.map((pipe) => call(pipe, 'agent_me'))))
    expect(answers.map(({ id }) => id)).toEqual(IDS.flatMap(() => agents.map(({ agent_id }) => agent_id)))
    expect(await refused(pipes[1] as (typeof pipes)[0], 'setting_update', { key: 'x', value: 1 })).toMatchObject({
      code: 'PERMISSION_DENIED',
    })
    await Promise.all(pipes.map((pipe) => pipe.close()))
  })
})

test('a session is stored before its client hears of it', async () => {
  const opened = await raw(daemon, { id: 1, ...INITIALIZE })
  await killAndRestart()
  expect((await raw(daemon, { method: 'notifications/initialized' }, { session: opened.session })).status).toBe(202)
  expect((await raw(daemon, toolCall(2, 'agent_me'), { session: opened.session })).message.result.structuredContent.handle).toBe('owner')
})
