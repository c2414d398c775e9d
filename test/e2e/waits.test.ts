import { once } from 'node:events'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { bearer, databaseOf, dial, Line, Mcp, Stream, send, socketOf, until, waiting } from './support.ts'

let daemon: TestDaemon
let task: { task_id: string; handle: string }

beforeAll(async () => {
  daemon = await TestDaemon.start()
  await daemon.call('project_create', { name: 'Web' })
})
afterAll(() => daemon.remove())
beforeEach(async () => {
  task = await daemon.call('task_create', { title: 'x' })
})

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Wait = any

const note = (body: string) => daemon.call('task_note', { task_id: task.handle, body })
const cursor = async (): Promise<string> => (await daemon.call('task_list')).cursor
const wait = (after: string, more: object = {}): Promise<Wait> => daemon.call('event_wait', { cursor: after, ...more })

/** What a client does that wants to hear everything: it goes on from its cursor, whatever happens to the daemon. */
async function follow(after: string, enough: (heard: string[]) => boolean): Promise<string[]> {
  const heard: string[] = []
  let at = after
  while (!enough(heard)) {
    const answer = await wait(at, { types: ['task.noted'] }).catch(async () => {
      await until(() => reachable(), 'the daemon is back')
      return { events: [], cursor: at }
    })
    heard.push(...answer.events.map((event: Wait) => event.data.note_id))
    at = answer.cursor
  }
  return heard
}

async function reachable(): Promise<boolean> {
  return send(daemon.url, { path: '/healthz' }).then(
    () => true,
    () => false,
  )
}

describe('[F25] waits', () => {
  test('[F25] what happens between the snapshot and the wait is delivered at once', async () => {
    const before = await cursor()
    await daemon.call('task_move', { task_id: task.handle, status: 'IN_PROGRESS' })
    expect(await wait(before, { timeout_seconds: 30 })).toMatchObject({ code: 'EVENTS', events: [{ type: 'task.moved' }] })
    expect(await daemon.call('task_wait', { task_id: task.handle, cursor: before, timeout_seconds: 30 })).toMatchObject({
      code: 'TASK_CHANGED',
    })
    const { context } = { context: await daemon.call('task_context', { task_id: task.handle }) }
    await note('x')
    expect(await wait(context.cursor)).toMatchObject({ events: [{ type: 'task.noted' }] })
  })

  test('[F25] a waiter that vanishes leaves nothing behind, on every surface', async () => {
    const mcp = await Mcp.begin(daemon)
    const line = await Line.begin(daemon, socketOf(daemon))
    const aborts = Array.from({ length: 20 }, () => new AbortController())
    for (const { signal } of aborts) daemon.post('event_wait', {}, daemon.token, { signal }).catch(() => {})
    const gone = Array.from({ length: 20 }, (_, i) => (i % 2 ? mcp.hold('event_wait') : mcp.holdModern('event_wait')))
    for (let i = 0; i < 20; i++) line.rpc('tools/call', { name: 'event_wait', arguments: {} }).catch(() => {})
    await until(
      async () => (await waiting(daemon)) === 60,
      async () => `sixty wait, not ${await waiting(daemon)}`,
    )
    for (const abort of aborts) abort.abort()
    for (const request of gone) request.destroy()
    line.socket.destroy()
    await until(
      async () => (await waiting(daemon)) === 0,
      async () => `nobody waits any more, not ${await waiting(daemon)}`,
    )
    // The daemon's own, and this MCP session's.
    await until(async () => (await daemon.call('system_health')).event_readers <= 5, 'their readers are gone')
  })

  test('[F25] 500 waiters are woken by one event, none twice, none left', async () => {
    const before = await cursor()
    const waits = Array.from({ length: 500 }, () => wait(before, { types: ['task.noted'], timeout_seconds: 600 }))
    await until(async () => (await waiting(daemon)) === 500, 'five hundred wait')
    const { note_id } = await note('wake up')
    const answers = await Promise.all(waits)
    expect(new Set(answers.map((answer) => answer.events.map((event: Wait) => event.data.note_id).join()))).toEqual(new Set([note_id]))
    await until(async () => (await waiting(daemon)) === 0, 'none is left')
  })

  test.each(['SIGTERM', 'SIGKILL'] as const)('[F25] over a restart by %s waits resume by cursor and miss nothing', async (signal) => {
    const written: string[] = []
    const all = (heard: string[]) => heard.length >= 60
    const before = await cursor()
    const followers = Array.from({ length: 30 }, () => follow(before, all))
    for (let i = 0; i < 20; i++) written.push((await note(`${i}`)).note_id)
    await until(async () => (await waiting(daemon)) === 30, 'all wait again')
    await daemon.end(signal)
    await daemon.start()
    for (let i = 20; i < 60; i++) written.push((await note(`${i}`)).note_id)
    for (const heard of await Promise.all(followers)) expect(heard).toEqual(written)
    await until(async () => (await waiting(daemon)) === 0, 'none is left')
  })

  test('[F25] SSE with Last-Event-ID over SIGKILL and restart misses and repeats nothing', async () => {
    const written: string[] = []
    const readers = await Promise.all(Array.from({ length: 10 }, () => Stream.open(daemon)))
    const heard: string[][] = readers.map(() => [])
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 15; i++) written.push((await note('x')).note_id)
      // Half of them are cut in the middle of what they have not read yet.
      await Promise.all(readers.filter((_, i) => i % 2).map((reader) => reader.heard((events) => events.length >= 15)))
      await daemon.end('SIGKILL')
      await Promise.all(readers.map((reader) => reader.ended))
      await daemon.start()
      for (const [i, reader] of readers.entries()) {
        heard[i]?.push(...reader.events.map((event) => event.data.data.note_id))
        readers[i] = await Stream.open(daemon, { after: reader.last })
      }
    }
    const { note_id } = await note('last')
    written.push(note_id)
    for (const [i, reader] of readers.entries()) {
      await reader.heard((events) => events.at(-1)?.data.data.note_id === note_id)
      expect([...(heard[i] as string[]), ...reader.events.map((event) => event.data.data.note_id)]).toEqual(written)
      reader.close()
    }
  })
})

