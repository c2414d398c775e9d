import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest'
import { BIN, TestDaemon } from '../../src/testing/daemon.ts'
import { createDatabase, dropDatabase } from '../../src/testing/databases.ts'
import { bearer, databaseOf, Mcp, Stream, send, until } from './support.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

/** What a daemon on SQLite was told and said in its life of two generations; it is stopped now. */
interface Lived {
  daemon: TestDaemon
  agents: { id: string; token: string }[]
  things: { task: string; plan: string }
  reads: Record<string, unknown>
  /** Of the audit's seals. */
  head: string
  key: { input: Record<string, unknown>; answer: Any }
  session: string
  /** With what each of them is followed by. */
  cursors: { cursor: string; followedBy: string[] }[]
  handles: string[]
}

let lived: Lived
const removals: (() => Promise<unknown>)[] = []
beforeAll(async () => {
  lived = await live()
})
afterAll(() => lived.daemon.remove())
afterEach(async () => {
  for (const remove of removals.splice(0).reverse()) await remove()
})

async function live(): Promise<Lived> {
  const daemon = await TestDaemon.start()
  const { project_id } = await daemon.call('project_create', { name: 'Web 🚲' })
  const planner = await daemon.call('agent_invite', { role: 'planner', name: 'pat' })
  const worker = await daemon.call('agent_invite', { role: 'worker', name: 'ann' })
  const input = { project_id, title: 'Log in', acceptance_criteria: ['é stays é', '"quoted"'], idempotency_key: 'once' }
  const answer = await daemon.call('task_create', input)
  const cursors = [(await daemon.call('task_list')).cursor]
  expect((await daemon.cli(['db', 'backup', join(daemon.home, 'backup.db')])).code).toBe(0)
  await daemon.call('task_create', { title: 'lost by the restore' })
  cursors.push((await daemon.call('task_list')).cursor)
  await daemon.end()
  expect((await daemon.cli(['db', 'restore', join(daemon.home, 'backup.db')])).code).toBe(0)
  await daemon.start()

  await daemon.call('task_assign', { task_id: answer.task_id, agent_id: worker.agent_id })
  for (const body of ['', '👩🏽‍🚀 e\u0301', 'x'.repeat(9_000)])
    await daemon.post('task_note', { task_id: answer.task_id, body }, worker.token)
  const plan = await daemon.call('plan_propose', { tasks: [{ title: 'One' }, { title: 'Two', after: [0] }] }, planner.token)
  await daemon.call('plan_accept', { plan_id: plan.plan_id })
  await daemon.call('decision_log', { title: 'Why', body: 'Because' })
  await daemon.post('task_get', { task_id: 'T-99' })
  const mcp = await Mcp.begin(daemon, worker.token)
  await mcp.tool('agent_me')
  const all = await heard(daemon, '1.0')
  cursors.push(...all.map((event) => event.id), (await daemon.call('task_list')).cursor)
  const things = { task: answer.task_id, plan: plan.plan_id }
  const told = await Promise.all(
    cursors.map(async (cursor) => ({ cursor, followedBy: (await heard(daemon, cursor)).map((e) => e.data.call_id) })),
  )
  const reads = await everyRead(daemon, things)
  await until(async () => (await daemon.call('audit_verify')).head !== null, 'there is a seal')
  const { head } = await daemon.call('audit_verify')
  const handles = (await daemon.call('task_list')).tasks.map((task: Any) => task.handle)
  await daemon.end()
  const agents = [planner, worker].map(({ agent_id: id, token }) => ({ id, token }))
  return { daemon, agents, things, reads, head, key: { input, answer }, session: mcp.session as string, cursors: told, handles }
}

/** Everything behind the cursor that is there now: a mark is written, and read up to. */
async function heard(daemon: TestDaemon, after: string): Promise<{ id: string; data: Any }[]> {
  const body = `mark ${Math.random()}`
  const { log_id } = await daemon.call('decision_log', { title: 'mark', body })
  const stream = await Stream.open(daemon, { after })
  await stream.heard((events) => events.some((event) => event.data.subject === log_id))
  stream.close()
  const events = stream.events
  return events.filter((event) => event.type !== 'decision.logged')
}

