import { writeFileSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { socketPath } from '../../src/daemon/home.ts'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { until } from '../../src/testing/signals.ts'
import { type Connected, call, connect, MODERN } from './clients.ts'
import { isAlive, killStarted, Pipe, startedPid } from './pipe.ts'
import { INITIALIZE, type Message, modernCall } from './raw.ts'
import { Arrivals, health, waiters } from './waiting.ts'

const ADMIN = ['--admin']
const NO_START = ['--admin', '--no-start']

let daemon: TestDaemon
const pipes: Pipe[] = []
const clients: Connected[] = []
beforeEach(() => {
  daemon = new TestDaemon()
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
  for (const pipe of pipes.splice(0)) await pipe.kill()
  await daemon.end('SIGKILL')
  await killStarted(daemon.home)
  await daemon.remove()
})

async function open(args: string[], env: Record<string, string> = {}, of: TestDaemon = daemon): Promise<Pipe> {
  const pipe = await Pipe.open(of, args, env)
  pipes.push(pipe)
  return pipe
}

async function withProject(): Promise<void> {
  await daemon.start()
  await daemon.call('project_create', { name: 'Web' })
}

/** Every title in the database, as often as it is there. */
async function titles(pipe: Pipe): Promise<string[]> {
  const { tasks } = await pipe.call('task_list', { limit: 200 })
  return tasks.map((task: Message) => task.title).sort()
}

describe('when there is no daemon', () => {
  test('the pipe starts one, which outlives it', async () => {
    const pipe = await open(ADMIN)
    expect(await pipe.call('agent_me')).toMatchObject({ handle: 'owner' })
    const pid = startedPid(daemon.home) as number
    expect(pid).not.toBe(pipe.pid)
    expect(await pipe.end()).toBe(0)
    expect(isAlive(pid)).toBe(true)
    const next = await open(NO_START)
    expect(await next.call('system_health')).toMatchObject({ ok: true })
    expect(startedPid(daemon.home)).toBe(pid)
  })

  test('several pipes at once end up with one', async () => {
    const all = await Promise.all([open(ADMIN), open(ADMIN), open(ADMIN)])
    await all[0]?.call('project_create', { name: 'Web' })
    for (const pipe of all) expect((await pipe.call('project_list')).projects).toHaveLength(1)
  })

  test('--no-start says so, and works as soon as there is one', async () => {
    const pipe = new Pipe(daemon, NO_START)
    pipes.push(pipe)
    const refused = await pipe.request(INITIALIZE.method, INITIALIZE.params)
    expect(refused.error).toMatchObject({ message: expect.stringContaining('signalbox serve'), data: { code: 'DISCONNECTED' } })
    expect(await pipe.call('agent_me')).toMatchObject({ error: { code: 'DISCONNECTED' } })
    await daemon.start()
    expect((await pipe.request(INITIALIZE.method, INITIALIZE.params)).result.serverInfo.name).toBe('signalbox')
    expect(await pipe.call('agent_me')).toMatchObject({ handle: 'owner' })
  })
})

describe('whose token it is', () => {
  test('the one in the file that SIGNALBOX_TOKEN_FILE names', async () => {
    await daemon.start()
    const file = join(daemon.home, 'a.token')
    const { token } = await daemon.call('agent_invite', { name: 'ann', role: 'worker' })
    writeFileSync(file, `${token}\n`, { mode: 0o600 })
    const pipe = await open([], { SIGNALBOX_TOKEN_FILE: file })
    expect(await pipe.call('agent_me')).toMatchObject({ handle: expect.stringContaining('ann') })
  })

  test('a file that is gone is not replaced by the owner', async () => {
    await daemon.start()
    const pipe = new Pipe(daemon, NO_START, { SIGNALBOX_TOKEN_FILE: join(daemon.home, 'nothing.token') })
    pipes.push(pipe)
    const refused = await pipe.request(INITIALIZE.method, INITIALIZE.params)
    expect(refused.error.message).toContain('There is no token in')
  })

  test('in a run it starts no daemon, but waits for the one that is away', async () => {
    const pipe = new Pipe(daemon, ['--admin'], { SIGNALBOX_RUN: 'run_1' })
    pipes.push(pipe)
    const answer = pipe.request(INITIALIZE.method, INITIALIZE.params)
    await daemon.start()
    expect((await answer).result.serverInfo.name).toBe('signalbox')
    expect(startedPid(daemon.home)).toBe(daemon.pid)
  })
})

describe('when the daemon is killed', () => {
  test('a call that it did not answer is answered DISCONNECTED, and the next ones work without a new handshake', async () => {
    await withProject()
    const { id: task_id } = (await daemon.call('task_create', { title: 'Waited for' })).task
    const pipe = await open(NO_START)
    const waiting = pipe.request('tools/call', { name: 'task_wait', arguments: { task_id } })
    await waiters(daemon, 1)
    await daemon.end('SIGKILL')
    const { result } = await waiting
    expect(result).toMatchObject({ isError: true, structuredContent: { error: { code: 'DISCONNECTED' } } })
    expect(JSON.parse(result.content[0].text)).toEqual(result.structuredContent)
    await daemon.start()
    expect(await pipe.call('agent_me')).toMatchObject({ handle: 'owner' })
    expect((await pipe.request('ping', {})).result).toEqual({})
  })

  test.each(['by itself', 'by the pipe'])('what it did not answer is never sent again; started anew %s', async (by) => {
    await withProject()
    const pipe = await open(by === 'by the pipe' ? ADMIN : NO_START)
    const wanted = Array.from({ length: 60 }, (_, i) => `write ${i}`)
    const answers = wanted.map((title) => pipe.request('tools/call', { name: 'task_create', arguments: { title } }))
    // In the middle: some are answered, some are with the daemon, some are still on their way.
    await Promise.any(answers.slice(10, 20))
    await daemon.end('SIGKILL')
    // Until then the pipe still writes to the daemon that is gone: also the look at what was done would be lost with it.
    await pipe.complained.next((line) => line.includes('went away'))
    if (by === 'by itself') await daemon.start()
    const results = (await Promise.all(answers)).map(({ result }) => result)
    const done = wanted.filter((_, i) => !results[i].isError)
    for (const { isError, structuredContent } of results) if (isError) expect(structuredContent.error.code).toBe('DISCONNECTED')
    expect(done.length).toBeGreaterThan(0)
    const found = await titles(pipe)
    expect(new Set(found).size).toBe(found.length)
    expect(found).toEqual(expect.arrayContaining(done))
  })

  test('what is sent while there is none is delivered once, to the one that the pipe starts', async () => {
    await withProject()
    const pipe = await open(ADMIN)
    await daemon.end('SIGKILL')
    await pipe.complained.next((line) => line.includes('went away'))
    const wanted = Array.from({ length: 20 }, (_, i) => `while down ${i}`)
    const answers = await Promise.all(wanted.map((title) => pipe.call('task_create', { title })))
    expect(answers.map(({ task }) => task.title)).toEqual(wanted)
    expect(await titles(pipe)).toEqual([...wanted].sort())
  })

  test.each(['2025-11-25', MODERN] as const)(
    'subscriptions go on at %s, and the client looks again at what it follows',
    async (version) => {
      await withProject()
      const { id: task_id } = (await daemon.call('task_create', { title: 'Watched' })).task
      const uri = `signalbox://task/${task_id}`
      const connected = await connect(daemon, 'stdio', version, { args: ADMIN })
      clients.push(connected)
      const { client } = connected
      const [told, tools] = [new Arrivals<string>(), new Arrivals<true>()]
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => told.add(params.uri))
      client.setNotificationHandler('notifications/tools/list_changed', () => tools.add(true))
      const subscription = version === MODERN ? await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] }) : undefined
      if (!subscription) await client.subscribeResource({ uri })
      await call(connected, 'task_note', { task_id, body: 'before' })
      expect(await told.next(() => true)).toBe(uri)
      await daemon.end('SIGKILL')
      expect(await told.next(() => true, { after: 1 })).toBe(uri)
      await tools.next(() => true)
      await call(connected, 'task_note', { task_id, body: 'after' })
      expect(await told.next(() => true, { after: 2 })).toBe(uri)
      if (subscription) await subscription.close()
      else await client.unsubscribeResource({ uri })
      await call(connected, 'task_note', { task_id, body: 'not wanted any more' })
      expect(told.all).toHaveLength(3)
    },
  )

  test('twice in a row, with calls in between, it is still the same client to itself', async () => {
    const pipe = await open(ADMIN)
    await pipe.call('project_create', { name: 'Web' })
    for (const round of [1, 2]) {
      const lost = pipe.complained.next((line) => line.includes('went away'), { after: pipe.complained.all.length })
      await killStarted(daemon.home)
      await lost
      expect(await pipe.call('task_create', { title: `round ${round}` })).toMatchObject({ handle: `T-${round}` })
    }
    expect(await titles(pipe)).toEqual(['round 1', 'round 2'])
  })
})