describe('[F27] the end', () => {
  test('[F27] with 200 waits, streams, hung connections and a deep check it ends in time, and every wait hears so', async () => {
    await makeCheckSlow()
    const mcp = await Mcp.begin(daemon)
    const line = await Line.begin(daemon, socketOf(daemon))
    const before = await cursor()
    const args = { cursor: before, timeout_seconds: 600 }
    const asked: Promise<Wait>[] = [
      ...Array.from({ length: 50 }, () => wait(before, { timeout_seconds: 600 })),
      ...Array.from({ length: 30 }, () => daemon.call('task_wait', { task_id: task.handle, ...args })),
      ...Array.from({ length: 40 }, async () => (await mcp.tool('event_wait', args)).structuredContent),
      ...Array.from({ length: 40 }, async () => {
        const answer = await mcp.modern('tools/call', { name: 'event_wait', arguments: args }, 'event_wait')
        return answer.json?.result.structuredContent
      }),
      ...Array.from(
        { length: 40 },
        async () => (await line.rpc('tools/call', { name: 'event_wait', arguments: args })).result.structuredContent,
      ),
    ]
    const answers = asked.map((answer) => answer.catch((error: Error) => ({ lost: error.message })))
    const streams = await Promise.all(Array.from({ length: 20 }, () => Stream.open(daemon)))
    const hung = await dial(daemon)
    hung.write('GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow')
    const halfBody = await dial(daemon)
    halfBody.write(`POST /api/tools/task_note HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${daemon.token}\r\n`)
    halfBody.write('content-type: application/json\r\ncontent-length: 1000\r\n\r\n{"task_id"')
    const shut = Promise.all([hung, halfBody].map((socket) => once(socket.resume(), 'close')))
    await until(
      async () => (await waiting(daemon)) === 200,
      async () => `two hundred wait, not ${await waiting(daemon)}`,
    )
    const check = daemon.post('system_health', { deep: true }).catch(() => 'cut')
    // A later answer on the same daemon shows that the check was taken up.
    await send(daemon.url, { path: '/metrics', headers: bearer(daemon.token) })

    const began = performance.now()
    const code = await daemon.end()
    const took = performance.now() - began
    expect([0, 1]).toContain(code)
    // Its own limit, after which it ends with 1, is 5 s; the rest is a busy machine's.
    expect(took).toBeLessThan(30_000)
    const ended = await Promise.all(answers)
    const told = ended.filter((answer) => answer?.code === 'WAIT_INTERRUPTED' && answer.cursor === before && answer.resume === true)
    expect(ended.filter((answer) => !told.includes(answer)).slice(0, 3)).toEqual([])
    await Promise.all([check, shut, ...streams.map((stream) => stream.ended)])

    await daemon.start()
    if (code === 0) expect((await daemon.call('system_health')).notices).toEqual([])
    await note('after')
    expect(await wait(before)).toMatchObject({ code: 'EVENTS' })
  })

  test('[F27] a second signal does not wait for the deadline', async () => {
    const hung = await dial(daemon)
    hung.write('POST /api/tools/task_note HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n')
    const ends = daemon.end()
    process.kill(daemon.pid, 'SIGINT')
    expect([0, 1]).toContain(await ends)
    await daemon.start()
  })

  test('[F27] a write that was accepted is answered and kept', async () => {
    const writes = Array.from({ length: 40 }, (_, i) => note(`${i}`).then((answer) => answer.note_id as string))
    await Promise.race(writes)
    await daemon.end()
    const kept = (await Promise.allSettled(writes)).flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    expect(kept.length).toBeGreaterThan(0)
    await daemon.start()
    const stored = (await daemon.call('task_get', { task_id: task.handle, notes: 200 })).task.notes.map((row: Wait) => row.id)
    for (const id of kept) expect(stored).toContain(id)
  })

  /** Enough rows and indexes that reading them all takes seconds. */
  async function makeCheckSlow(): Promise<void> {
    await daemon.end()
    const db = new DatabaseSync(databaseOf(daemon))
    db.exec(`PRAGMA synchronous = OFF; CREATE TABLE filler (a INTEGER, b TEXT, c TEXT);
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
      INSERT INTO filler SELECT i * 7919 % 1000003, hex(i * 7919 % 1000003), hex(i) FROM n;
      CREATE INDEX f1 ON filler (a); CREATE INDEX f2 ON filler (b, a); CREATE INDEX f3 ON filler (c, b);
      PRAGMA wal_checkpoint(TRUNCATE)`)
    db.close()
    await daemon.start()
  }
})