/** What every tool that only reads answers, by its name: found in the list of tools, so that none is forgotten. */
async function everyRead(daemon: TestDaemon, things: Lived['things']): Promise<Record<string, unknown>> {
  const listed = await send(daemon.url, { path: '/api/tools', headers: bearer(daemon.token) })
  const reads: Any[] = listed.json.tools.filter((tool: Any) => tool.impact === 'read')
  const inputs: Record<string, object> = {
    task_get: { task_id: things.task, notes: 200 },
    plan_get: { plan_id: things.plan },
    budget_get: { task_id: things.task },
    transcript_search: { task_id: things.task, words: 'x' },
    file_read: { task_id: things.task, path: 'README.md' },
    // Reading is a call too: only what was written counts.
    audit_tail: { limit: 200, tool: 'task_note' },
  }
  // Waits, what differs between two daemons, and the seals and the decision log, which go on with every call.
  const others = ['event_wait', 'task_wait', 'job_wait', 'system_health', 'audit_verify', 'audit_export', 'decision_list']
  const inputOf = ({ name, input }: Any) => inputs[name] ?? (input.required?.includes('task_id') ? { task_id: things.task } : {})
  const answers = reads
    .filter(({ name }) => !others.includes(name))
    .map(async (tool) => {
      const { ok, result, error } = await daemon.post(tool.name, inputOf(tool))
      return [tool.name, ok ? result : error.code]
    })
  return withoutWhatMoves(Object.fromEntries(await Promise.all(answers)))
}

/** They are written differently on each engine; and when somebody was last active is known a moment later. */
function withoutWhatMoves(value: Any): Any {
  if (Array.isArray(value)) return value.map(withoutWhatMoves)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'cursor' && key !== 'last_active_at')
      .map(([key, inner]) => [key, withoutWhatMoves(inner)]),
  )
}

/** The stopped daemon's folder, as a copy that a test may use up, and an empty database. */
async function beginMove(): Promise<{ daemon: TestDaemon; url: string; on: TestDaemon; rows(sql: string): Promise<Any[]> }> {
  const daemon = new TestDaemon()
  for (const file of ['signalbox.db', 'owner.token']) copyFileSync(join(lived.daemon.home, file), join(daemon.home, file))
  const url = await createDatabase(inject('postgres'), basename(daemon.home))
  const on = new TestDaemon({ home: daemon.home, env: { SIGNALBOX_DATABASE_URL: url } })
  removals.push(() => dropDatabase(inject('postgres'), basename(daemon.home)))
  removals.push(() => daemon.remove())
  removals.push(() => on.end('SIGKILL'))
  return { daemon, url, on, rows: (sql) => query(url, sql) }
}

async function query(url: string, sql: string): Promise<Any[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return (await client.query(sql).finally(() => client.end())).rows
}

/** In all tables but the two that every target has. */
async function rowsIn(url: string): Promise<number> {
  const tables = (await query(url, TABLES)).map((row) => row.relname as string).filter((name) => !['migrations', 'meta'].includes(name))
  const counts = await Promise.all(tables.map(async (name) => Number((await query(url, `SELECT count(*) AS n FROM ${name}`))[0].n)))
  return counts.reduce((sum, count) => sum + count, 0)
}

const TABLES = `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname`

