import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BIN, TestDaemon } from '../../src/testing/daemon.ts'
import { bearer, databaseOf, exchange, JSON_BODY, Line, Mcp, rows, Stream, send, socketOf, until } from './support.ts'

let daemon: TestDaemon
/** Every secret that was ever good here, and where each is allowed to be. */
const secrets = new Map<string, string[]>()
const heard: string[] = []

beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { SIGNALBOX_LOG_LEVEL: 'trace' } })
})
afterAll(() => daemon.remove())

test('[S12] a day of work, mistakes included', async () => {
  const first = daemon.token
  secrets.set(first, [])
  const stream = await Stream.open(daemon)
  const project = await daemon.call('project_create', { name: 'Web' })
  const task = await daemon.call('task_create', { title: 'x' })
  const agent = await daemon.call('agent_invite', { role: 'worker', name: 'Ann', idempotency_key: 'invite' })
  const again = await daemon.call('agent_invite', { role: 'worker', name: 'Ann', idempotency_key: 'invite' })
  expect(again.token).toBeNull()
  const person = await daemon.call('person_invite', { name: 'Eve' })
  const rotated = await daemon.call('token_rotate', { token_id: agent.token_id })
  for (const { token } of [agent, person, rotated]) secrets.set(token, [])
  await daemon.call('task_assign', { task_id: task.task_id, agent_id: agent.agent_id })

  for (const token of [...secrets.keys()]) {
    const mcp = await Mcp.begin(daemon, token).catch(() => undefined)
    await mcp?.tool('agent_me')
    await mcp?.tool('task_note', { task_id: task.handle, secret: token })
    heard.push((await daemon.post('agent_me', { token }, token)).error?.message ?? '')
    // What people paste into the wrong place.
    for (const [tool, input] of [
      ['task_get', { task_id: token }],
      ['task_get', { [token]: 1 }],
      [token, {}],
      ['task_create', { title: 7, description: `use Bearer ${token} for it` }],
      ['repo_add', { path: `/tmp/${token}` }],
      ['setting_update', { key: token, value: token }],
      ['event_wait', { cursor: token }],
      ['task_list', { after: token }],
      ['token_revoke', { token_id: token }],
    ] as const)
      await daemon.post(tool, input, token)
    await daemon.post('agent_me', {}, daemon.token, { headers: { 'signalbox-act-for': token } })
    for (const path of [
      `/api/events?after=${token}`,
      `/${token}`,
      `/api/tools?dialect=${token}`,
      `/mcp?dialect=${token}`,
      `/metrics?${token}`,
    ])
      heard.push(JSON.stringify((await send(daemon.url, { path, headers: bearer(token) })).headers))
    await send(daemon.url, { path: '/api/tools', headers: { ...bearer(token), host: token } })
    await send(daemon.url, { path: '/api/tools', headers: { ...bearer(token), origin: `http://${token}` } })
    await send(daemon.url, {
      method: 'POST',
      path: '/mcp',
      headers: { ...bearer(token), ...JSON_BODY, 'mcp-session-id': token },
      body: '{}',
    })
    await send(daemon.url, { method: 'POST', path: '/mcp', headers: { ...bearer(token), ...JSON_BODY }, body: `{"token":"${token}"` })
    await exchange(daemon, `GET /${token} NONSENSE\r\n\r\n`)
    await Line.open(daemon, socketOf(daemon), { token: `${token}x` })
    await Line.open(daemon, socketOf(daemon), { token, home: token })
    await Line.open(daemon, socketOf(daemon), { token, dialect: token })
  }
  const owner = (await daemon.call('token_list')).tokens.find((row: { holder: string }) => row.holder === 'owner')
  const next = await daemon.call('token_rotate', { token_id: owner.id })
  secrets.set(next.token, ['owner.token'])
  await daemon.call('token_revoke', { agent_id: agent.agent_id })
  await daemon.call('task_move', { task_id: task.handle, status: 'IN_PROGRESS' })
  await daemon.call('setting_update', { key: 'limits.agent_burst', value: 400 })
  await daemon.call('decision_log', { title: 'x', body: project.project_id })
  await stream.ended
  heard.push(JSON.stringify(stream.events))
})

test('[S12] no token is in a log, the audit, an event, an error or the metrics', async () => {
  const { token } = daemon
  const metrics = await send(daemon.url, { path: '/metrics', headers: bearer(token) })
  const audit = []
  for (let before: string | undefined; ; ) {
    const page = await daemon.call('audit_tail', { limit: 200, before })
    audit.push(...page.calls)
    if (!page.next) break
    before = page.next
  }
  const { events } = await daemon.call('event_wait', { cursor: '1.0', limit: 200 })
  const health = await daemon.call('system_health', { deep: true })
  const everything = [metrics.text, JSON.stringify(audit), JSON.stringify(events), JSON.stringify(health), daemon.log, ...heard]
  expect(audit.length).toBeGreaterThan(40)
  expect(events.length).toBeGreaterThan(8)
  for (const secret of secrets.keys()) for (const text of everything) expect(around(text, secret)).toBe('')
})

test('[S12] no token is in any file but the one that is made for it', async () => {
  expect((await daemon.cli(['db', 'backup'])).code).toBe(0)
  // The last reads reach the audit in batches.
  const reads = () => rows(databaseOf(daemon), `SELECT count(*) AS n FROM calls WHERE tool = 'audit_tail'`)[0].n
  await until(() => reads() > 0, 'the batch is written')
  const check = () => {
    const files = readdirSync(daemon.home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    for (const entry of files) {
      const content = readFileSync(join(entry.parentPath ?? entry.path, entry.name))
      for (const [secret, places] of secrets)
        expect([entry.name, content.includes(secret)]).toEqual([entry.name, places.includes(entry.name)])
    }
    return files.map((entry) => entry.name)
  }
  expect(check()).toEqual(expect.arrayContaining(['owner.token', 'daemon.json', 'signalbox.db', 'signalbox.db-wal']))
  await daemon.end()
  check()
})

/** What stands around it, for whoever has to find the leak. */
function around(text: string, secret: string): string {
  const at = text.indexOf(secret)
  return at < 0 ? '' : text.slice(Math.max(0, at - 300), at + 100)
}

test("[S12] a daemon that a client starts has not the client's token in its environment or command line", async () => {
  await daemon.start()
  const { token } = await daemon.call('agent_invite', { role: 'worker' })
  const before = daemon.pid
  await daemon.end()
  const child = spawn(process.execPath, [BIN, 'mcp'], {
    env: { ...daemon.env, SIGNALBOX_TOKEN: token },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })}\n`)
  await once(child.stdout, 'data')
  const started = (): number => JSON.parse(readFileSync(join(daemon.home, 'daemon.json'), 'utf8')).pid
  await until(() => started() !== before, 'it has started one')
  const pid = started()
  try {
    expect(pid).not.toBe(child.pid)
    for (const file of ['environ', 'cmdline']) expect(readFileSync(`/proc/${pid}/${file}`, 'utf8')).not.toContain(token)
    expect(readFileSync(join(daemon.home, 'daemon.log'), 'utf8')).not.toContain(token)
  } finally {
    child.stdin.end()
    await once(child, 'exit')
    process.kill(started(), 'SIGKILL')
  }
})
