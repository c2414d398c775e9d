import { describe, expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createHost } from '../daemon/host.ts'
import { Caller, openTestApp, type TestApp, test } from '../testing/app.ts'
import { auditRows, put, rowCounts, withProbe, written } from '../testing/probe.ts'
import { type Fate, faulty, holdNextWrite, until } from '../testing/signals.ts'
import { refuse, TransientFault } from './error.ts'
import { defineEvent } from './event.ts'
import type { CallRecord } from './log.ts'
import { defineTool } from './tool.ts'

const SECRET = `sbx_agent_${'x'.repeat(43)}`
const probed = defineEvent('probe.put', z.strictObject({ body: z.string() }))
const base = { title: 'Probe', description: 'A tool of a test.', profile: 'viewer', impact: 'write' } as const

/** Writes a row and an event, then ends as it is told to. */
const probe = defineTool({
  ...base,
  name: 'probe_put',
  input: z.strictObject({
    body: z.string().max(5_000).default('row'),
    end: z.enum(['well', 'returned', 'thrown', 'defect', 'broken']).default('well'),
  }),
  output: z.strictObject({ body: z.string(), token: z.string().nullable(), at: z.number() }),
  async run(ctx, { body, end }) {
    await put(ctx, body)
    ctx.emit(probed({ subject: 'probe' }, { body }))
    if (end === 'returned') return refuse('CONFLICT', 'a rule says no', { hint: 'but keeps what it wrote' })
    if (end === 'thrown') throw refuse('CONFLICT', 'a rule throws')
    if (end === 'defect') throw new Error(`a defect that quotes ${SECRET}`)
    const value = { body, token: SECRET, at: ctx.now }
    return end === 'broken' ? ({ ...value, body: 1 } as never) : value
  },
})

const other = defineTool({
  ...base,
  name: 'probe_other',
  input: z.strictObject({ body: z.string().max(100).default('other') }),
  output: z.strictObject({ body: z.string() }),
  async run(ctx, { body }) {
    await put(ctx, body)
    return { body }
  },
})

async function open(options: Parameters<typeof openTestApp>[0] = {}, atTheEnd = onTestFinished): Promise<TestApp> {
  const app = await openTestApp({ capabilities: withProbe([probe, other]), ...options })
  atTheEnd(() => app.close())
  return app
}

const callsOf = async (app: TestApp, tool = 'probe_put') => (await auditRows(app)).filter((row) => row.tool === tool)
const events = (app: TestApp) => app.events({ type: 'probe.put' })

describe('all or nothing', () => {
  test('[K3] an answer that breaks its own schema takes everything back', async () => {
    const defects: unknown[] = []
    const app = await open({ onDefect: (error) => defects.push(error) })
    expect(await app.owner.refused('probe_put', { end: 'broken' })).toMatchObject({ code: 'INTERNAL_ERROR' })
    expect(await written(app)).toEqual([])
    expect(await events(app)).toEqual([])
    expect(await callsOf(app)).toMatchObject([{ outcome: 'failed', code: 'INTERNAL_ERROR' }])
    expect(String(defects)).toContain('broke its own output schema')
  })

  test('[K4] a refusal that is returned commits: rows, events and audit', async () => {
    const app = await open()
    expect(await app.owner.refused('probe_put', { end: 'returned' })).toMatchObject({ code: 'CONFLICT', hint: 'but keeps what it wrote' })
    expect(await written(app)).toEqual(['row'])
    expect(await events(app)).toHaveLength(1)
    expect(await callsOf(app)).toMatchObject([{ outcome: 'refused', code: 'CONFLICT' }])
  })

  test('[K4] a refusal that is thrown takes everything back, and its audit row is there before the answer', async () => {
    const app = await open()
    expect(await app.owner.refused('probe_put', { end: 'thrown' })).toMatchObject({ code: 'CONFLICT' })
    expect(await written(app)).toEqual([])
    expect(await events(app)).toEqual([])
    expect(await callsOf(app)).toMatchObject([{ outcome: 'refused', code: 'CONFLICT' }])
  })

  test('[K4] the row, its event and its audit entry name the same call', async () => {
    const app = await open()
    await app.owner.call('probe_put')
    const [call] = await callsOf(app)
    expect(await events(app)).toMatchObject([{ call_id: call?.id, actor: app.owner.id, at: call?.at }])
  })

  test('[K5] a defect is INTERNAL_ERROR with the id to quote; its stack is in the audit, its secrets are not', async () => {
    const app = await open()
    const error = await app.owner.refused('probe_put', { end: 'defect' })
    const [call] = await callsOf(app)
    expect(error).toEqual({ code: 'INTERNAL_ERROR', message: expect.stringContaining(call?.id as string) })
    expect(error.message).toContain('nothing was written')
    expect(await written(app)).toEqual([])
    const output = JSON.parse(call?.output as string)
    expect(output.stack).toContain('a defect that quotes [redacted]')
    expect(output.stack).toContain('invoke.test.ts')
    expect(call?.output).not.toContain(SECRET)
  })
})