test('[E30] every read answers as before; tokens, keys, cursors, handles and MCP sessions go on', async () => {
  const { daemon, url, on } = await beginMove()
  const bytes = readFileSync(databaseOf(daemon))
  const copied = await daemon.cli(['db', 'copy', url])
  expect([copied.code, copied.stderr]).toEqual([0, ''])
  expect(copied.stdout).toMatch(/^table +rows {2}hash +equal\n/)
  expect(copied.stdout).toMatch(/^tasks +3 {2}[0-9a-f]{12} {2}yes$/m)
  expect(copied.stdout).toContain(`SIGNALBOX_DATABASE_URL='${url}' signalbox serve`)
  expect(copied.stdout).toContain('refuses from now on')
  expect(readFileSync(databaseOf(daemon)).equals(bytes)).toBe(true)

  await on.start()
  expect(await everyRead(on, lived.things)).toEqual(lived.reads)
  expect(Object.keys(lived.reads).length).toBeGreaterThan(9)
  expect(await on.call('audit_verify', { expect: lived.head })).toMatchObject({ ok: true, first_bad: null })
  expect(on.token).toBe(lived.daemon.token)
  for (const { id, token } of lived.agents) expect(await on.call('agent_me', {}, token)).toMatchObject({ id })
  expect(await on.call('task_create', lived.key.input)).toEqual(lived.key.answer)
  const mcp = new Mcp(on, (lived.agents[1] as { token: string }).token, lived.session)
  expect((await mcp.tool('agent_me')).structuredContent.id).toBe(lived.agents[1]?.id)

  expect(lived.cursors.length).toBeGreaterThan(10)
  for (const { cursor, followedBy } of lived.cursors) {
    expect([cursor, (await heard(on, cursor)).map((event) => event.data.call_id)]).toEqual([cursor, followedBy])
  }
  const next = await on.call('task_create', { title: 'next' })
  expect(lived.handles.at(-1)).toBe('T-3')
  expect(next.task.handle).toBe('T-4')
  const waited = await on.call('event_wait', { cursor: lived.cursors.at(-1)?.cursor, types: ['task.created'], timeout_seconds: 20 })
  expect(waited.events).toMatchObject([{ subject: next.task_id }])
})

test('[E30] killed at any instant the copy leaves no row behind, and the next one is whole', { timeout: 240_000 }, async () => {
  const { daemon, url, on } = await beginMove()
  const trial = await createDatabase(inject('postgres'), `${basename(daemon.home)}-trial`)
  removals.push(() => dropDatabase(inject('postgres'), `${basename(daemon.home)}-trial`))
  const began = performance.now()
  expect((await daemon.cli(['db', 'copy', trial])).code).toBe(0)
  const whole = performance.now() - began
  let killed = 0
  for (let part = 1, share = 1; part <= 12; part++) {
    const child = spawn(process.execPath, [BIN, 'db', 'copy', url], { env: daemon.env, stdio: 'ignore' })
    const exited = once(child, 'exit')
    // At a part of the time that a whole copy takes: any instant is the point, so nothing tells when.
    const timer = setTimeout(() => child.kill('SIGKILL'), (share * whole * (part + 3)) / 16)
    const [code] = (await exited) as [number | null]
    clearTimeout(timer)
    // Whoever asks waits for the lock of what the server was still doing; the end of it is a rollback.
    const found = await rowsIn(url)
    if (code === 0 || found > 0) {
      expect(found).toBe(await rowsIn(trial))
      if (killed > 3) break
      // The one that was measured was slow: again, sooner, on an empty one.
      await dropDatabase(inject('postgres'), basename(daemon.home))
      await createDatabase(inject('postgres'), basename(daemon.home))
      share /= 2
      part = 0
      continue
    }
    killed++
  }
  expect(killed).toBeGreaterThan(3)
  const last = await daemon.cli(['db', 'copy', url])
  if (last.code !== 0) expect(last.stderr).toContain('The target is not empty')
  await on.start()
  expect(await everyRead(on, lived.things)).toEqual(lived.reads)
})

test('[E31] a dry run tells what would be copied and leaves the target without a table', async () => {
  const { daemon, url, rows } = await beginMove()
  const { code, stdout, stderr } = await daemon.cli(['db', 'copy', url, '--dry-run'])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^tasks +3$/m)
  expect(stdout).toContain('reachable, empty and fit. Nothing was written')
  expect(await rows(TABLES)).toEqual([])
})

test('[E31] a target with a table of somebody else, or with a Signalbox, is refused and left as it is', async () => {
  const { daemon, url, on, rows } = await beginMove()
  await rows(`CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')`)
  for (const flags of [[], ['--dry-run']]) {
    const refused = await daemon.cli(['db', 'copy', url, ...flags])
    expect([refused.code, refused.stdout]).toEqual([2, ''])
    expect(refused.stderr).toContain('The target is not empty: it has recipes')
    expect(refused.stderr).not.toContain('    at ')
  }
  expect(await rows(TABLES)).toEqual([{ relname: 'recipes' }])
  await rows('DROP TABLE recipes')
  await on.start()
  await on.call('project_create', { name: 'Other' })
  await on.end()
  expect(await daemon.cli(['db', 'copy', url])).toMatchObject({ code: 2, stderr: expect.stringMatching(/not empty: there are rows in/) })
  await on.start()
  expect((await on.call('project_list')).projects).toMatchObject([{ name: 'Other' }])
})

