import { once } from 'node:events'
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import {
  type Answered,
  bearer,
  databaseOf,
  dial,
  hold,
  JSON_BODY,
  Line,
  Mcp,
  rowCounts,
  rows,
  Stream,
  send,
  socketOf,
  until,
} from './support.ts'

let daemon: TestDaemon
let project: string

beforeAll(async () => {
  daemon = await TestDaemon.start()
  project = (await daemon.call('project_create', { name: 'Web' })).project_id
})
afterAll(() => daemon.remove())

const MB = 1_000_000

/**
 * Somebody else's calls while the flood goes on: half of them take no longer than two seconds, or than a busy machine explains.
 * Not more of them: a machine that stands still in the middle of a flood that is over soon does so for most that were asked.
 */
async function staysFast(flood: () => Promise<unknown>, token = daemon.token): Promise<void> {
  const alone = await timed(Promise.resolve(), token)
  expect(await timed(flood(), token)).toBeLessThan(Math.max(2_000, 10 * alone))
}

/** How long half of them took at the most, in milliseconds. */
async function timed(flood: Promise<unknown>, token: string): Promise<number> {
  const took: number[] = []
  let on = true
  flood.finally(() => {
    on = false
  })
  do {
    const asked = performance.now()
    await daemon.call('task_list', {}, token)
    expect((await send(daemon.url, { path: '/healthz' })).json.ok).toBe(true)
    took.push(performance.now() - asked)
  } while (on || took.length < 10)
  await flood
  return took.sort((a, b) => a - b)[Math.floor(took.length / 2)] as number
}

const post = (path: string, body: string | Buffer, token = daemon.token, more: OutgoingHttpHeaders = {}) => {
  const headers = { ...bearer(token), ...JSON_BODY, accept: 'application/json, text/event-stream', ...more }
  return send(daemon.url, { method: 'POST', path, headers, body })
}

/** The daemon listens on for half a second after its refusal; a client that is still sending then may not get to read it. */
async function heardOut(ask: () => Promise<Answered>): Promise<Answered> {
  let answer: Answered | undefined
  await until(async () => {
    answer = await ask().catch(() => undefined)
    return answer
  }, 'the refusal is heard')
  return answer as Answered
}

