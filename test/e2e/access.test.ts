import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import {
  bearer,
  databaseOf,
  dial,
  exchange,
  JSON_BODY,
  LEGACY,
  Line,
  Mcp,
  rowCounts,
  rows,
  type Sent,
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

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'e2e', version: '1' } },
})
const ACCEPT = { accept: 'application/json, text/event-stream' }

/** One request to every address that answers; each is fine but for what a test spoils in it. */
function everySurface(token: string): Sent[] {
  const auth = bearer(token)
  return [
    { path: '/healthz', headers: auth },
    { path: '/metrics', headers: auth },
    { path: '/api/tools', headers: auth },
    { path: '/api/events', headers: auth },
    { method: 'POST', path: '/api/tools/task_create', headers: { ...auth, ...JSON_BODY }, body: JSON.stringify({ title: 'x' }) },
    { method: 'POST', path: '/mcp', headers: { ...auth, ...JSON_BODY, ...ACCEPT }, body: INITIALIZE },
    { path: '/mcp', headers: { ...auth, ...ACCEPT } },
    { method: 'DELETE', path: '/mcp', headers: auth },
    { path: '/nowhere', headers: auth },
  ]
}
const NEEDS_A_TOKEN = (sent: Sent) => !['/healthz', '/nowhere'].includes(sent.path)

function refusals(reason: string): number {
  return rows(databaseOf(daemon), 'SELECT sum(count) AS n FROM refusals WHERE reason = ?', reason)[0].n ?? 0
}

/** Refusals are written in batches: when the one of this call is there, so are all that came before it. */
async function refusalsSoFar(reason: 'FOREIGN_SOURCE' | 'UNAUTHENTICATED'): Promise<number> {
  const other = reason === 'FOREIGN_SOURCE' ? 'UNAUTHENTICATED' : 'FOREIGN_SOURCE'
  const before = refusals(other)
  await send(daemon.url, { path: '/metrics', headers: other === 'FOREIGN_SOURCE' ? { host: 'marker.example' } : {} })
  await until(() => refusals(other) > before, 'the marker is counted')
  return refusals(reason)
}

/** Runs it and expects that it wrote nothing but its own record. */
async function writesNothing(run: () => Promise<void>): Promise<void> {
  const before = rowCounts(databaseOf(daemon))
  await run()
  expect(rowCounts(databaseOf(daemon))).toEqual(before)
}

describe('[S1] DNS rebinding and foreign pages', () => {
  const port = () => new URL(daemon.url).port

  test('[S1] a foreign Host is refused on every surface, with the right token too', async () => {
    const before = await refusalsSoFar('FOREIGN_SOURCE')
    const hosts = [
      'evil.example',
      `evil.example:${port()}`,
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      '0.0.0.0',
      '[::]',
      '127.0.0.2',
    ]
    await writesNothing(async () => {
      for (const host of hosts) {
        for (const sent of everySurface(daemon.token)) {
          const answer = await send(daemon.url, { ...sent, headers: { ...sent.headers, host } })
          expect([sent.path, host, answer.status, answer.json?.error?.code]).toEqual([sent.path, host, 403, 'PERMISSION_DENIED'])
        }
      }
    })
    await until(() => refusals('FOREIGN_SOURCE') === before + hosts.length * everySurface('').length, 'every refusal is counted')
  })

  test('[S1] a request without any Host is refused', async () => {
    for (const line of ['GET /healthz HTTP/1.0', 'GET http://evil.example/api/tools HTTP/1.0']) {
      const answer = await exchange(daemon, `${line}\r\nauthorization: Bearer ${daemon.token}\r\n\r\n`)
      expect(answer.split('\r\n')[0]).toMatch(/^HTTP\/1.1 40[03] /)
    }
  })

  test('[S1] a foreign Origin is refused on every surface, and no answer invites one', async () => {
    const origins = [
      'http://evil.example',
      'null',
      `http://127.0.0.1:${Number(port()) + 1}`,
      'file://',
      `http://127.0.0.1:${port()}.evil.example`,
    ]
    await writesNothing(async () => {
      for (const origin of origins) {
        for (const sent of everySurface(daemon.token)) {
          const answer = await send(daemon.url, { ...sent, headers: { ...sent.headers, origin } })
          expect([sent.path, origin, answer.status]).toEqual([sent.path, origin, 403])
          expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
        }
        const preflight = {
          method: 'OPTIONS',
          path: '/api/tools/task_create',
          headers: { origin, 'access-control-request-method': 'POST' },
        }
        expect((await send(daemon.url, preflight)).status).toBe(403)
      }
    })
  })

  test('[S1] its own origin passes with a token; an absent one is no pass without', async () => {
    for (const host of [`127.0.0.1:${port()}`, `localhost:${port()}`]) {
      const own = { host, origin: `http://${host}` }
      expect((await send(daemon.url, { path: '/api/tools', headers: { ...own, ...bearer(daemon.token) } })).status).toBe(200)
      expect((await send(daemon.url, { path: '/api/tools', headers: own })).status).toBe(401)
    }
    expect((await send(daemon.url, { path: '/api/tools' })).status).toBe(401)
    expect((await send(daemon.url, { path: '/healthz' })).json).toMatchObject({ ok: true })
  })
})

