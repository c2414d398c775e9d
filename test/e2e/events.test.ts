import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { bearer, dial, exchange, Stream, type StreamOptions, send, until } from './support.ts'

let daemon: TestDaemon
let web: string
let shop: string

beforeAll(async () => {
  daemon = await TestDaemon.start()
  web = (await daemon.call('project_create', { name: 'Web' })).project_id
  shop = (await daemon.call('project_create', { name: 'Shop' })).project_id
})
afterAll(() => daemon.remove())

/** One that a test leaves open, because it failed, would be counted by the next. */
const open: Stream[] = []
afterEach(() => {
  for (const stream of open.splice(0)) stream.close()
})
async function listen(options?: StreamOptions): Promise<Stream> {
  const stream = await Stream.open(daemon, options)
  open.push(stream)
  return stream
}

const types = (stream: Stream) => stream.events.map((event) => event.type)
/** Of the tasks that it heard of, but for markers. */
const titles = (stream: Stream) =>
  stream.events.filter((event) => event.type === 'task.created' && event.data.data.title !== MARKER).map((event) => event.data.data.title)
const agentIn = (project_id?: string) => daemon.call('agent_invite', { role: 'orchestrator', project_id })
const task = (project_id: string, title = 'x') => daemon.call('task_create', { project_id, title })
const cursor = async (): Promise<string> => (await daemon.call('task_list')).cursor

/** Something in each project, so that everybody hears one: what was not heard before it was not sent. */
async function marker(...streams: Stream[]): Promise<void> {
  const ids = [(await task(web, MARKER)).task_id, (await task(shop, MARKER)).task_id]
  for (const stream of streams) await stream.heard((events) => events.some((event) => ids.includes(event.data.subject)))
}
const MARKER = 'marker'