test('a daemon that is told to stop answers its waits with their cursor, and the pipe goes on with the next one', async () => {
  await withProject()
  const { id: task_id } = (await daemon.call('task_create', { title: 'Waited for' })).task
  const pipe = await open(ADMIN)
  const waiting = pipe.call('task_wait', { task_id })
  await waiters(daemon, 1)
  const stopped = daemon.end('SIGTERM')
  expect(await waiting).toMatchObject({ code: 'WAIT_INTERRUPTED', resume: true, cursor: expect.any(String) })
  await pipe.complained.next((line) => line.includes('went away'))
  // The old one may still hold the state folder when the first new one is started.
  expect(await pipe.call('agent_me')).toMatchObject({ handle: 'owner' })
  expect(await stopped).toBe(0)
})

describe('the end of the input', () => {
  test('lets everything be answered that was asked, then the pipe ends', async () => {
    await withProject()
    const pipe = await open(NO_START)
    const answers = Array.from({ length: 30 }, (_, i) => pipe.request('tools/call', { name: 'task_create', arguments: { title: `${i}` } }))
    const code = pipe.end()
    const results = await Promise.all(answers)
    expect(results.map(({ result }) => result.isError ?? false)).toEqual(results.map(() => false))
    expect(await code).toBe(0)
    expect((await daemon.call('task_list', { limit: 100 })).tasks).toHaveLength(30)
  })

  test('does not wait for what will never be answered: a cancelled call, an open subscription', async () => {
    await withProject()
    const { id: task_id } = (await daemon.call('task_create', { title: 'Waited for' })).task
    const took: number[] = []
    // The drain's own limit is 10 s; a machine that stands still so long does not do so three times.
    while (took.length < 3 && !took.some((ms) => ms < 9_000)) {
      const pipe = await open(NO_START)
      pipe.send({ id: 'wait', method: 'tools/call', params: { name: 'task_wait', arguments: { task_id } } })
      await waiters(daemon, 1)
      pipe.send({ method: 'notifications/cancelled', params: { requestId: 'wait' } })
      await waiters(daemon, 0)
      const listening = new Pipe(daemon, NO_START)
      pipes.push(listening)
      const { _meta } = modernCall(1, 'agent_me').params
      listening.send({ id: 'listen', method: 'subscriptions/listen', params: { _meta, notifications: { toolsListChanged: true } } })
      await listening.said.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
      const began = performance.now()
      expect(await Promise.all([pipe.end(), listening.end()])).toEqual([0, 0])
      took.push(performance.now() - began)
    }
    expect(Math.min(...took)).toBeLessThan(9_000)
  })
})