describe('[S15] big and deep', () => {
  test('[S15] a body of 10 MB is PAYLOAD_TOO_LARGE on every address, said or chunked, and costs the others nothing', async () => {
    const before = rowCounts(databaseOf(daemon))
    const body = Buffer.from(JSON.stringify({ title: 'x'.repeat(10 * MB) }))
    await staysFast(async () => {
      for (const path of ['/api/tools/task_create', '/mcp']) {
        for (const length of [{}, { 'transfer-encoding': 'chunked' }]) {
          const answer = await heardOut(() => post(path, body, daemon.token, length))
          expect([path, answer.status, answer.json?.error?.code]).toEqual([path, 413, 'PAYLOAD_TOO_LARGE'])
          expect(answer.json.error.message).toContain('1048576')
        }
      }
    })
    expect(rowCounts(databaseOf(daemon))).toEqual(before)
  })

  test('[S15] a line of 10 MB ends that connection to the socket and no other', async () => {
    const other = await Line.begin(daemon, socketOf(daemon))
    const line = await Line.begin(daemon, socketOf(daemon))
    line.write({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'task_create', arguments: { title: 'x'.repeat(10 * MB) } } })
    await line.closed
    expect((await other.rpc('tools/call', { name: 'agent_me', arguments: {} })).result.isError).toBeUndefined()
    other.socket.destroy()
    const { welcome } = await Line.open(daemon, socketOf(daemon))
    expect(welcome.ok).toBe(true)
  })

  const DEEP = 500_000
  const deepArrays = (levels = DEEP) => '['.repeat(levels) + ']'.repeat(levels)
  const deepObjects = (levels = 170_000) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

  test('[S15] a megabyte of nesting is refused in words, wherever it is put', async () => {
    const before = rowCounts(databaseOf(daemon))
    for (const deep of [deepArrays(), deepObjects()]) {
      const inTool = await post('/api/tools/task_create', `{"title":${deep}}`)
      expect([inTool.status, inTool.json.error.code]).toEqual([400, 'INVALID_INPUT'])
      const bare = await post('/api/tools/task_create', deep)
      expect([bare.status, bare.json.error.code]).toEqual([400, 'INVALID_INPUT'])
      const unknown = await post('/api/tools/no_such_tool', `{"x":${deep}}`)
      expect([400, 404]).toContain(unknown.status)

      const mcp = await Mcp.begin(daemon)
      const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"task_create","arguments":{"title":${deep}}}}`
      const inSession = await mcp.post(call)
      expect(refusalOf(inSession.json)).toMatch(/INVALID_INPUT|nest|deep/i)
      for (const message of [
        deep,
        `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"experimental":${deep}},"clientInfo":{"name":"x","version":"1"}}}`,
        `{"jsonrpc":"2.0","id":${deep},"method":"ping"}`,
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_me","arguments":{},"_meta":{"progressToken":1,"x":${deep}}}}`,
      ]) {
        const answer = await post('/mcp', message)
        expect([message.slice(0, 60), answer.status]).toEqual([message.slice(0, 60), expect.toBeOneOf([200, 400])])
        expect(answer.text).not.toContain('INTERNAL_ERROR')
      }
      const line = await Line.begin(daemon, socketOf(daemon))
      line.write(call.replace('"id":1', '"id":77'))
      const answer = await Promise.race([line.find((message) => message.id === 77), line.closed.then(() => 'closed')])
      if (answer !== 'closed') expect(refusalOf(answer)).toMatch(/INVALID_INPUT|nest|deep/i)
      line.socket.destroy()
    }
    expect((await daemon.call('system_health')).ok).toBe(true)
    expect(rowCounts(databaseOf(daemon))).toEqual(before)
    expect(daemon.log).not.toMatch(/RangeError|Maximum call stack/)
  })

  // biome-ignore lint/suspicious/noExplicitAny: an answer of either kind
  const refusalOf = (answer: any): string => JSON.stringify(answer?.error ?? answer?.result?.structuredContent?.error ?? answer)

  test('[S15] thousands of ids, tasks or keys in one call are refused by their number', async () => {
    const ids = Array.from({ length: 5_000 }, (_, i) => `T-${i + 1}`)
    const before = rowCounts(databaseOf(daemon))
    for (const [tool, input] of [
      ['task_list', { exclude_task_ids: ids }],
      ['task_create', { title: 'x', blocked_by: ids }],
      ['plan_propose', { tasks: ids.map((title) => ({ title })) }],
      ['event_wait', { types: ids }],
      ['task_create', Object.fromEntries(ids.map((id) => [id, 1]))],
      ['setting_update', { key: 'roles.worker.allow', value: ids }],
    ] as const) {
      const asked = performance.now()
      const { status, error } = await daemon.post(tool, input)
      expect([tool, status, error.code]).toEqual([tool, 400, 'INVALID_INPUT'])
      expect(error.message.length).toBeLessThan(2_000)
      expect(performance.now() - asked).toBeLessThan(30_000)
    }
    expect(rowCounts(databaseOf(daemon))).toEqual(before)
  })

  test('[S15] text made to trouble a pattern does not', async () => {
    const texts = [
      'Bearer '.repeat(60_000),
      `Bearer${' '.repeat(400_000)}`,
      `sbx_${'a'.repeat(400_000)}`,
      'sk-'.repeat(140_000),
      '-'.repeat(400_000),
    ]
    for (const text of texts) {
      const asked = performance.now()
      for (const [tool, input] of [
        ['task_create', { title: 'x', [text.slice(0, 500)]: text }],
        ['repo_add', { path: `/${text}`, base_branch: text }],
      ] as const)
        expect((await daemon.post(tool, input)).error.code).toBe('INVALID_INPUT')
      expect((await daemon.post(encodeURIComponent(text.slice(0, 2_000)))).status).toBe(404)
      // Minutes, where each letter is looked at for each letter.
      expect(performance.now() - asked).toBeLessThan(30_000)
    }
  })
})