test('[E31] a file in use is not copied, and the daemon that uses it is unharmed', async () => {
  const { daemon, url, rows } = await beginMove()
  await daemon.start()
  const refused = await daemon.cli(['db', 'copy', url])
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/already uses .*\. Stop it before you copy its database/)])
  const elsewhere = new TestDaemon()
  removals.push(() => elsewhere.remove())
  const other = await elsewhere.cli(['db', 'copy', url, '--from', databaseOf(daemon)])
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('already uses the database')])
  expect(await rows(TABLES)).toEqual([])
  expect((await daemon.call('project_list')).projects).toHaveLength(1)
})

test('[E31] with PostgreSQL configured already, a file is copied by its name, and the other verbs say what to use', async () => {
  const { daemon, on, rows } = await beginMove()
  for (const [verb, instead] of [
    ['backup', 'pg_dump'],
    ['restore', 'pg_restore'],
    ['check', 'system health'],
    ['copy', `--from ${databaseOf(daemon)}`],
  ]) {
    for (const file of verb === 'copy' || verb === 'check' ? [[]] : [[], ['x.db']]) {
      const said = await on.cli(['db', verb as string, ...file])
      expect([verb, said.code, said.stderr]).toEqual([verb, 2, expect.stringContaining(instead as string)])
    }
  }
  expect(await on.cli(['db', 'check', databaseOf(daemon)])).toMatchObject({ code: 0 })
  expect((await on.cli(['db', 'copy', '--from', join(daemon.home, 'nothing.db')])).stderr).toContain('There is no database at')
  expect(await on.cli(['db', 'copy', '--from', databaseOf(daemon)])).toMatchObject({ code: 0 })
  expect(await rows('SELECT count(*)::int AS n FROM tasks')).toEqual([{ n: 3 }])
})

test('[F33] the file that was copied refuses: start, backup, check and restore say where it went; without its mark it opens again', async () => {
  const { daemon, url } = await beginMove()
  const backup = join(daemon.home, 'before.db')
  expect(await daemon.cli(['db', 'backup', backup])).toMatchObject({ code: 0 })
  expect(await daemon.cli(['db', 'copy', url, '--dry-run'])).toMatchObject({ code: 0 })
  expect(await daemon.cli(['db', 'check'])).toMatchObject({ code: 0 })
  expect(await daemon.cli(['db', 'copy', url])).toMatchObject({ code: 0 })
  await expect(daemon.start()).rejects.toThrow(`ended with 2: signalbox: ${databaseOf(daemon)} was copied to ${url}`)
  for (const command of [
    ['db', 'backup'],
    ['db', 'check'],
    ['db', 'restore', backup],
  ]) {
    const { code, stdout, stderr } = await daemon.cli(command)
    expect([command, code, stdout]).toEqual([command, 2, ''])
    expect(stderr).toContain(`was copied to ${url}`)
    expect(stderr).toContain(`SIGNALBOX_DATABASE_URL='${url}'`)
    expect(stderr).toContain(`rm ${databaseOf(daemon)}.moved`)
    expect(stderr).not.toContain('    at ')
  }
  rmSync(`${databaseOf(daemon)}.moved`)
  await daemon.start()
  expect((await daemon.call('project_list')).projects).toHaveLength(1)
})

test('[E31] what cannot be reached is said without the password', async () => {
  const { daemon } = await beginMove()
  const { code, stdout, stderr } = await daemon.cli(['db', 'copy', 'postgres://me:s3cr%40t@127.0.0.1:1/x'])
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain('postgres://me:***@127.0.0.1:1/x cannot be reached')
  expect(stderr).not.toMatch(/s3cr| {4}at /)
  expect(await daemon.cli(['db', 'copy'])).toMatchObject({ code: 2, stderr: expect.stringContaining('Copy to which database?') })
  expect(await daemon.cli(['db', 'copy', 'mysql://x/y'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Copy to which database?'),
  })
})