describe('[S2] who cannot prove who they are', () => {
  const nobody = `sbx_person_${'A'.repeat(43)}`

  test('[S2] no token, a malformed one and a wrong one are refused everywhere and counted', async () => {
    const before = await refusalsSoFar('UNAUTHENTICATED')
    const guesses = [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      `Basic ${btoa(`owner:${daemon.token}`)}`,
      `Bearer ${nobody}`,
      `Bearer ${daemon.token}x`,
    ]
    guesses.push(
      `Bearer ${daemon.token.slice(0, -1)}`,
      `Bearer ${daemon.token.toUpperCase()}`,
      `Bearer ${daemon.token} ${daemon.token}`,
      daemon.token,
    )
    const asked = everySurface('').filter(NEEDS_A_TOKEN)
    await writesNothing(async () => {
      for (const authorization of guesses) {
        for (const sent of asked) {
          const { authorization: _, ...rest } = sent.headers ?? {}
          const answer = await send(daemon.url, { ...sent, headers: authorization === undefined ? rest : { ...rest, authorization } })
          expect([sent.path, authorization, answer.status, answer.json.error.code]).toEqual([
            sent.path,
            authorization,
            401,
            'UNAUTHENTICATED',
          ])
          expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
        }
      }
    })
    await until(() => refusals('UNAUTHENTICATED') === before + guesses.length * asked.length, 'every refusal is counted')
  })

  test('[S2] the token is taken from the header alone', async () => {
    for (const query of [`?token=${daemon.token}`, `?access_token=${daemon.token}`]) {
      for (const path of ['/api/events', '/api/tools', '/mcp']) expect((await send(daemon.url, { path: path + query })).status).toBe(401)
    }
    const cookie = { cookie: `token=${daemon.token}; authorization=Bearer ${daemon.token}` }
    expect((await send(daemon.url, { path: '/api/tools', headers: cookie })).status).toBe(401)
  })

  test('[S2] a revoked token is refused on every surface, and the refusals are on record under its holder', async () => {
    const agent = await daemon.call('agent_invite', { role: 'worker' })
    const mcp = await Mcp.begin(daemon, agent.token)
    const line = await Line.begin(daemon, socketOf(daemon), { token: agent.token })
    await daemon.call('token_revoke', { agent_id: agent.agent_id })
    await writesNothing(async () => {
      for (const sent of everySurface(agent.token).filter(NEEDS_A_TOKEN)) {
        const answer = await send(daemon.url, sent)
        expect([sent.path, answer.status, answer.json.error.code]).toEqual([sent.path, 401, 'AUTH_STALE_TOKEN'])
      }
      expect((await mcp.rpc('tools/call', { name: 'agent_me', arguments: {} })).status).toBe(401)
      const { welcome } = await Line.open(daemon, socketOf(daemon), { token: agent.token })
      expect(welcome).toMatchObject({ ok: false, code: 'AUTH_STALE_TOKEN' })
      const open = await line.rpc('tools/call', { name: 'agent_me', arguments: {} })
      expect(open.result).toMatchObject({ isError: true, structuredContent: { error: { code: 'AUTH_STALE_TOKEN' } } })
    })
    const path = databaseOf(daemon)
    const called = () => rows(path, `SELECT tool, surface FROM calls WHERE principal = ? AND code = 'AUTH_STALE_TOKEN'`, agent.agent_id)
    await until(() => called().length === 2, 'the calls are in the audit')
    expect(called().map((row) => `${row.tool} ${row.surface}`)).toEqual(['task_create http', 'agent_me stdio'])
    const counted = () =>
      rows(path, `SELECT count FROM refusals WHERE source = ? AND reason = 'AUTH_STALE_TOKEN'`, agent.agent_id)[0]?.count
    await until(
      () => counted() === 8,
      () => `metrics, tools, events, four times /mcp and the socket are counted, not ${counted()}`,
    )
  })

  test('[S2] a request that was begun before its token ended, and sent to its end after it, is refused', async () => {
    const agent = await daemon.call('agent_invite', { role: 'worker' })
    const socket = await dial(daemon)
    const head = `POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${agent.token}\r\nconnection: close\r\nexpect: 100-continue`
    socket.write(`${head}\r\ncontent-type: application/json\r\naccept: ${ACCEPT.accept}\r\ncontent-length: ${INITIALIZE.length}\r\n\r\n`)
    // The daemon asks for the body: by now it has the request in hand.
    await once(socket, 'data')
    await daemon.call('token_revoke', { agent_id: agent.agent_id })
    socket.write(INITIALIZE)
    let text = ''
    for await (const chunk of socket.setEncoding('utf8')) text += chunk
    expect(text).toMatch(/^HTTP\/1.1 401 .*AUTH_STALE_TOKEN/s)
  })

  test('[S2] a wait that is open when its token ends hears nothing more', async () => {
    const agent = await daemon.call('agent_invite', { role: 'worker' })
    const wait = daemon.post('event_wait', { types: ['task.created'], timeout_seconds: 30 }, agent.token)
    await until(async () => (await daemon.call('system_health')).waiting_calls === 1, 'it waits')
    await daemon.call('token_revoke', { agent_id: agent.agent_id })
    await daemon.call('task_create', { title: 'not for you' })
    const { status, error, result } = await wait
    expect([status, error?.code, result]).toEqual([401, 'AUTH_STALE_TOKEN', undefined])
  })

  test('[S2] the socket lets in nobody without a token that this daemon issued', async () => {
    const before = await refusalsSoFar('UNAUTHENTICATED')
    for (const token of ['', nobody, `${daemon.token}x`]) {
      const { welcome, line } = await Line.open(daemon, socketOf(daemon), { token })
      expect(welcome).toMatchObject({ ok: false, code: 'UNAUTHENTICATED' })
      await line.closed
    }
    await until(() => refusals('UNAUTHENTICATED') === before + 3, 'every refusal is counted')
    const elsewhere = await Line.open(daemon, socketOf(daemon), { home: '/somewhere/else' })
    expect(elsewhere.welcome).toMatchObject({ ok: false, code: 'CONFLICT' })
    for (const hello of [
      '{}',
      'GET / HTTP/1.1',
      '[]',
      'null',
      JSON.stringify({ signalbox: 1, home: daemon.home, token: 7, lane: 'admin' }),
    ]) {
      const { line } = await Line.open(daemon, socketOf(daemon), undefined, hello)
      await line.closed
      expect(line.lines).toMatchObject([{ ok: false, code: 'INVALID_INPUT' }])
    }
  })

  test("[S2] another agent's MCP session id is a session that does not exist, and the attempt is on record", async () => {
    const [ann, bob] = [await daemon.call('agent_invite', { role: 'orchestrator' }), await daemon.call('agent_invite', { role: 'worker' })]
    const hers = await Mcp.begin(daemon, ann.token)
    const his = new Mcp(daemon, bob.token, hers.session)
    await writesNothing(async () => {
      for (const attempt of [
        () => his.rpc('tools/call', { name: 'task_create', arguments: { project_id: project, title: 'x' } }),
        () => his.rpc('tools/list'),
        () => send(daemon.url, { path: '/mcp', headers: { ...bearer(bob.token), ...ACCEPT, 'mcp-session-id': hers.session } }),
        () => send(daemon.url, { method: 'DELETE', path: '/mcp', headers: { ...bearer(bob.token), 'mcp-session-id': hers.session } }),
      ])
        expect((await attempt()).status).toBe(404)
    })
    expect((await hers.tool('agent_me')).structuredContent.id).toBe(ann.agent_id)
    const counted = () => rows(databaseOf(daemon), `SELECT count FROM refusals WHERE source = ?`, bob.agent_id)[0]?.count
    await until(
      () => counted() === 4,
      () => `the four attempts are counted under who made them, not ${counted()}`,
    )
  })

  test('[S2] after a restart a stored session still belongs to its token alone', async () => {
    const [ann, bob] = [await daemon.call('agent_invite', { role: 'worker' }), await daemon.call('agent_invite', { role: 'worker' })]
    const hers = await Mcp.begin(daemon, ann.token)
    await daemon.end('SIGKILL')
    await daemon.start()
    const his = new Mcp(daemon, bob.token, hers.session)
    expect((await his.rpc('tools/call', { name: 'agent_me', arguments: {} })).status).toBe(404)
    expect((await hers.tool('agent_me')).structuredContent.id).toBe(ann.agent_id)
  })
})