describe('audit', () => {
  test('[K6] every call has its row: done, replayed, refused, failed, unknown, and reads within a moment', async () => {
    const app = await open()
    await app.owner.call('probe_put', { idempotency_key: 'a' })
    await app.owner.call('probe_put', { idempotency_key: 'a' })
    await app.owner.refused('probe_put', { end: 'thrown' })
    await app.owner.refused('probe_put', { end: 'defect' })
    await app.owner.refused('probe_puts')
    await app.owner.refused('probe_put', { bodi: 1 })
    await app.owner.call('agent_me', {}, { lane: 'default', surface: 'stdio' })
    await app.owner.refused('task_get', { task_id: 'T-99' })
    const rows = async () => (await auditRows(app)).filter((row) => row.tool !== 'agent_list')
    await until(async () => (await rows()).length === 8)
    expect((await rows()).map((row) => [row.tool, row.outcome, row.code])).toEqual([
      ['probe_put', 'ok', null],
      ['probe_put', 'replayed', null],
      ['probe_put', 'refused', 'CONFLICT'],
      ['probe_put', 'failed', 'INTERNAL_ERROR'],
      ['probe_puts', 'refused', 'TOOL_NOT_FOUND'],
      ['probe_put', 'refused', 'INVALID_INPUT'],
      ['agent_me', 'ok', null],
      ['task_get', 'refused', 'RESOURCE_NOT_FOUND'],
    ])
    expect((await rows())[6]).toMatchObject({ principal: app.owner.id, lane: 'default', surface: 'stdio', input: '{}' })
  })

  test('[K6] the ids of calls are unique, also under concurrency', async () => {
    const app = await open()
    await Promise.all(Array.from({ length: 200 }, () => app.owner.call('probe_other')))
    const ids = (await callsOf(app, 'probe_other')).map((row) => row.id)
    expect(new Set(ids).size).toBe(200)
  })

  test('[K6] callers that nobody knows are counted per source, not listed one by one', async () => {
    const app = await open()
    const knock = (source: string) =>
      app.app.kernel.invoke({ tool: 'agent_me', input: {}, credential: { secret: 'nobody' }, surface: 'http', source })
    for (const source of ['10.0.0.1', '10.0.0.1', '10.0.0.2'])
      expect(await knock(source)).toMatchObject({ ok: false, error: { code: 'UNAUTHENTICATED' } })
    const before = (await auditRows(app)).length
    await app.reopen()
    expect((await auditRows(app)).length).toBe(before)
    const rows = await refusals(app)
    expect(rows).toEqual([
      { source: '10.0.0.1', reason: 'UNAUTHENTICATED', count: 2 },
      { source: '10.0.0.2', reason: 'UNAUTHENTICATED', count: 1 },
    ])
  })

  test('[K6] reads that were answered before an orderly stop are in the audit after it, interrupted waits too', async () => {
    const app = await open()
    const { identity } = app.app.kernel.parts
    const { refresh } = identity
    // After its wait a call asks whether its token still lives; a database that is asked over a socket takes some turns.
    identity.refresh = async (...asked) => {
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
      return refresh(...asked)
    }
    const waiting = app.owner.call('event_wait', {})
    await until(() => app.app.feed.waiters === 1)
    await app.owner.call('agent_me')
    await app.reopen()
    expect(await waiting).toMatchObject({ code: 'WAIT_INTERRUPTED', resume: true })
    const tools = (await auditRows(app)).map((row) => row.tool)
    expect(tools).toContain('agent_me')
    expect(tools).toContain('event_wait')
  })

  test('[K6] one row that cannot be written again does not hold up the others', async () => {
    const app = await open()
    await app.owner.call('probe_other')
    const [known] = await callsOf(app, 'probe_other')
    const { seq: _, acting_person, ...row } = known as NonNullable<typeof known>
    app.app.kernel.parts.auditLater({ ...row, by: acting_person } as never)
    await app.owner.call('agent_me')
    await until(async () => (await callsOf(app, 'agent_me')).length === 1)
    expect((await auditRows(app)).filter((r) => r.id === row.id)).toHaveLength(1)
  })

  test('[K7] of what is typed only the length is kept, also of a call that is refused before it is looked at', async () => {
    const typed = defineTool({
      name: 'probe_type',
      title: 'Type',
      description: 'Types.',
      input: z.strictObject({ text: z.string() }),
      output: z.strictObject({}),
      impact: 'write',
      profile: 'maintainer',
      unrecorded: ['text'],
      run: async () => ({}),
    })
    const app = await openTestApp({ capabilities: withProbe([typed]) })
    onTestFinished(() => app.close())
    const [worker, gone] = [await app.agent('worker'), await app.agent('worker')]
    await app.owner.call('token_revoke', { agent_id: gone.id })
    for (const caller of [worker, gone]) await caller.refused('probe_type', { text: 'hunter2' })
    await app.owner.call('probe_type', { text: 'hunter2' })
    expect((await callsOf(app, 'probe_type')).map(({ code, input }) => [code, JSON.parse(input)])).toEqual(
      ['PERMISSION_DENIED', 'AUTH_STALE_TOKEN', null].map((code) => [code, { text: '[9 characters]' }]),
    )
  })

  test('[K7] secrets are in no audit row, and what is long is cut with a note of its length', async () => {
    const app = await open()
    const said = { body: `my key is sk-${'a'.repeat(40)} and ${'long '.repeat(900)}` }
    expect(await app.owner.call('probe_put', said)).toMatchObject({ token: SECRET })
    const [call] = await callsOf(app)
    expect(call?.input).not.toContain('aaaaaaaa')
    expect(call?.input.length).toBeLessThan(10_000)
    expect(JSON.parse(call?.input as string)).toEqual({ body: expect.stringMatching(/^my key is \[redacted\] .* \[4525 characters\]$/) })
    expect(call?.output).not.toContain(SECRET)
    await app.owner.call('agent_invite', { role: 'worker' })
    const whole = JSON.stringify([await auditRows(app), await app.events()])
    expect(whole).not.toMatch(/sbx_[a-z]+_[A-Za-z0-9_-]{20}/)
  })
})