describe('[S15] storms', () => {
  test('[S15] a storm of calls from one token is limited with a clear error, while another token stays fast', async () => {
    await daemon.call('setting_update', { key: 'limits.agent_calls_per_second', value: 5 })
    await daemon.call('setting_update', { key: 'limits.agent_burst', value: 200 })
    const [noisy, quiet] = [await daemon.call('agent_invite', { role: 'worker' }), await daemon.call('person_invite', { name: 'Quiet' })]
    const answers: number[] = []
    const storm = () =>
      Promise.all(
        Array.from({ length: 10 }, async () => {
          for (let i = 0; i < 60; i++) {
            const { status, error } = await daemon.post('task_list', {}, noisy.token)
            answers.push(status)
            if (status === 429)
              expect([error.code, error.message, error.hint]).toEqual([
                'RATE_LIMITED',
                expect.stringContaining('5 calls a second'),
                expect.stringMatching(/Try again in \d+ s/),
              ])
          }
        }),
      )
    const began = performance.now()
    await staysFast(storm, quiet.token)
    const seconds = (performance.now() - began) / 1_000
    expect(new Set(answers)).toEqual(new Set([200, 429]))
    expect(answers.filter((status) => status === 200).length).toBeLessThanOrEqual(200 + 5 * (seconds + 1))
    const refused = await daemon.post('agent_me', {}, quiet.token)
    expect(refused.status).toBe(200)
    const limited = answers.filter((status) => status === 429).length
    await until(
      () => count(noisy.agent_id) === limited,
      () => `every one is counted: ${count(noisy.agent_id)} of ${limited}`,
    )
  })

  const count = (source: string) =>
    rows(databaseOf(daemon), `SELECT count FROM refusals WHERE source = ? AND reason = 'RATE_LIMITED'`, source)[0]?.count

  test('[S15] what is no call is limited too: sessions, streams, lists', async () => {
    const agent = await daemon.call('agent_invite', { role: 'worker' })
    const initialize = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
    })
    const statuses: number[] = []
    const storm = () =>
      Promise.all(
        Array.from({ length: 20 }, async () => {
          for (let i = 0; i < 20; i++) statuses.push((await post('/mcp', initialize, agent.token)).status)
        }),
      )
    await staysFast(storm)
    expect(statuses).toContain(429)
    for (const path of ['/api/tools', '/metrics', '/api/events']) {
      const status = async () => {
        const asked = hold(daemon.url, { path, headers: bearer(agent.token) })
        const [{ statusCode }] = (await once(asked, 'response')) as [IncomingMessage]
        asked.destroy()
        return statusCode
      }
      // Many at once: one after the other might be slower than what is granted in a second.
      const statuses = () => Promise.all(Array.from({ length: 20 }, status))
      await until(async () => (await statuses()).includes(429), `${path} is limited`)
    }
    expect((await daemon.call('system_health')).ok).toBe(true)
  })

  test('[S15] of one token a thousand sessions are kept, the oldest go first', async () => {
    const agent = await daemon.call('agent_invite', { role: 'worker' })
    const sessions = () => rows(databaseOf(daemon), 'SELECT id FROM mcp_sessions WHERE token = ? ORDER BY id', agent.token_id)
    const first = await Mcp.begin(daemon, agent.token)
    const db = new DatabaseSync(databaseOf(daemon))
    db.exec('PRAGMA busy_timeout = 60000')
    db.prepare(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
       INSERT INTO mcp_sessions SELECT id || '-' || i, token, dialect, lane, initialize, at, seen_at - i, subscriptions FROM mcp_sessions, n WHERE id = ?`,
    ).run(first.session as string)
    db.close()
    expect(sessions()).toHaveLength(1_001)
    const last = await Mcp.begin(daemon, agent.token)
    const kept = sessions().map((row) => row.id)
    expect(kept).toHaveLength(1_000)
    expect(kept).toEqual(expect.arrayContaining([first.session, last.session]))
    expect(kept).not.toContain(`${first.session}-1000`)
  })

  test('[S15] one token has at most 2,000 calls open', async () => {
    const line = await Line.begin(daemon, socketOf(daemon))
    const waits = Array.from({ length: 2_050 }, () =>
      line.rpc('tools/call', { name: 'event_wait', arguments: { types: ['task.deleted'], timeout_seconds: 600 } }),
    )
    const refused: string[] = []
    for (const wait of waits) wait.then((answer) => refused.push(answer.result?.structuredContent.error?.code)).catch(() => {})
    await until(
      () => refused.length === 50,
      () => `fifty are refused, not ${refused.length}`,
    )
    expect(new Set(refused)).toEqual(new Set(['RATE_LIMITED']))
    const other = await daemon.call('agent_invite', { role: 'worker' }).catch((error: Error) => error.message)
    expect(other).toContain('RATE_LIMITED')
    line.socket.destroy()
    await until(async () => (await daemon.post('system_health')).result?.waiting_calls === 0, 'all are gone')
  })
})

/** So many requests of a megabyte without their last bytes; `statuses` grows with the answers. */
async function halfSent(count: number, token: string, path: string) {
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${MB}\r\n\r\n`
  const statuses: number[] = []
  const sockets = await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = await dial(daemon)
      socket.once('data', (data) => statuses.push(Number(String(data).split(' ')[1])))
      socket.write(head)
      socket.write(Buffer.alloc(MB - 10, 'x'))
      return socket
    }),
  )
  return { statuses, end: () => sockets.forEach((socket) => void socket.destroy()) }
}