describe('[S3] what a page can send without asking', () => {
  const body = JSON.stringify({ title: 'forged' })

  test('[S3] a form or text/plain POST is refused, with a token too', async () => {
    const types = [
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'text/plain',
      'text/plain; application/json',
      'text/json',
      '',
    ]
    await writesNothing(async () => {
      for (const type of types) {
        for (const path of ['/api/tools/task_create', '/mcp']) {
          const headers = type ? { 'content-type': type } : {}
          const withToken = await send(daemon.url, {
            method: 'POST',
            path,
            headers: { ...headers, ...ACCEPT, ...bearer(daemon.token) },
            body,
          })
          expect([path, type, withToken.status, withToken.json.error.code]).toEqual([path, type, 400, 'INVALID_INPUT'])
          expect((await send(daemon.url, { method: 'POST', path, headers, body })).status).toBe(401)
        }
      }
    })
  })

  test('[S3] a GET changes nothing', async () => {
    await writesNothing(async () => {
      for (const path of ['/api/tools/task_create?title=x', '/api/tools/token_rotate', '/api/tools/task_create'])
        expect((await send(daemon.url, { path, headers: bearer(daemon.token) })).status).toBe(404)
    })
  })

  test('[S3] SSE checks Host, Origin and token before it says a word', async () => {
    const spoilt = [{ host: 'evil.example' }, { origin: 'http://evil.example' }, { origin: 'null' }]
    for (const headers of spoilt) {
      const answer = await send(daemon.url, { path: '/api/events', headers: { ...bearer(daemon.token), ...headers } })
      expect([answer.status, answer.headers['content-type']]).toEqual([403, expect.stringContaining('json')])
    }
    await expect(Stream.open(daemon, { token: `${daemon.token}x` })).rejects.toThrow('refused with 401')
  })
})