describe('idempotency', () => {
  const KEY = { idempotency_key: 'once' }

  test('[K9] the same key answers as the first time and does nothing again', async () => {
    const app = await open()
    const first = await app.owner.call('probe_other', { body: 'x', ...KEY })
    expect(await app.owner.call('probe_other', { body: 'x', ...KEY })).toEqual(first)
    expect(await app.owner.call('probe_other', { ...KEY, body: 'x' })).toEqual(first)
    expect(await written(app)).toEqual(['x'])
    expect((await callsOf(app, 'probe_other')).map((row) => row.outcome)).toEqual(['ok', 'replayed', 'replayed'])
  })

  test('[K9] a replay is answered as the first time, also when its caller has lost the task meanwhile', async () => {
    const app = await open()
    const task = await app.task()
    const worker = await app.worker(task.id)
    const note = { task_id: task.id, body: 'mine', idempotency_key: 'n1' }
    const first = await worker.call('task_note', note)
    await app.owner.call('task_assign', { task_id: task.id, agent_id: null })
    expect(await worker.call('task_note', note)).toEqual(first)
    expect((await worker.refused('task_note', { ...note, idempotency_key: 'n2' })).code).toBe('PERMISSION_DENIED')
  })

  test('[K9] twenty at once under one key are one', async () => {
    const app = await open()
    const answers = await Promise.all(Array.from({ length: 20 }, () => app.owner.call('probe_put', KEY)))
    expect(new Set(answers.map((answer) => answer.at)).size).toBe(1)
    expect(await written(app)).toEqual(['row'])
    expect(await events(app)).toHaveLength(1)
  })

  test('[K9] another input under the same key is refused and changes nothing', async () => {
    const app = await open()
    await app.owner.call('probe_other', { body: 'x', ...KEY })
    expect(await app.owner.refused('probe_other', { body: 'y', ...KEY })).toMatchObject({ code: 'IDEMPOTENCY_MISMATCH' })
    expect(await written(app)).toEqual(['x'])
    expect(await app.owner.call('probe_other', { body: 'x', ...KEY })).toEqual({ body: 'x' })
  })

  test('[K9] a key belongs to one principal and one tool', async () => {
    const app = await open()
    const agent = await app.agent('orchestrator')
    await app.owner.call('probe_other', { body: 'mine', ...KEY })
    await app.owner.call('probe_put', { body: 'other tool', ...KEY })
    await agent.call('probe_other', { body: 'theirs', ...KEY })
    expect((await written(app)).toSorted()).toEqual(['mine', 'other tool', 'theirs'])
  })

  test('[K9] a refusal that committed is replayed as that refusal; one that was thrown is tried again', async () => {
    const app = await open()
    const returned = { end: 'returned', ...KEY }
    const first = await app.owner.refused('probe_put', returned)
    expect(await app.owner.refused('probe_put', returned)).toEqual(first)
    const thrown = { end: 'thrown', idempotency_key: 'thrown' }
    await app.owner.refused('probe_put', thrown)
    await app.owner.refused('probe_put', thrown)
    expect((await callsOf(app)).map((row) => row.outcome)).toEqual(['refused', 'replayed', 'refused', 'refused'])
    expect(await written(app)).toEqual(['row'])
  })

  test('[K9] a refusal that wrote nothing is not remembered: what stood in the way may be gone', async () => {
    const world = { closed: true, looks: 0 }
    const gate = defineTool({
      ...base,
      name: 'probe_gate',
      input: z.strictObject({}),
      output: z.strictObject({ looks: z.int() }),
      prepare: async () => ({ looks: ++world.looks }),
      run: async (_ctx, _input, { looks }) => (world.closed ? refuse('CONFLICT', 'not yet') : { looks }),
    })
    const app = await open({ capabilities: withProbe([gate]) })
    expect(await app.owner.refused('probe_gate', KEY)).toMatchObject({ code: 'CONFLICT' })
    expect(await app.owner.refused('probe_gate', KEY)).toMatchObject({ code: 'CONFLICT' })
    world.closed = false
    expect(await app.owner.call('probe_gate', KEY)).toEqual({ looks: 3 })
    world.closed = true
    expect(await app.owner.call('probe_gate', KEY)).toEqual({ looks: 3 })
    expect((await callsOf(app, 'probe_gate')).map((row) => row.outcome)).toEqual(['refused', 'refused', 'ok', 'replayed'])
  })

  test('[K9] a refusal that committed holds for the token that was refused; with its next one an agent is answered anew', async () => {
    const app = await open()
    const agent = await app.agent('orchestrator')
    const returned = { end: 'returned', ...KEY }
    await agent.refused('probe_put', returned)
    await agent.refused('probe_put', returned)
    const { tokens } = await app.owner.call('token_list')
    const { id: token_id } = tokens.find(({ holder_id }: { holder_id: string }) => holder_id === agent.id)
    const { token } = await app.owner.call('token_rotate', { token_id })
    const next = new Caller(app.app, token, agent.id, agent.handle)
    await next.refused('probe_put', returned)
    await next.refused('probe_put', returned)
    expect((await callsOf(app)).map((row) => row.outcome)).toEqual(['refused', 'replayed', 'refused', 'replayed'])
    expect(await written(app)).toEqual(['row', 'row'])
  })

  test('[K9] a key holds for 24 hours and a restart, then it is free again', async () => {
    let now = Date.parse('2026-03-01T00:00:00Z')
    const app = await open({ host: createHost(() => now) })
    const first = await app.owner.call('probe_put', KEY)
    now += 24 * 3_600_000 - 1
    await app.reopen()
    expect(await app.owner.call('probe_put', KEY)).toMatchObject({ at: first.at })
    now += 1
    expect(await app.owner.call('probe_put', { body: 'later', ...KEY })).toMatchObject({ at: now })
    expect(await written(app)).toEqual(['row', 'later'])
  })

  test('[K10] a secret is shown once: its replay has null in that place', async () => {
    const app = await open()
    expect(await app.owner.call('probe_put', KEY)).toMatchObject({ token: SECRET })
    expect(await app.owner.call('probe_put', KEY)).toMatchObject({ body: 'row', token: null })
    const invited = await app.owner.call('agent_invite', { role: 'worker', ...KEY })
    expect(await app.owner.call('agent_invite', { role: 'worker', ...KEY })).toEqual({ ...invited, token: null })
  })

  test.for([
    ['empty', ''],
    ['too long', 'k'.repeat(201)],
    ['a number', 7],
    ['null', null],
    ['not storable', 'a\0b'],
  ] as const)('[K9] a key that is %s is refused', async ([, idempotency_key]) => {
    const app = await open()
    expect(await app.owner.refused('probe_other', { idempotency_key })).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('idempotency_key'),
    })
    expect(await written(app)).toEqual([])
  })

  test('[K11] a replay does not look at the world again: it answers even when the second look would refuse', async () => {
    const world = { there: true, looks: 0 }
    const prepared = defineTool({
      ...base,
      name: 'probe_prepared',
      input: z.strictObject({}),
      output: z.strictObject({ n: z.int() }),
      async prepare() {
        world.looks++
        return world.there ? { n: world.looks } : refuse('RESOURCE_NOT_FOUND', 'gone')
      },
      run: async (_ctx, _input, { n }) => ({ n }),
    })
    const app = await open({ capabilities: withProbe([prepared]) })
    expect(await app.owner.call('probe_prepared', KEY)).toEqual({ n: 1 })
    world.there = false
    expect(await app.owner.call('probe_prepared', KEY)).toEqual({ n: 1 })
    expect(await app.owner.refused('probe_prepared', { idempotency_key: 'another' })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
  })

  test('[K11] a replayed pairing does its transaction once and watches again', async () => {
    const watched: string[] = []
    const asked = defineTool({
      ...base,
      name: 'probe_asked',
      input: z.strictObject({}),
      output: z.strictObject({ id: z.string(), nth: z.int() }),
      async run(ctx) {
        await put(ctx, 'asked')
        return { id: ctx.callId }
      },
      async watch(_ctx, _input, { id }) {
        watched.push(id)
        return { id, nth: watched.length }
      },
    })
    const app = await open({ capabilities: withProbe([asked]) })
    const first = await app.owner.call('probe_asked', KEY)
    expect(await app.owner.call('probe_asked', KEY)).toEqual({ id: first.id, nth: 2 })
    expect(await written(app)).toEqual(['asked'])
  })
})