describe('what is no message', () => {
  test('is answered, and the next line is served', async () => {
    await daemon.start()
    const pipe = await open(NO_START)
    const bad: [string, Message][] = [
      ['{"jsonrpc":"2.0","id":1,', { id: null, error: { code: -32_700 } }],
      ['hello', { id: null, error: { code: -32_700 } }],
      ['42', { id: null, error: { code: -32_600 } }],
      ['{"id":9,"method":"ping"}', { id: 9, error: { code: -32_600 } }],
      ['{"jsonrpc":"2.0","id":10,"method":7}', { id: 10, error: { code: -32_600 } }],
      ['{"jsonrpc":"2.0","id":null,"method":"ping"}', { id: null, error: { code: -32_600 } }],
      ['[{"jsonrpc":"2.0","id":11,"method":"ping"}]', { id: null, error: { code: -32_600 } }],
    ]
    for (const [line, answer] of bad) {
      const after = pipe.said.all.length
      pipe.line(line)
      expect(await pipe.said.next(() => true, { after })).toMatchObject(answer)
    }
    pipe.line('')
    expect(await pipe.call('agent_me')).toMatchObject({ handle: 'owner' })
  })

  test.each([
    ['letters', 'x'.repeat(1_100_000)],
    ['letters of three bytes', '語'.repeat(400_000)],
  ])('a line over 1 MiB is refused by its size in bytes: %s', async (_what, body) => {
    await withProject()
    const { id: task_id } = (await daemon.call('task_create', { title: 'Noted' })).task
    const pipe = await open(NO_START)
    expect(await pipe.call('task_note', { task_id, body })).toMatchObject({ error: { code: 'PAYLOAD_TOO_LARGE' } })
    const { error } = await pipe.request('resources/read', { uri: `signalbox://${body}` })
    expect(error.data.code).toBe('PAYLOAD_TOO_LARGE')
    expect(await pipe.call('agent_me')).toMatchObject({ handle: 'owner' })
    expect((await daemon.call('task_get', { task_id })).task).not.toHaveProperty('notes.0')
  })

  test('an argument just under the limit arrives', async () => {
    await withProject()
    const pipe = await open(NO_START)
    const answer = await pipe.call('task_create', { title: 'x', description: 'd'.repeat(1_000_000) })
    expect(answer).toMatchObject({ error: { code: 'INVALID_INPUT' } })
  })
})

