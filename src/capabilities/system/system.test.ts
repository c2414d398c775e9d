import { describe, expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import { ROLE_NAMES } from '../../kernel/policy.ts'
import { defineTool } from '../../kernel/tool.ts'
import { Caller, openTestApp, type TestApp, test } from '../../testing/app.ts'
import { FakeRunner } from '../../testing/fakes/runs.ts'
import { withProbe } from '../../testing/probe.ts'
import { until } from '../../testing/signals.ts'

type Call = { id: string; tool: string; outcome: string; principal: string; input: unknown; output: unknown }

const tail = async (caller: Caller, input: Record<string, unknown> = {}): Promise<Call[]> => (await caller.call('audit_tail', input)).calls
const WEBHOOK = { key: 'mail.notify_webhook', value: 'https://hooks.example.com/T000/verysecret' }

const setting = async (app: TestApp, key: string) => (await app.owner.call('setting_get', { key })).settings[0]

describe('health', () => {
  test('[Y1] it says how the daemon is, to everyone who has a token', async ({ app }) => {
    const viewer = await app.agent('planner', { profile: 'viewer' })
    const health = await viewer.call('system_health')
    expect(health).toMatchObject({ ok: true, version: expect.stringMatching(/^\d+\.\d+\.\d+/), waiting_calls: 0, notices: [] })
    expect(health.database).toMatchObject({ engine: app.app.engine.facts.name, queued_writes: expect.any(Number) })
    expect(health.database.commits).toBeGreaterThan(0)
    expect(health.database.size_bytes).toBeGreaterThan(0)
  })

  test('[Y14] it says when nothing is hidden from agents', async () => {
    const runner = new FakeRunner()
    const app = await openTestApp({ ports: { runner } })
    onTestFinished(() => app.close())
    runner.exposing = 'Agents can read the owner token.'
    expect(await app.owner.call('system_health')).toMatchObject({ ok: true, notices: ['Agents can read the owner token.'] })
  })

  test('[Y1] it counts those who wait', async ({ app }) => {
    const gone = new AbortController()
    const waits = Array.from({ length: 3 }, () => app.owner.call('event_wait', {}, { signal: gone.signal }))
    await until(() => app.app.feed.waiters === 3)
    expect(await app.owner.call('system_health')).toMatchObject({ waiting_calls: 3 })
    gone.abort()
    await Promise.all(waits)
    expect(await app.owner.call('system_health')).toMatchObject({ waiting_calls: 0 })
  })

  test('[Y1] with `deep` every page is read, while others go on', async ({ app }) => {
    const checking = app.owner.call('system_health', { deep: true })
    expect(await app.owner.call('system_health')).toMatchObject({ ok: true })
    expect(await checking).toMatchObject({ ok: true, notices: [] })
  })
})

describe('decisions', () => {
  test('[Y2] a decision is logged with its author and task, and seen in the log', async ({ app }) => {
    const task = await app.task()
    const worker = await app.worker(task.id)
    const { log_id, timestamp } = await worker.call('decision_log', { title: 'Use SQLite', body: 'because' })
    expect(timestamp).toMatch(/^\d{4}-.*Z$/)
    expect(await app.events({ type: 'decision.logged' })).toMatchObject([
      { subject: log_id, actor: worker.id, task: task.id, project: task.project_id, data: { title: 'Use SQLite' } },
    ])
  })

  test("[Y2] a worker logs none on another's task", async ({ app }) => {
    const [mine, other] = [await app.task(), await app.task()]
    const worker = await app.worker(mine.id)
    expect(await worker.refused('decision_log', { title: 'x', body: 'y', task_id: other.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await worker.call('decision_log', { title: 'x', body: 'y', task_id: mine.handle })).toMatchObject({ log_id: expect.any(String) })
    expect(await app.owner.call('decision_log', { title: 'x', body: 'y', task_id: other.id })).toMatchObject({ log_id: expect.any(String) })
  })
})

describe('the decision log', () => {
  const log = async (caller: Caller, input: Record<string, unknown> = {}) => (await caller.call('decision_list', input)).decisions

  test('[Y12] a call is its invocation and its result', async ({ app }) => {
    const task = await app.task()
    const worker = await app.worker(task.id)
    const note = { task_id: task.id, body: 'hello' }
    const { note_id } = await worker.call('task_note', note)
    expect(await log(app.owner, { principal: worker.handle })).toEqual([
      {
        id: expect.stringMatching(/^call_.*\.result$/),
        kind: 'result',
        agent_id: worker.id,
        decision: 'Tool result: task_note',
        reasoning: 'Automatic tool result log',
        context: { note_id, task_id: task.id, at: expect.any(String) },
        timestamp: expect.any(String),
      },
      {
        id: expect.stringMatching(/^call_.*\.invocation$/),
        kind: 'invocation',
        agent_id: worker.id,
        decision: 'Invoked tool: task_note',
        reasoning: 'Automatic tool invocation log',
        context: note,
        timestamp: expect.any(String),
      },
    ])
  })

  test('[Y12] refused and failed ones too, with the message, and the stack where there is one', async () => {
    const broken = defineTool({
      name: 'probe_break',
      title: 'Break',
      description: 'Fails every time.',
      input: z.strictObject({}),
      output: z.strictObject({}),
      impact: 'write',
      profile: 'viewer',
      run: async () => {
        throw new Error('the roof fell in')
      },
    })
    const app = await openTestApp({ capabilities: withProbe([broken]) })
    onTestFinished(() => app.close())
    const worker = await app.agent('worker')
    await worker.refused('probe_break')
    await worker.refused('task_delete', { task_id: 'T-1' })
    await worker.refused('no_such_tool')
    await worker.refused('task_note', { body: 7 })
    expect(await log(worker)).toMatchObject([
      { kind: 'error', decision: 'Tool error: task_note', reasoning: 'Automatic tool error log', context: { code: 'INVALID_INPUT' } },
      { kind: 'invocation', decision: 'Invoked tool: task_note', context: { body: 7 } },
      { kind: 'error', decision: 'Tool error: no_such_tool', context: { code: 'TOOL_NOT_FOUND' } },
      { kind: 'invocation', decision: 'Invoked tool: no_such_tool' },
      { kind: 'error', decision: 'Tool error: task_delete', context: { code: 'PERMISSION_DENIED' } },
      { kind: 'invocation', decision: 'Invoked tool: task_delete', context: { task_id: 'T-1' } },
      {
        kind: 'error',
        decision: 'Tool error: probe_break',
        context: { code: 'INTERNAL_ERROR', message: expect.any(String), stack: expect.stringContaining('the roof fell in') },
      },
      { kind: 'invocation', decision: 'Invoked tool: probe_break' },
    ])
  })

  test('[Y12] a logged decision stands between, once', async ({ app }) => {
    const worker = await app.agent('worker')
    const decision = { title: 'Use SQLite', body: 'One machine is enough.', idempotency_key: 'k' }
    const { log_id } = await worker.call('decision_log', decision)
    const entries = await log(worker)
    expect(entries.map(({ kind }: { kind: string }) => kind)).toEqual(['result', 'manual', 'invocation'])
    expect(entries[1]).toMatchObject({ id: log_id, decision: 'Use SQLite', reasoning: 'One machine is enough.', context: null })
    await worker.call('decision_log', decision)
    expect((await log(worker, { kind: 'manual' })).length).toBe(1)
  })

  test('[Y13] a read stands where it was made, though it is written down later', async ({ app }) => {
    const task = await app.task()
    const agent = await app.agent('orchestrator')
    await agent.call('agent_me')
    // Its clock is in milliseconds.
    const now = app.app.host.now()
    await until(() => app.app.host.now() > now)
    await agent.call('task_note', { task_id: task.id, body: 'x' })
    await until(async () => (await tail(app.owner, { tool: 'agent_me' })).length > 0)
    expect((await log(app.owner, { principal: agent.id, kind: 'result' })).map(({ decision }: { decision: string }) => decision)).toEqual([
      ...['Tool result: task_note', 'Tool result: agent_me'],
    ])
  })

  test('[Y13] an agent sees its own, people all; of one kind; in pages', async ({ app }) => {
    const task = await app.task()
    const [ann, bob] = [await app.agent('orchestrator', { name: 'Ann' }), await app.agent('orchestrator', { name: 'Bob' })]
    for (let i = 0; i < 5; i++) await ann.call('task_note', { task_id: task.id, body: String(i) })
    await bob.refused('task_note', {})
    expect(await log(app.owner, { kind: 'error' })).toMatchObject([{ agent_id: bob.id }])
    const seen: string[] = []
    for (let before: string | undefined; ; ) {
      const page = await app.owner.call('decision_list', { principal: 'ann', limit: 2, ...(before ? { before } : {}) })
      seen.push(...page.decisions.map((entry: { id: string }) => entry.id))
      if (!page.next) break
      before = page.next
    }
    expect(seen).toEqual((await log(app.owner, { principal: 'ann' })).map((entry: { id: string }) => entry.id))
    expect(new Set(seen).size).toBe(10)
    // Her own looks last: they reach the log a moment later.
    expect((await log(ann, { kind: 'invocation' })).map((entry: { context: { body: string } }) => entry.context.body)).toEqual([
      ...['4', '3', '2', '1', '0'],
    ])
    const authors = async (caller: Caller) => new Set((await log(caller)).map((entry: { agent_id: string }) => entry.agent_id))
    expect(await authors(ann)).toEqual(new Set([ann.id]))
    expect(await authors(app.owner)).toEqual(new Set([ann.id, bob.id, app.owner.id]))
    expect(await ann.refused('decision_list', { principal: 'bob' })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })
})

describe('audit', () => {
  test('[Y3] calls come newest first: who asked what, through what, and how it ended', async ({ app }) => {
    const task = await app.task()
    const agent = await app.agent('orchestrator', { name: 'Ann' })
    await agent.call('task_note', { task_id: task.id, body: 'hello' })
    await agent.refused('task_move', { task_id: task.id, status: 'DONE' })
    const [refused, done] = await tail(app.owner, { principal: agent.id })
    expect(refused).toMatchObject({
      tool: 'task_move',
      outcome: 'refused',
      code: 'INVALID_TRANSITION',
      principal: agent.id,
      surface: 'http',
      lane: 'admin',
    })
    expect(done).toMatchObject({ tool: 'task_note', outcome: 'ok', code: null, input: { task_id: task.id, body: 'hello' } })
  })

  test('[Y3] filters narrow it, handles are accepted, pages skip and repeat nothing', async ({ app }) => {
    const task = await app.task()
    const agent = await app.agent('orchestrator', { name: 'Ann' })
    for (let i = 0; i < 12; i++) await agent.call('task_note', { task_id: task.id, body: String(i) })
    await agent.refused('task_note', {})
    expect(await tail(app.owner, { principal: 'ann', outcome: 'refused' })).toHaveLength(1)
    expect(await tail(app.owner, { principal: 'ann', tool: 'task_note', outcome: 'ok' })).toHaveLength(12)
    expect(await tail(app.owner, { principal: 'owner', tool: 'task_note' })).toEqual([])
    expect(await tail(app.owner, { principal: 'nobody' })).toEqual([])
    const seen: string[] = []
    for (let before: string | undefined; ; ) {
      const page = await app.owner.call('audit_tail', { principal: agent.id, limit: 5, before })
      seen.push(...page.calls.map((call: Call) => call.id))
      before = page.next ?? undefined
      if (!before) break
    }
    expect(seen).toEqual((await tail(app.owner, { principal: agent.id })).map((call) => call.id))
    expect(new Set(seen).size).toBe(13)
    for (const before of ['x', '-1', '1e5', '9'.repeat(50)])
      expect(await app.owner.refused('audit_tail', { before })).toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('[Y4] an agent sees its own calls and nobody else’s, by whatever name', async ({ app }) => {
    const task = await app.task()
    const [ann, bob] = [await app.agent('orchestrator', { name: 'Ann' }), await app.agent('orchestrator', { name: 'Bob' })]
    for (const agent of [ann, bob]) await agent.call('task_note', { task_id: task.id, body: 'x' })
    // Not by their number: her own looks reach the audit a moment later.
    expect(new Set((await tail(ann)).map((call) => call.principal))).toEqual(new Set([ann.id]))
    expect(await tail(ann, { principal: 'ann', tool: 'task_note' })).toHaveLength(1)
    expect(await tail(ann, { principal: ann.id, tool: 'task_note' })).toHaveLength(1)
    for (const principal of [bob.id, 'bob', 'owner', app.owner.id, 'system']) {
      expect(await ann.refused('audit_tail', { principal })).toMatchObject({ code: 'PERMISSION_DENIED' })
    }
  })

  test('[Y5] no tool changes or removes what is in the audit or in the log', async ({ app }) => {
    await app.task()
    const before = await tail(app.owner, { limit: 200 })
    const events = await app.events()
    await app.owner.call('task_delete', { task_id: 'T-1' })
    await app.owner.call('token_revoke', { agent_id: (await app.agent('worker')).id })
    expect((await tail(app.owner, { limit: 200 })).slice(-before.length)).toEqual(before)
    expect((await app.events()).slice(0, events.length)).toEqual(events)
    const named = app.app.registry.tools.filter((tool) => /^(audit|event|call)_/.test(tool.name) && tool.impact !== 'read')
    expect(named).toEqual([])
  })
})

describe('settings', () => {
  test('[Y6] each says its value, its default and what it is for', async ({ app }) => {
    const { settings } = await app.owner.call('setting_get')
    const keys = settings.map((entry: { key: string }) => entry.key)
    expect(keys).toEqual([...keys].toSorted())
    for (const role of ROLE_NAMES) for (const what of ['profile', 'allow', 'deny']) expect(keys).toContain(`roles.${role}.${what}`)
    expect(keys).toContain('general.tasks_wait_default_timeout_seconds')
    for (const entry of settings)
      expect(entry).toMatchObject({ description: expect.stringMatching(/./), changed_at: null, value: entry.default })
  })

  test('[Y7] a change is in force for the very next call, is announced to people, and survives a restart', async ({ app }) => {
    const key = 'general.tasks_wait_max_timeout_seconds'
    expect(await app.owner.call('setting_update', { key, value: 60 })).toEqual({ key, value: 60, previous: 900 })
    expect(await setting(app, key)).toMatchObject({ value: 60, default: 900, changed_by: app.owner.id, changed_at: expect.any(String) })
    expect(await app.events({ type: 'setting.changed' })).toMatchObject([{ subject: key, audience: 'people', data: { value: 60 } }])
    await app.reopen()
    expect(await setting(app, key)).toMatchObject({ value: 60 })
    expect(await app.owner.call('setting_update', { key, value: null })).toEqual({ key, value: 900, previous: 60 })
    expect(await setting(app, key)).toMatchObject({ value: 900, changed_at: null, changed_by: null })
  })

  test.for([
    ['of another type', 'limits.agent_burst', 'many'],
    ['out of its bounds', 'limits.agent_burst', 0],
    ['a fraction', 'limits.agent_burst', 1.5],
    ['no profile', 'roles.worker.profile', 'root'],
    ['not a list', 'roles.worker.deny', 'task_*'],
    ['an empty glob', 'roles.worker.deny', ['']],
  ] as const)('[Y8] a value that is %s is refused, and the old one stays', async ([, key, value], { app }) => {
    expect(await app.owner.refused('setting_update', { key, value })).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining(key),
    })
    const { value: now, default: original } = await setting(app, key)
    expect(now).toEqual(original)
    expect(await app.events({ type: 'setting.changed' })).toEqual([])
  })

  test.for(['limits.agent_bursts', '__proto__', 'constructor', 'toString'])('[Y8] there is no setting %s', async (key, { app }) => {
    expect(await app.owner.refused('setting_update', { key, value: 1 })).toMatchObject({ code: 'INVALID_INPUT', next_tool: 'setting_get' })
    expect(await app.owner.refused('setting_get', { key })).toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('[Y8] only a person changes one', async ({ app }) => {
    const agent = await app.agent('supervisor', { profile: 'maintainer' })
    expect(await agent.refused('setting_update', { key: 'limits.agent_burst', value: 5 })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[K33] a secret one is read back by the owner alone, and is in no answer to others, event or audit', async ({ app }) => {
    const { token } = await app.owner.call('person_invite', { name: 'Ben', profile: 'maintainer' })
    const ben = new Caller(app.app, token, '', 'ben')
    await app.owner.call('setting_update', { key: WEBHOOK.key, value: 'https://hooks.example.com/before/verysecret' })
    const shown = [await ben.call('setting_update', WEBHOOK)]
    await app.owner.refused('setting_update', { ...WEBHOOK, value: 'http://elsewhere.example.com/verysecret' })
    const planner = await app.agent('planner', { profile: 'viewer' })
    for (const caller of [planner, ben]) {
      shown.push(await caller.call('setting_get', {}), await caller.call('setting_get', { key: WEBHOOK.key }))
      shown.push(await caller.call('audit_tail', {}), await caller.call('event_list', {}))
    }
    shown.push(await app.owner.call('audit_tail', {}), await app.events({}))
    expect(JSON.stringify(shown)).not.toContain('verysecret')
    expect(JSON.stringify(shown)).toContain(WEBHOOK.key)
    expect(shown[0]).toEqual({ key: WEBHOOK.key, value: '[redacted]', previous: '[redacted]' })
    expect((await planner.call('setting_get', { key: WEBHOOK.key })).settings[0].value).toBe('[redacted]')
    expect((await setting(app, WEBHOOK.key)).value).toBe(WEBHOOK.value)
    await app.owner.call('setting_update', { key: WEBHOOK.key, value: null })
    expect((await planner.call('setting_get', { key: WEBHOOK.key })).settings[0].value).toBe('')
  })
})

describe('waiting for events', () => {
  test('[Y9] filters by type, by noun, by project and by task', async ({ app }) => {
    const { cursor } = await app.owner.call('task_list')
    const task = await app.task()
    const other = await app.task()
    await app.owner.call('task_note', { task_id: task.id, body: 'x' })
    await app.owner.call('task_move', { task_id: other.id, status: 'IN_PROGRESS' })
    const types = async (input: Record<string, unknown>) =>
      (await app.owner.call('event_wait', { cursor, timeout_seconds: 0.001, ...input })).events.map((event: { type: string }) => event.type)
    expect(await types({})).toEqual(['project.created', 'task.created', 'task.created', 'task.noted', 'task.moved'])
    expect(await types({ types: ['task.*'] })).toEqual(['task.created', 'task.created', 'task.noted', 'task.moved'])
    expect(await types({ types: ['task.noted', 'project.*'] })).toEqual(['project.created', 'task.noted'])
    expect(await types({ task_id: task.handle })).toEqual(['task.created', 'task.noted'])
    expect(await types({ project_id: 'web', types: ['task.moved'] })).toEqual(['task.moved'])
    expect(await types({ types: ['tas.*'] })).toEqual([])
    expect(await types({ limit: 2 })).toEqual(['project.created', 'task.created'])
  })

  test('[Y9] an event says when, who and about what', async ({ app }) => {
    const { cursor } = await app.owner.call('task_list')
    const task = await app.task()
    const { events } = await app.owner.call('event_wait', { cursor, types: ['task.created'] })
    expect(events).toEqual([
      {
        cursor: expect.any(String),
        at: task.created_at,
        type: 'task.created',
        subject: task.id,
        actor: app.owner.id,
        project_id: task.project_id,
        task_id: task.id,
        data: { handle: 'T-1', version: 1, title: 'Do it', status: 'BACKLOG' },
      },
    ])
  })

  test('[Y10] EVENTS, WAIT_TIMEOUT, WAIT_INTERRUPTED: each with a cursor, and resume when the time asked for is not over', async ({
    app,
  }) => {
    const { cursor } = await app.owner.call('task_list')
    expect(await app.owner.call('event_wait', { timeout_seconds: 0.001 })).toEqual({
      events: [],
      cursor,
      code: 'WAIT_TIMEOUT',
      resume: false,
    })
    expect(await app.owner.call('event_wait', { timeout_seconds: 9e9 }, { holdMs: 1 })).toEqual({
      events: [],
      cursor,
      code: 'WAIT_TIMEOUT',
      resume: true,
    })
    const gone = AbortSignal.abort()
    expect(await app.owner.call('event_wait', {}, { signal: gone })).toEqual({ events: [], cursor, code: 'WAIT_INTERRUPTED', resume: true })
    await app.project()
    expect(await app.owner.call('event_wait', { cursor })).toMatchObject({ code: 'EVENTS', resume: false })
  })

  test.for([0, -5, '1', null, [1]])('[Y10] a timeout of %s is INVALID_TIMEOUT', async (timeout_seconds, { app }) => {
    expect(await app.owner.refused('event_wait', { timeout_seconds })).toMatchObject({ code: 'INVALID_TIMEOUT' })
  })
})

describe('looking back at events', () => {
  test('[Y11] newest first, in pages that skip and repeat nothing', async ({ app }) => {
    const task = await app.task()
    for (let i = 0; i < 5; i++) await app.owner.call('task_note', { task_id: task.id, body: `${i}` })
    const seen = []
    let before: string | undefined
    do {
      const page = await app.owner.call('event_list', { task_id: task.id, limit: 2, before })
      seen.push(...page.events)
      before = page.next ?? undefined
    } while (before)
    const all = (await app.events()).filter((event) => event.task === task.id)
    expect(seen.map((event) => event.cursor)).toEqual(all.map((event) => event.cursor).reverse())
    expect(seen.map((event) => event.type)).toEqual([...Array(5).fill('task.noted'), 'task.created'])
    const { cursor, events } = await app.owner.call('event_list', { types: ['task.created'] })
    expect(events).toMatchObject([{ subject: task.id }])
    expect(await app.owner.call('event_wait', { cursor, timeout_seconds: 0.01 })).toMatchObject({ events: [] })
  })

  test('[Y11] a filter that fits few of many events finds them all, and others are answered in between', async ({ app }) => {
    const { engine } = app.app
    await app.owner.call('setting_update', { key: 'limits.agent_burst', value: 200 })
    const many = Array.from({ length: 500 }, (_, i) => ({ type: 'task.noted', subject: `s${i}`, data: {} }))
    for (let i = 0; i < 60; i++)
      await engine.write((tx) => engine.ledger.append(tx, many, { id: `call_${i}`, at: Date.now(), actor: app.owner.id }))
    let turns = 0
    const count = () => setImmediate(() => ++turns < 10_000 && count())
    count()
    const listed = app.owner.call('event_list', { types: ['setting.*'] })
    expect(await listed).toMatchObject({ events: [{ type: 'setting.changed', subject: 'limits.agent_burst' }], next: null })
    expect(turns).toBeGreaterThan(2)
    turns = 10_000
  })

  test('[Y11] an agent reads of its own project only, and a foreign cursor is refused', async ({ app }) => {
    const task = await app.task()
    const other = await app.owner.call('project_create', { name: 'Other' })
    await app.task({ project_id: other.project_id })
    const worker = await app.worker(task.id)
    const { events } = await worker.call('event_list', { limit: 200 })
    expect(events.length).toBeGreaterThan(0)
    expect(events.filter((event: { project_id: string | null }) => event.project_id !== task.project_id)).toEqual([])
    expect(await app.owner.refused('event_list', { before: 'nonsense' })).toMatchObject({ code: 'INVALID_CURSOR' })
  })
})