describe('transient faults', () => {
  const withFaults = async (atTheEnd: typeof onTestFinished, ...fates: Fate[]) => {
    const app = await open({}, atTheEnd)
    const storage = faulty(app.app.engine, fates)
    app.app.kernel.parts.storage = storage
    return { app, storage }
  }

  test.concurrent('[K8] a fault before the commit is retried, and the call is applied once', async ({ onTestFinished }) => {
    const { app, storage } = await withFaults(onTestFinished, 'fails before', 'fails before')
    expect(await app.owner.call('probe_put')).toMatchObject({ body: 'row' })
    expect(storage.attempts).toBe(3)
    expect(await written(app)).toEqual(['row'])
    expect(await callsOf(app)).toHaveLength(1)
  })

  test.concurrent('[K8] a fault after the commit is recognised by the call id: nothing is applied twice', async ({ onTestFinished }) => {
    const { app, storage } = await withFaults(onTestFinished, 'fails after the commit')
    expect(await app.owner.call('probe_put')).toMatchObject({ body: 'row', token: SECRET })
    expect(storage.attempts).toBe(1)
    expect(await written(app)).toEqual(['row'])
    expect(await events(app)).toHaveLength(1)
    expect(await callsOf(app)).toMatchObject([{ outcome: 'ok' }])
  })

  test.concurrent('[K8] after three retries the answer is TRANSIENT_ERROR and nothing was written', async ({ onTestFinished }) => {
    const { app, storage } = await withFaults(
      onTestFinished,
      'fails before',
      'fails before',
      'fails before',
      'fails before',
      'fails before',
    )
    const began = performance.now()
    expect(await app.owner.refused('probe_put')).toMatchObject({
      code: 'TRANSIENT_ERROR',
      message: expect.stringContaining('nothing was written'),
    })
    expect(performance.now() - began).toBeGreaterThan(2_900)
    expect(storage.attempts).toBe(5)
    expect(await written(app)).toEqual([])
    await until(async () => (await callsOf(app)).length === 1)
    expect(await callsOf(app)).toMatchObject([{ outcome: 'failed', code: 'TRANSIENT_ERROR' }])
  })

  test('[K8] how often and how soon is a setting', async () => {
    const { app, storage } = await withFaults(onTestFinished)
    await app.owner.call('setting_update', { key: 'limits.retries', value: 1 })
    await app.owner.call('setting_update', { key: 'limits.retry_delay_ms', value: 0 })
    app.app.kernel.parts.storage = faulty(storage, ['fails before', 'fails before'])
    expect(await app.owner.refused('probe_put')).toMatchObject({ code: 'TRANSIENT_ERROR' })
    app.app.kernel.parts.storage = faulty(storage, ['fails before'])
    expect(await app.owner.call('probe_put')).toMatchObject({ body: 'row' })
  })

  test.concurrent('[K8] a last attempt that did commit is answered as done', async ({ onTestFinished }) => {
    const { app } = await withFaults(onTestFinished, 'fails before', 'fails before', 'fails before', 'fails after the commit')
    expect(await app.owner.call('probe_put')).toMatchObject({ body: 'row' })
    expect(await written(app)).toEqual(['row'])
    expect(await callsOf(app)).toMatchObject([{ outcome: 'ok' }])
  })

  test.concurrent('[K8] when nobody can tell whether it committed, it is not run again, and the caller is told so', async ({
    onTestFinished,
  }) => {
    const { app, storage } = await withFaults(onTestFinished, 'fails after the commit')
    app.app.kernel.parts.ledger = { ...app.app.kernel.parts.ledger, committed: () => Promise.reject(new TransientFault('away')) }
    expect(await app.owner.refused('probe_put')).toMatchObject({
      code: 'TRANSIENT_ERROR',
      message: expect.stringContaining('not known'),
      details: { written: 'unknown' },
    })
    expect(await written(app)).toEqual(['row'])
    const [theCall, itsAudit] = [1, 1]
    expect(storage.attempts).toBe(theCall + itsAudit)
  })

  test('[K8] nothing else is retried: a defect runs once', async () => {
    const { app, storage } = await withFaults(onTestFinished)
    await app.owner.refused('probe_put', { end: 'defect' })
    const [theCall, itsAudit] = [1, 1]
    expect(storage.attempts).toBe(theCall + itsAudit)
  })

  test('[K8] a look that storage does not answer is TRANSIENT_ERROR, not a defect', async () => {
    const look = defineTool({
      ...base,
      name: 'probe_look',
      impact: 'read',
      input: z.strictObject({}),
      output: z.strictObject({}),
      look: async () => {
        throw new TransientFault('busy')
      },
    })
    const app = await open({ capabilities: withProbe([look]) })
    expect(await app.owner.refused('probe_look')).toMatchObject({ code: 'TRANSIENT_ERROR' })
  })
})