describe('GET /api/events', () => {
  test('[E3] what one does, all who may know hear, in one order', async () => {
    const streams = await Promise.all(Array.from({ length: 5 }, () => listen()))
    const made = await Promise.all(Array.from({ length: 20 }, (_, i) => task(web, `${i}`)))
    const { task_id } = await task(web, MARKER)
    for (const stream of streams) await stream.heard((events) => events.some((event) => event.data.subject === task_id))
    const order = streams[0]?.events.map((event) => event.id)
    for (const stream of streams) {
      expect(stream.events.map((event) => event.id)).toEqual(order)
      expect(titles(stream)).toHaveLength(20)
      expect(new Set(stream.events.slice(0, 20).map((event) => event.data.subject))).toEqual(new Set(made.map((answer) => answer.task_id)))
      stream.close()
    }
  })

  test('[E3] whoever joins in the middle of the traffic hears each event once, and none is missing', async () => {
    const before = await cursor()
    let on = true
    let last = ''
    const writers = Array.from({ length: 4 }, async () => {
      while (on) last = (await task(web)).task_id
    })
    const streams: Stream[] = []
    for (let i = 0; i < 25; i++) streams.push(await listen({ after: before, query: '?types=task.created' }))
    on = false
    await Promise.all(writers)
    const { task_id } = await task(web, last)
    for (const stream of streams) await stream.heard((events) => events.at(-1)?.data.subject === task_id)
    const ids = streams[0]?.events.map((event) => event.id) as string[]
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.length).toBeGreaterThan(25)
    for (const stream of streams) {
      expect(stream.events.map((event) => event.id)).toEqual(ids)
      stream.close()
    }
  })

  test('[S2] private events and other projects never reach a reader without the right, live, resumed or waited for', async () => {
    const [inWeb, inShop, anywhere] = [await agentIn(web), await agentIn(shop), await agentIn()]
    const before = await cursor()
    const readers = [daemon.token, inWeb.token, inShop.token, anywhere.token]
    const live = await Promise.all(readers.map((token) => listen({ token })))
    const invited = await daemon.call('agent_invite', { role: 'worker', project_id: web })
    await daemon.call('setting_update', { key: 'limits.agent_burst', value: 499 })
    await daemon.call('token_rotate', { token_id: invited.token_id })
    await daemon.call('token_revoke', { agent_id: invited.agent_id })
    await daemon.call('person_invite', { name: 'Eve' })
    await task(web, 'web')
    await task(shop, 'shop')
    await marker(...live)
    const resumed = await Promise.all(readers.map((token) => listen({ token, after: before })))
    await marker(...resumed)
    const waited = await Promise.all(readers.map((token) => daemon.call('event_wait', { cursor: before, limit: 200 }, token)))

    const seen = (events: { type: string; data: { title?: string } }[]) =>
      events
        .filter((event) => event.data.title !== MARKER)
        .map((event) => (event.type === 'task.created' ? `task ${event.data.title}` : event.type))
    const everything = ['agent.invited', 'setting.changed', 'token.rotated', 'token.ended', 'person.invited', 'task web', 'task shop']
    const allowed = [everything, ['task web'], ['task shop'], ['task web', 'task shop']]
    for (const [i, expected] of allowed.entries()) {
      const streamed = (stream: Stream | undefined) => seen(stream?.events.map((event) => event.data) ?? [])
      expect(streamed(live[i])).toEqual(expected)
      expect(streamed(resumed[i])).toEqual(expected)
      expect(seen(waited[i].events)).toEqual(expected)
    }
    for (const stream of [...live, ...resumed]) stream.close()
  })

  test('[S2] a stream ends with its token: revoked or rotated, also when more comes in the same commit', async () => {
    const [revoked, rotated] = [await agentIn(web), await agentIn(web)]
    const ended = await Promise.all([revoked, rotated].map(({ token }) => listen({ token })))
    const stays = await listen()
    // In one packet, so that one commit holds the end of the token and what must not be heard any more.
    const post = (tool: string, input: object, last = false) => {
      const body = JSON.stringify(input)
      const head = `POST /api/tools/${tool} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${daemon.token}\r\ncontent-type: application/json\r\n`
      return `${head}content-length: ${body.length}\r\nconnection: ${last ? 'close' : 'keep-alive'}\r\n\r\n${body}`
    }
    const after = (n: number) => post('task_create', { project_id: web, title: `after ${n}` })
    await exchange(
      daemon,
      [
        post('token_revoke', { agent_id: revoked.agent_id }),
        post('token_rotate', { token_id: rotated.token_id }),
        ...[1, 2, 3].map(after),
        post('task_create', { project_id: web, title: 'last' }, true),
      ].join(''),
    )
    await Promise.all(ended.map((stream) => stream.ended))
    expect(ended.map((stream) => types(stream))).toEqual([[], []])
    await marker(stays)
    expect(titles(stays)).toEqual(['after 1', 'after 2', 'after 3', 'last'])
    expect((await daemon.call('system_health')).ok).toBe(true)
    await expect(listen({ token: revoked.token })).rejects.toThrow('401')
    stays.close()
  })

  test('[E4] a filter lets through what it names', async () => {
    const before = await cursor()
    const { task_id } = await task(web)
    await daemon.call('task_note', { task_id, body: 'x' })
    await task(shop)
    await daemon.call('setting_update', { key: 'limits.agent_burst', value: 498 })
    await daemon.call('task_move', { task_id, status: 'IN_PROGRESS' })
    const wanted: [string, string[]][] = [
      ['', ['task.created', 'task.noted', 'task.created', 'setting.changed', 'task.moved']],
      ['?types=task.*', ['task.created', 'task.noted', 'task.created', 'task.moved']],
      ['?types=task.moved,setting.changed', ['setting.changed', 'task.moved']],
      [`?project=${web}`, ['task.created', 'task.noted', 'task.moved']],
      [`?task=${task_id}&types=task.noted`, ['task.noted']],
      ['?types=task', []],
      ['?types=nothing.*', []],
      ['?types=%', []],
    ]
    for (const [query, expected] of wanted) {
      const resumed = await listen({ after: before, query: encodeURI(query) })
      await resumed.heard((events) => events.length >= expected.length)
      expect([query, types(resumed)]).toEqual([query, expected])
      resumed.close()
    }
    for (const query of ['?project=nothing', "?task=x' OR 1=1", `?project=${task_id}`])
      await expect(listen({ query: encodeURI(query) })).rejects.toThrow('404')
    const live = await listen({ query: '?types=task.noted' })
    await daemon.call('task_move', { task_id, status: 'BACKLOG' })
    await daemon.call('task_note', { task_id, body: 'x' })
    await live.heard((events) => events.length > 0)
    expect(types(live)).toEqual(['task.noted'])
    live.close()
  })

  test('[E4] a cursor that this log never gave is a clear answer, not a silent stream', async () => {
    for (const after of ['1.zzzzzz', '9.1', 'nonsense', '-1', '1.-1', "1.1' OR 1=1", '1.zzzzzzzzzzz', 'x'.repeat(5_000)]) {
      const answer = await send(daemon.url, { path: '/api/events', headers: { ...bearer(daemon.token), 'last-event-id': after } })
      expect([after.slice(0, 20), answer.status, answer.json.error.code]).toEqual([after.slice(0, 20), 400, 'INVALID_CURSOR'])
    }
  })
})