const resident = async () =>
  Number(/resident_bytes (\d+)/.exec((await send(daemon.url, { path: '/metrics', headers: bearer(daemon.token) })).text)?.[1])

describe('[S15] many megabytes', () => {
  test.each(['/api/tools/task_create', '/mcp', '/mcp/execute'])(
    '[S15] a token that nobody knows is refused before its megabyte is read, at %s',
    async (path) => {
      const before = await resident()
      const { statuses, end } = await halfSent(200, `sbx_agent_${'a'.repeat(43)}`, path)
      await until(
        () => statuses.length === 200,
        () => `200 answers, not ${statuses.length}`,
      )
      expect(new Set(statuses)).toEqual(new Set([401]))
      expect((await resident()) - before).toBeLessThan(100 * MB)
      end()
    },
  )

  test('[S15] one token has no more than 16 MB under way; another is served meanwhile, and so is the first when it is over', async () => {
    const agent = await daemon.call('agent_invite', { role: 'worker' })
    const { statuses, end } = await halfSent(16, agent.token, '/api/tools/task_note')
    const big = JSON.stringify({ body: 'x'.repeat(MB - 100) })
    const ask = (token?: string) => post('/api/tools/task_note', big, token)
    let refused: Answered | undefined
    await until(async () => {
      refused = await ask(agent.token)
      return refused.status === 429
    }, 'all of it has arrived')
    expect(refused?.json.error).toMatchObject({ code: 'RATE_LIMITED', message: expect.stringContaining('16 MB') })
    expect(statuses).toEqual([])
    expect((await ask()).json.error.code).toBe('INVALID_INPUT')
    end()
    await until(async () => (await ask(agent.token)).status === 400, 'there is room again')
  })
})

describe('[S15] slow and silent', () => {
  test('[S15] hundreds of half-sent requests hold up nobody', async () => {
    const half = [
      'GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a',
      `POST /api/tools/task_create HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${daemon.token}\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{"ti`,
      `POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${daemon.token}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"js`,
      '',
    ]
    const sockets = await Promise.all(
      Array.from({ length: 300 }, async (_, i) => {
        const socket = await dial(daemon)
        socket.write(half[i % half.length] as string)
        return socket
      }),
    )
    const streams = await Promise.all(Array.from({ length: 20 }, () => Stream.open(daemon)))
    await staysFast(async () => {
      for (let i = 0; i < 50; i++) await daemon.call('task_create', { project_id: project, title: `${i}` })
    })
    for (const socket of sockets) socket.destroy()
    for (const stream of streams) stream.close()
    expect((await daemon.call('system_health')).ok).toBe(true)
  })

  test('[S15] who says nothing on the socket, or too much before hello, is let go', async () => {
    const silent = connect(socketOf(daemon))
    silent.on('error', () => {})
    const talker = connect(socketOf(daemon))
    talker.on('error', () => {})
    const closed = Promise.all([silent, talker].map((socket) => new Promise((resolve) => socket.resume().once('close', resolve))))
    talker.write('x'.repeat(100_000))
    await closed
    expect((await daemon.call('system_health')).ok).toBe(true)
  })

  test('[S15] after all that it is as it was', async () => {
    await until(async () => (await daemon.call('system_health')).waiting_calls === 0, 'nobody waits')
    expect(await daemon.call('system_health', { deep: true })).toMatchObject({ ok: true, notices: [] })
    expect(daemon.log).not.toMatch(/"level":50/)
  })
})