describe('bad input', () => {
  const deep = (levels: number): unknown => (levels ? { a: deep(levels - 1) } : 'x')
  const task = 'task_create'
  const CASES: [why: string, tool: string, input: unknown, code: string, says: string][] = [
    ['an unknown tool', 'task_crate', {}, 'TOOL_NOT_FOUND', 'task_crate'],
    ['a wrong type', task, { title: 7 }, 'INVALID_INPUT', 'title'],
    ['a missing field', task, {}, 'INVALID_INPUT', 'title'],
    ['an unknown key', task, { title: 'x', colour: 'red' }, 'INVALID_INPUT', 'colour'],
    ['an unknown key deep inside', 'plan_propose', { tasks: [{ title: 'x', colour: 'red' }] }, 'INVALID_INPUT', 'colour'],
    ['arguments that are a list', task, [], 'INVALID_INPUT', 'object'],
    ['arguments that are text', task, 'title', 'INVALID_INPUT', 'object'],
    ['a NUL', task, { title: 'a\0b' }, 'INVALID_INPUT', 'NUL'],
    ['a NUL in a key', task, { title: 'x', 'a\0b': 1 }, 'INVALID_INPUT', 'NUL'],
    ['half a surrogate pair', task, { title: 'x\ud800' }, 'INVALID_INPUT', 'surrogate'],
    ['half a surrogate pair in a list', task, { title: 'x', acceptance_criteria: ['\udc00'] }, 'INVALID_INPUT', 'surrogate'],
    ['nesting without end', task, { title: deep(40) }, 'INVALID_INPUT', 'nested deeper'],
    ['a text that is too long', task, { title: 'x'.repeat(201) }, 'INVALID_INPUT', 'title'],
    ['the id of another kind', 'task_get', { task_id: `agent_${'0'.repeat(36)}` }, 'INVALID_INPUT', 'of a task'],
    ['the id of another kind, in a list', task, { title: 'x', blocked_by: [`project_${'0'.repeat(36)}`] }, 'INVALID_INPUT', 'of a task'],
    ['an id that never was', 'task_close', { task_id: `task_${'0'.repeat(36)}`, reason: 'x' }, 'RESOURCE_NOT_FOUND', 'no task'],
    ['a handle that never was', 'task_assign', { task_id: 'T-1', agent_id: 'nobody' }, 'AGENT_NOT_FOUND', 'nobody'],
    ['a cursor from the future', 'event_wait', { cursor: '1.zzzz' }, 'INVALID_CURSOR', 'future'],
    ['a cursor that is none', 'event_wait', { cursor: 'yesterday' }, 'INVALID_CURSOR', 'not a cursor'],
    ['a negative timeout', 'task_wait', { task_id: 'T-1', timeout_seconds: -1 }, 'INVALID_TIMEOUT', 'above 0'],
    ['a timeout of 0', 'event_wait', { timeout_seconds: 0 }, 'INVALID_TIMEOUT', 'above 0'],
    ['a timeout in words', 'event_wait', { timeout_seconds: '5' }, 'INVALID_TIMEOUT', 'above 0'],
    ['a task that waits for itself', 'task_update', { task_id: 'T-1', blocked_by: ['T-1'] }, 'DEPENDENCY_CYCLE', 'T-1'],
    ['an idempotency_key for a read', 'task_get', { task_id: 'T-1', idempotency_key: 'x' }, 'INVALID_INPUT', 'idempotency_key'],
    ['a prototype', task, JSON.parse('{"title":"x","__proto__":{"a":1}}'), 'INVALID_INPUT', '__proto__'],
  ]

  test('[K23] each gets its code and says what is wrong, and nothing is written', async () => {
    const app = await open()
    await app.task()
    const before = await rowCounts(app.app.engine.view)
    for (const [why, tool, input, code, says] of CASES) {
      const error = await app.owner.refused(tool, input)
      expect({ why, code: error.code }).toEqual({ why, code })
      expect(error.message).toContain(says)
      expect(error.message.length).toBeLessThan(1_100)
    }
    expect(await rowCounts(app.app.engine.view)).toEqual(before)
  })

  test('[K23] no input at all is an empty one', async () => {
    const app = await open()
    for (const input of [undefined, null, {}]) expect(await app.owner.invoke('agent_me', input)).toMatchObject({ ok: true })
  })

  test('[K24] a name that is almost right comes back with what was meant', async () => {
    const app = await open()
    const error = await app.owner.refused('task_lst')
    expect(error).toMatchObject({ code: 'TOOL_NOT_FOUND', hint: 'Did you mean task_list?' })
    expect(error.suggestions?.[0]).toBe('task_list')
    expect((await app.owner.refused('zzzzzzzzzzzz')).suggestions).toEqual([])
  })

  test.for([
    ['half a character', '\ud800'],
    ['a NUL', 'a\0b'],
    ['nothing', ''],
    ['ten thousand letters', 'x'.repeat(10_000)],
    ['a word of the language', '__proto__'],
    ['another one', 'constructor'],
  ] as const)('[K24] even a name that is %s is refused and audited', async ([, name]) => {
    const records: CallRecord[] = []
    const app = await open({ onCall: (record) => records.push(record) })
    expect(await app.owner.refused(name)).toMatchObject({ code: 'TOOL_NOT_FOUND' })
    expect((await auditRows(app)).at(-1)).toMatchObject({ outcome: 'refused', code: 'TOOL_NOT_FOUND' })
    const [record] = records
    expect(record?.tool).not.toContain('\0')
    expect(record?.tool.isWellFormed()).toBe(true)
    expect(record?.tool.length).toBeLessThanOrEqual(100)
  })

  test('[K24] a tool of the daemon itself is on no surface', async () => {
    const inner = defineTool({
      ...base,
      name: 'probe_inner',
      internal: true,
      input: z.strictObject({}),
      output: z.strictObject({}),
      run: async () => ({}),
    })
    const app = await open({ capabilities: withProbe([inner]) })
    expect(await app.owner.refused('probe_inner')).toMatchObject({ code: 'TOOL_NOT_FOUND' })
    expect((await app.owner.refused('probe_iner')).suggestions).not.toContain('probe_inner')
    expect(await app.app.kernel.invoke({ tool: 'probe_inner', input: {}, credential: 'system', surface: 'daemon' })).toMatchObject({
      ok: true,
    })
  })
})