describe('readers that do not keep up', () => {
  /** About 18 kB in one event, for people only. */
  const bulky = (n: number) => {
    const value = Array.from({ length: 100 }, (_, i) => `${n} ${i} `.padEnd(60, '鉄'))
    return daemon.call('setting_update', { key: 'roles.planner.deny', value })
  }
  const ONLY_BULKY = '?types=setting.changed'
  const numbers = (stream: Stream) =>
    stream.events.map((event) => event.data.data.value[0]).map((text: string) => Number(text.split(' ')[0]))

  test('[S15] one that stops reading is cut off; it comes back with Last-Event-ID and has missed nothing', async () => {
    await until(async () => (await streamsOpen()) === 0, 'nobody else listens')
    const start = await cursor()
    const slow = await listen({ query: ONLY_BULKY })
    const quick = await listen({ query: ONLY_BULKY })
    slow.pause()
    let count = 0
    while ((await streamsOpen()) === 2) {
      await Promise.all(Array.from({ length: 20 }, () => bulky(count++)))
      expect(count).toBeLessThan(1_500)
    }
    await quick.heard((events) => events.length === count)
    slow.resume()
    await slow.ended
    expect(slow.events.length).toBeLessThan(count)
    const back = await listen({ query: ONLY_BULKY, after: slow.last })
    await back.heard((events) => slow.events.length + events.length >= count)
    expect([...numbers(slow), ...numbers(back)]).toEqual(numbers(quick))
    expect(new Set(numbers(quick)).size).toBe(count)

    // However long the backlog is, it comes in one go as fast as it is read, with what happens meanwhile behind it.
    const late = await listen({ query: ONLY_BULKY, after: start })
    late.pause()
    await Promise.all(Array.from({ length: 20 }, () => bulky(count++)))
    late.resume()
    await late.heard((events) => events.length >= count)
    await quick.heard((events) => events.length === count)
    expect(numbers(late)).toEqual(numbers(quick))
    for (const stream of [quick, back, late]) stream.close()
    await until(async () => (await streamsOpen()) === 0, 'all are gone')
  })

  test('[S15] many readers cost the others nothing: all hear, calls stay fast', async () => {
    const streams = await Promise.all(Array.from({ length: 200 }, () => listen()))
    const sleepers = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const socket = await dial(daemon)
        socket.write(`GET /api/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${daemon.token}\r\n\r\n`)
        await once(socket, 'readable')
        return socket
      }),
    )
    const took: number[] = []
    for (let i = 0; i < 30; i++) {
      const asked = performance.now()
      await task(web, `${i}`)
      took.push(performance.now() - asked)
    }
    await marker(...streams)
    for (const stream of streams) expect(titles(stream)).toHaveLength(30)
    // Half of them: a machine may stand still in the middle of one.
    expect(took.sort((a, b) => a - b)[15]).toBeLessThan(5_000)
    for (const stream of streams) stream.close()
    for (const socket of sleepers) socket.destroy()
    await until(async () => (await streamsOpen()) === 0, 'all are gone')
  })

  async function streamsOpen(): Promise<number> {
    const { text } = await send(daemon.url, { path: '/metrics', headers: bearer(daemon.token) })
    return Number(/^signalbox_event_streams (\d+)$/m.exec(text)?.[1])
  }
})