describe('the token', () => {
  test('that ended, or that nobody issued, is named as such', async () => {
    await daemon.start()
    const { token, token_id } = await daemon.call('agent_invite', { role: 'worker' })
    await daemon.call('token_revoke', { token_id })
    const cases = { AUTH_STALE_TOKEN: token, UNAUTHENTICATED: 'sb_nobody' }
    for (const [code, SIGNALBOX_TOKEN] of Object.entries(cases)) {
      const pipe = new Pipe(daemon, NO_START, { SIGNALBOX_TOKEN })
      pipes.push(pipe)
      expect((await pipe.request(INITIALIZE.method, INITIALIZE.params)).error.data).toEqual({ code })
      expect(await pipe.call('agent_me')).toMatchObject({ error: { code } })
    }
  })

  test('that ends while it is in use ends with the next call', async () => {
    await daemon.start()
    const { token, token_id } = await daemon.call('agent_invite', { role: 'worker' })
    const pipe = await open(NO_START, { SIGNALBOX_TOKEN: token })
    expect(await pipe.call('agent_me')).toMatchObject({ role: 'worker' })
    await daemon.call('token_revoke', { token_id })
    expect(await pipe.call('agent_me')).toMatchObject({ error: { code: 'AUTH_STALE_TOKEN' } })
    expect((await pipe.request('tools/list', {})).error.data.code).toBe('AUTH_STALE_TOKEN')
  })

  test('of the owner can be replaced over the pipe, which gets to see the new one', async () => {
    await daemon.start()
    const pipe = await open(NO_START)
    const [owner] = (await pipe.call('token_list')).tokens
    const { token } = await pipe.call('token_rotate', { token_id: owner.id })
    expect(token).toMatch(/^sbx_person_/)
    await until(() => daemon.token === token)
    // The daemon hangs up a moment later, and the pipe comes back with what the file holds now.
    const next = await pipe.call('agent_me')
    if (next.error) expect(next.error.code).toMatch(/^(AUTH_STALE_TOKEN|DISCONNECTED)$/)
    await until(async () => (await pipe.call('agent_me')).handle === 'owner')
  })
})

test('two state folders do not mix', async () => {
  const other = new TestDaemon()
  try {
    await Promise.all([daemon.start(), other.start()])
    const [here, there] = [await open(NO_START), await open(NO_START, {}, other)]
    await here.call('project_create', { name: 'Here' })
    await there.call('project_create', { name: 'There' })
    const names = async (pipe: Pipe) => (await pipe.call('project_list')).projects.map(({ name }: Message) => name)
    expect([await names(here), await names(there)]).toEqual([['Here'], ['There']])
    const stranger = new Pipe(other, NO_START, { SIGNALBOX_TOKEN: daemon.token })
    pipes.push(stranger)
    expect((await stranger.request(INITIALIZE.method, INITIALIZE.params)).error.data).toEqual({ code: 'UNAUTHENTICATED' })
    expect(await hello(daemon, other.home)).toMatchObject({ ok: false, code: 'CONFLICT', message: expect.stringContaining(other.home) })
  } finally {
    await other.remove()
  }
})

test('nothing is left behind by pipes that come and go, in either era or changing its mind', async () => {
  await daemon.start()
  const before = await health(daemon)
  const { _meta } = modernCall(1, 'agent_me').params
  for (let round = 0; round < 2; round++) {
    const legacy = await open(NO_START)
    const modern = new Pipe(daemon, NO_START)
    expect((await modern.request('server/discover', { _meta })).result.supportedVersions).toContain(MODERN)
    expect((await modern.request('tools/call', modernCall(1, 'agent_me').params)).result.structuredContent.handle).toBe('owner')
    // Asks for the new era first, and falls back: the server made for the question must not stay.
    const undecided = new Pipe(daemon, NO_START)
    await undecided.request('server/discover', { _meta })
    expect((await undecided.request(INITIALIZE.method, INITIALIZE.params)).result.protocolVersion).toBe('2025-11-25')
    expect((await undecided.call('agent_me')).handle).toBe('owner')
    await until(async () => (await health(daemon)).event_readers === before.event_readers + 3)
    await Promise.all([legacy.end(), modern.end(), undecided.kill()])
    await until(async () => (await health(daemon)).event_readers === before.event_readers)
  }
  await waiters(daemon, 0)
})

/** Says hello to the daemon's own socket in the name of another state folder. */
function hello(to: TestDaemon, home: string): Promise<Message> {
  return new Promise((resolve, reject) => {
    const socket = connectSocket(socketPath(to.home, to.env), () => {
      socket.write(`${JSON.stringify({ signalbox: 1, home, token: to.token, lane: 'admin' })}\n`)
    })
    socket.once('error', reject)
    createInterface({ input: socket }).once('line', (line) => {
      socket.destroy()
      resolve(JSON.parse(line) as Message)
    })
  })
}