describe('limits', () => {
  test('[K29] a token that makes too many calls is slowed down before the database, and told for how long', async () => {
    const app = await open({ host: { ...createHost(), monotonic: () => 0 } })
    await app.owner.call('setting_update', { key: 'limits.agent_calls_per_second', value: 1 })
    await app.owner.call('setting_update', { key: 'limits.agent_burst', value: 3 })
    const [ann, bob] = [await app.agent('worker'), await app.agent('worker')]
    const codes = []
    for (let i = 0; i < 5; i++) codes.push((await ann.invoke('agent_me', {})).ok)
    expect(codes).toEqual([true, true, true, false, false])
    expect(await ann.refused('agent_me')).toMatchObject({ code: 'RATE_LIMITED', details: { retry_after_seconds: 1 } })
    expect(await bob.invoke('agent_me', {})).toMatchObject({ ok: true })
    await app.reopen()
    expect(await refusals(app)).toEqual([{ source: ann.id, reason: 'RATE_LIMITED', count: 3 }])
  })

  test('[K29] a clock that jumps refills nothing', async () => {
    let now = Date.parse('2026-03-01T00:00:00Z')
    const app = await open({ host: { ...createHost(() => now), monotonic: () => 0 } })
    await app.owner.call('setting_update', { key: 'limits.agent_burst', value: 1 })
    const ann = await app.agent('worker')
    await ann.call('agent_me')
    now += 3_600_000
    expect(await ann.refused('agent_me')).toMatchObject({ code: 'RATE_LIMITED' })
  })
})