describe('[S4] addresses that others reach', () => {
  test.each(['0.0.0.0', '::', '127.0.0.1.evil.example'])(
    '[S4] it does not start on %s unless told under which names it may be reached',
    async (host) => {
      const home = join(mkdtempSync(join(tmpdir(), 'signalbox-e2e-')), 'home')
      const { code, stderr } = await new TestDaemon({ home }).cli(['serve', '--quiet'], '', { SIGNALBOX_HOST: host, SIGNALBOX_PORT: '0' })
      expect(code).toBe(2)
      expect(stderr).toContain('SIGNALBOX_ALLOWED_HOSTS')
      expect(existsSync(home)).toBe(false)
      rmSync(join(home, '..'), { recursive: true })
    },
  )

  test('[S4] told so, it answers under those names only, and only to a token', async () => {
    const open = new TestDaemon({ env: { SIGNALBOX_HOST: '0.0.0.0', SIGNALBOX_ALLOWED_HOSTS: 'Box.example, other.example' } })
    await open.start()
    const at = (host: string, token?: string) =>
      send(`http://127.0.0.1:${new URL(open.url).port}`, { path: '/api/tools', headers: { host, ...(token ? bearer(token) : {}) } })
    expect((await at('box.example:8080', open.token)).status).toBe(200)
    expect((await at('other.example', open.token)).status).toBe(200)
    expect((await at('box.example')).status).toBe(401)
    expect((await at('evil.example', open.token)).status).toBe(403)
    await open.remove()
  })
})