describe('a call that waits in the queue', () => {
  test('[K16] is refused when its token was revoked meanwhile, and writes nothing', async () => {
    const app = await open()
    const agent = await app.agent('orchestrator')
    const held = holdNextWrite(app.app)
    const pending = agent.invoke('probe_put', {})
    await held.reached
    await app.owner.call('token_revoke', { agent_id: agent.id })
    held.letGo()
    expect(await pending).toMatchObject({ ok: false, error: { code: 'AUTH_STALE_TOKEN' } })
    expect(await written(app)).toEqual([])
  })

  test('[K18] is judged by the scope that its caller has when its turn comes', async () => {
    const app = await open()
    const [mine, other] = [await app.task(), await app.task()]
    const worker = await app.worker(mine.id)
    const held = holdNextWrite(app.app)
    const pending = worker.invoke('task_note', { task_id: mine.id, body: 'late' })
    await held.reached
    await app.owner.call('task_assign', { task_id: other.id, agent_id: worker.id })
    held.letGo()
    expect(await pending).toMatchObject({ ok: false, error: { code: 'PERMISSION_DENIED' } })
  })
})

async function refusals(app: TestApp) {
  const { tables } = await import('../db/tables.ts')
  const db = tables<{ refusals: { source: string; reason: string; count: number } }>(app.app.engine.view)
  return db.selectFrom('refusals').select(['source', 'reason', 'count']).orderBy('source').execute()
}