describe('[S10] agent A as B', () => {
  interface Agent {
    agent_id: string
    token: string
    task: string
  }

  async function worker(): Promise<Agent> {
    const { task_id } = await daemon.call('task_create', { project_id: project, title: 'x' })
    const agent = await daemon.call('agent_invite', { role: 'worker' })
    await daemon.call('task_assign', { task_id, agent_id: agent.agent_id })
    return { ...agent, task: task_id }
  }

  /** The same attempt over HTTP and over MCP: both must end with this code. */
  async function refusedEverywhere(by: { token: string }, tool: string, input: object, code: string): Promise<void> {
    const mcp = await Mcp.begin(daemon, by.token)
    await writesNothing(async () => {
      expect([tool, (await daemon.post(tool, input, by.token)).error?.code]).toEqual([tool, code])
      const result = await mcp.tool(tool, input)
      expect([tool, result.isError, result.structuredContent.error.code]).toEqual([tool, true, code])
      const modern = await mcp.modern('tools/call', { name: tool, arguments: input }, tool)
      expect([tool, modern.json.result.structuredContent.error.code]).toEqual([tool, code])
    })
  }

  test('[S10] only a person acts for another; an agent that tries is refused and on record', async () => {
    const [ann, bob] = [await worker(), await worker()]
    await writesNothing(async () => {
      for (const name of [bob.agent_id, ann.agent_id, 'owner', 'system']) {
        const reply = await daemon.post('task_note', { task_id: bob.task, body: 'x' }, ann.token, {
          headers: { 'signalbox-act-for': name },
        })
        expect([name, reply.status, reply.error.code]).toEqual([name, 403, 'PERMISSION_DENIED'])
      }
    })
    const attempts = () => rows(databaseOf(daemon), `SELECT * FROM calls WHERE principal = ? AND outcome = 'refused'`, ann.agent_id)
    await until(
      () => attempts().length === 4,
      () => `the attempts are in the audit under who made them, not ${attempts().length}`,
    )

    const headers = { 'signalbox-act-for': bob.agent_id }
    expect((await daemon.post('task_note', { task_id: bob.task, body: 'for bob' }, daemon.token, { headers })).ok).toBe(true)
    const [row] = rows(databaseOf(daemon), `SELECT * FROM calls WHERE principal = ? AND tool = 'task_note'`, bob.agent_id)
    expect(row.acting_person).toMatch(/^person_/)
    expect((await daemon.post('task_note', { task_id: ann.task, body: 'x' }, daemon.token, { headers })).error.code).toBe(
      'PERMISSION_DENIED',
    )
  })

  test("[S10] a worker acts on its own task only, by whatever name it calls another's", async () => {
    const [ann, bob] = [await worker(), await worker()]
    const { handle } = (await daemon.call('task_get', { task_id: bob.task })).task
    for (const task_id of [bob.task, handle]) {
      await refusedEverywhere(ann, 'task_note', { task_id, body: 'x' }, 'PERMISSION_DENIED')
      await refusedEverywhere(ann, 'task_move', { task_id, status: 'IN_PROGRESS' }, 'PERMISSION_DENIED')
    }
    await refusedEverywhere(ann, 'task_move', { task_id: [ann.task, bob.task], status: 'IN_PROGRESS' }, 'INVALID_INPUT')
    await refusedEverywhere(ann, 'task_note', { task_id: { $ne: ann.task }, body: 'x' }, 'INVALID_INPUT')
    expect((await daemon.post('task_note', { task_id: ann.task, body: 'x' }, ann.token)).ok).toBe(true)
  })

  test('[S10] an orchestrator stays inside its project, also through nested ids', async () => {
    const other = (await daemon.call('project_create', { name: 'Other' })).project_id
    const theirs = await daemon.call('task_create', { project_id: other, title: 'theirs' })
    const plan = await daemon.call('plan_propose', { project_id: other, tasks: [{ title: 'planned' }] })
    const ann = await daemon.call('agent_invite', { role: 'orchestrator', project_id: project })
    const own = (await daemon.call('task_create', { project_id: project, title: 'own' }, ann.token)).task_id
    const attempts: [string, object][] = [
      ['task_create', { project_id: other, title: 'x' }],
      ['task_update', { task_id: theirs.task_id, title: 'x' }],
      ['task_move', { task_id: theirs.handle, status: 'IN_PROGRESS' }],
      ['task_close', { task_id: theirs.task_id, reason: 'x' }],
      ['plan_propose', { project_id: other, tasks: [{ title: 'x' }] }],
      ['plan_accept', { plan_id: plan.plan_id }],
      ['project_open', { project_id: other }],
    ]
    for (const [tool, input] of attempts) await refusedEverywhere(ann, tool, input, 'PERMISSION_DENIED')
    await refusedEverywhere(ann, 'task_update', { task_id: own, blocked_by: ['T-999999'] }, 'RESOURCE_NOT_FOUND')
  })

  test('[S10] no argument makes a caller somebody else or something more', async () => {
    const [ann, bob] = [await worker(), await worker()]
    const claims = [
      { agent_id: bob.agent_id },
      { author: bob.agent_id },
      { principal: { id: bob.agent_id } },
      { as: 'owner' },
      { profile: 'maintainer' },
    ]
    claims.push({ role: 'supervisor' } as never, { lane: 'admin' } as never, { constructor: { profile: 'maintainer' } } as never)
    for (const claim of claims) await refusedEverywhere(ann, 'task_note', { task_id: ann.task, body: 'x', ...claim }, 'INVALID_INPUT')
    const forbidden: [string, object][] = [
      ['agent_invite', { role: 'worker', profile: 'maintainer' }],
      ['person_invite', { name: 'Ann' }],
      ['token_list', {}],
      ['token_revoke', { agent_id: bob.agent_id }],
      ['setting_update', { key: 'roles.worker.profile', value: 'maintainer' }],
      ['task_create', { title: 'x' }],
      ['task_close', { task_id: ann.task, reason: 'x' }],
      ['task_delete', { task_id: ann.task }],
      ['repo_add', { path: '/tmp' }],
      ['audit_tail', { principal: bob.agent_id }],
    ]
    for (const [tool, input] of forbidden) await refusedEverywhere(ann, tool, input, 'PERMISSION_DENIED')
    for (const query of ['?lane=admin', '?profile=maintainer']) {
      const sent = {
        method: 'POST',
        path: `/api/tools/task_create${query}`,
        headers: { ...bearer(ann.token), ...JSON_BODY },
        body: '{"title":"x"}',
      }
      expect((await send(daemon.url, sent)).json.error.code).toBe('PERMISSION_DENIED')
    }
    expect((await daemon.call('agent_me', {}, ann.token)).id).toBe(ann.agent_id)
  })

  test('[S10] not even a supervisor with every glob manages tokens or settings', async () => {
    const boss = await daemon.call('agent_invite', { role: 'supervisor', profile: 'maintainer' })
    await daemon.call('setting_update', { key: 'roles.supervisor.allow', value: ['*'] })
    for (const [tool, input] of [
      ['agent_invite', { role: 'worker' }],
      ['token_list', {}],
      ['setting_update', { key: 'limits.agent_burst', value: 1_000_000 }],
    ] as [string, object][])
      await refusedEverywhere(boss, tool, input, 'PERMISSION_DENIED')
  })

  test('[S10] what an agent did is on record as that agent, whatever it claimed', async () => {
    const ann = await worker()
    const claims = { 'x-forwarded-user': 'owner', 'x-agent-id': 'agent_x', 'user-agent': 'signalbox-cli/9' }
    await daemon.post('task_note', { task_id: ann.task, body: 'by ann' }, ann.token, { headers: claims })
    const [note] = rows(databaseOf(daemon), 'SELECT author FROM task_notes WHERE task_id = ?', ann.task)
    expect(note.author).toBe(ann.agent_id)
    const [event] = rows(databaseOf(daemon), `SELECT actor FROM events WHERE type = 'task.noted' AND task_id = ?`, ann.task)
    expect(event.actor).toBe(ann.agent_id)
  })
})

test('[S2] nothing of all this left a socket or a session behind', async () => {
  // Beside it: the folder for the sockets of runs and terminals.
  expect(readdirSync(join(socketOf(daemon), '..'), { recursive: true }).filter((name) => name !== 'own')).toHaveLength(1)
  await until(async () => (await daemon.call('system_health')).waiting_calls === 0, 'nobody waits')
})
