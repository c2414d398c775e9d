import { describe, expect } from 'vitest'
import { z } from 'zod'
import { AgentId, TaskId } from '../capabilities/ids.ts'
import { openTestApp, test } from '../testing/app.ts'
import { auditRows, put, withProbe, written } from '../testing/probe.ts'
import { deferred, until } from '../testing/signals.ts'
import { refuse } from './error.ts'
import { mapIds, mention, placesOf, self } from './id.ts'
import { defineTool, type Tool } from './tool.ts'

const base = { title: 'Probe', description: 'A tool of a test.', profile: 'viewer' } as const
const Said = z.strictObject({ said: z.string() })

async function probing(...tools: Tool[]) {
  const app = await openTestApp({ capabilities: withProbe(tools) })
  return { app, [Symbol.asyncDispose]: () => app.close() }
}

describe('shapes', () => {
  test('[K1] a transaction writes, a look and a watch read: a declaration that says otherwise does not load', () => {
    const parts = { ...base, input: z.strictObject({}), output: Said }
    const answer = async () => ({ said: 'x' })
    expect(() => defineTool({ ...parts, name: 'probe_a', impact: 'read', run: answer })).toThrow('a transaction writes')
    expect(() => defineTool({ ...parts, name: 'probe_b', impact: 'write', look: answer })).toThrow('a transaction writes')
    expect(() => defineTool({ ...parts, name: 'probe_c', impact: 'destructive', watch: answer })).toThrow('a transaction writes')
  })

  test('[K1] only a tool that writes takes an idempotency_key', () => {
    const parts = { ...base, input: z.strictObject({ a: z.boolean() }), output: Said }
    const answer = async () => ({ said: 'x' })
    const run = defineTool({ ...parts, name: 'probe_run', impact: 'write', run: answer })
    const look = defineTool({ ...parts, name: 'probe_look', impact: 'read', look: answer })
    expect(Object.keys(run.inputJson.properties as object)).toEqual(['a', 'idempotency_key'])
    expect(Object.keys(look.inputJson.properties as object)).toEqual(['a'])
  })

  test('[K1] a look reads rows, ports and the log, and has nothing to write with', async () => {
    let keys: string[] = []
    const look = defineTool({
      ...base,
      name: 'probe_look',
      input: z.strictObject({}),
      output: z.strictObject({ ok: z.boolean(), cursor: z.string(), events: z.array(z.string()) }),
      impact: 'read',
      async look(ctx) {
        keys = Object.keys(ctx)
        const events = await ctx.tail(undefined, { types: ['project.*'] }, 10)
        return { ok: ctx.ports.daemon.health().ok, cursor: await ctx.cursor(), events: events.map((event) => event.type) }
      },
    })
    await using probe = await probing(look)
    await probe.app.project()
    expect(await probe.app.owner.call('probe_look')).toEqual({ ok: true, cursor: expect.any(String), events: ['project.created'] })
    expect(keys).not.toContain('tx')
    expect(keys).not.toContain('emit')
  })

  test('[K1] a transaction is given rows, events, time and ids, and no port', async () => {
    let keys: string[] = []
    const run = defineTool({
      ...base,
      name: 'probe_run',
      input: z.strictObject({}),
      output: Said,
      impact: 'write',
      async run(ctx) {
        keys = Object.keys(ctx)
        return { said: ctx.id('probe') }
      },
    })
    await using probe = await probing(run)
    await probe.app.owner.call('probe_run')
    expect(keys.toSorted()).toEqual('ask callId decideEffect emit enqueue id later now principal setting tx view'.split(' '))
  })

  test('[K1] a watch returns with the event that it waited for', async () => {
    const watch = defineTool({
      ...base,
      name: 'probe_watch',
      input: z.strictObject({}),
      output: Said,
      impact: 'read',
      async watch(ctx) {
        const { events } = await ctx.waitFor(await ctx.cursor(), { types: ['project.created'] }, 20_000)
        return { said: events[0]?.data.name as string }
      },
    })
    await using probe = await probing(watch)
    const { app } = probe
    const waiting = app.owner.call('probe_watch')
    await until(() => app.app.feed.waiters === 1)
    await app.owner.call('project_create', { name: 'Later' })
    expect(await waiting).toEqual({ said: 'Later' })
    expect(app.app.feed.waiters).toBe(0)
  })

  test('[K1] prepare + run: what the look found reaches the transaction, and a refusal of it writes nothing', async () => {
    const tool = defineTool({
      ...base,
      name: 'probe_prepared',
      input: z.strictObject({ fail: z.boolean().default(false) }),
      output: Said,
      impact: 'write',
      async prepare(ctx, { fail }) {
        return fail ? refuse('CONFLICT', 'not now') : { version: ctx.ports.daemon.health().database.engine }
      },
      async run(ctx, _input, { version }) {
        await put(ctx, version)
        return { said: version }
      },
    })
    await using probe = await probing(tool)
    const { app } = probe
    expect(await app.owner.call('probe_prepared')).toEqual({ said: app.app.engine.facts.name })
    expect(await app.owner.refused('probe_prepared', { fail: true })).toMatchObject({ code: 'CONFLICT' })
    expect(await written(app)).toEqual([app.app.engine.facts.name])
    const outcomes = (await auditRows(app)).filter((row) => row.tool === 'probe_prepared').map((row) => row.outcome)
    expect(outcomes).toEqual(['ok', 'refused'])
  })

  test('[K1] run + watch: the transaction is committed before the wait begins, and its outcome is the watch', async () => {
    const seen = deferred<string[]>()
    const tool = defineTool({
      ...base,
      name: 'probe_asked',
      input: z.strictObject({ body: z.string().max(20) }),
      output: Said,
      impact: 'write',
      async run(ctx, { body }) {
        await put(ctx, body)
        return { asked: body }
      },
      async watch(ctx, _input, { asked }) {
        seen.resolve(await written(app))
        const { events } = await ctx.waitFor(await ctx.cursor(), { types: ['project.created'] }, 20_000)
        return { said: `${asked} ${events[0]?.data.name}` }
      },
    })
    await using probe = await probing(tool)
    const { app } = probe
    const asking = app.owner.call('probe_asked', { body: 'ping' })
    expect(await seen.promise).toEqual(['ping'])
    await until(() => app.app.feed.waiters === 1)
    await app.owner.call('project_create', { name: 'pong' })
    expect(await asking).toEqual({ said: 'ping pong' })
    expect((await auditRows(app)).filter((row) => row.tool === 'probe_asked')).toMatchObject([{ outcome: 'ok' }])
  })

  test('[K1] a pairing whose transaction refuses does not wait', async () => {
    const tool = defineTool({
      ...base,
      name: 'probe_asked',
      input: z.strictObject({}),
      output: Said,
      impact: 'write',
      run: async (): Promise<ReturnType<typeof refuse> | { n: number }> => refuse('CONFLICT', 'nobody is there'),
      watch: async () => {
        throw new Error('must not wait')
      },
    })
    await using probe = await probing(tool)
    expect(await probe.app.owner.refused('probe_asked')).toMatchObject({ code: 'CONFLICT' })
  })

  test('[K5] [K6] a pairing that fails after its commit says so, and the audit has both the success and the failure', async () => {
    const tool = defineTool({
      ...base,
      name: 'probe_asked',
      input: z.strictObject({}),
      output: Said,
      impact: 'write',
      async run(ctx) {
        await put(ctx, 'kept')
        return { n: 1 }
      },
      watch: async () => {
        throw new Error('the watch broke')
      },
    })
    await using probe = await probing(tool)
    const { app } = probe
    const error = await app.owner.refused('probe_asked')
    expect(error.code).toBe('INTERNAL_ERROR')
    expect(error.message).not.toContain('nothing was written')
    expect(await written(app)).toEqual(['kept'])
    await app.reopen()
    const rows = (await auditRows(app)).filter((row) => row.tool === 'probe_asked')
    expect(rows.map((row) => row.outcome)).toEqual(['ok', 'failed'])
    expect(rows[1]?.output).toContain(rows[0]?.id)
  })
})

describe('ids inside an input', () => {
  const found = async (schema: z.ZodType, value: unknown) => {
    const ids: string[] = []
    const mapped = await mapIds(placesOf(schema), schema.parse(value), async (kind, use, ref) => {
      ids.push(`${use} ${kind} ${ref}`)
      return `<${ref}>`
    })
    return { ids, mapped }
  }

  test('[K2] every id is found, however nested, and handles are replaced in place', async () => {
    const schema = z.strictObject({
      task: TaskId,
      maybe: TaskId.optional(),
      none: TaskId.nullable(),
      many: z.array(z.strictObject({ task: mention(TaskId).describe('described'), n: z.int() })),
      byName: z.record(z.string(), AgentId.nullable()),
      me: self(AgentId).refine(() => true),
    })
    const value = { task: 'T-1', none: null, many: [{ task: 'T-2', n: 1 }], byName: { a: 'ann', b: null }, me: 'bob' }
    expect(await found(schema, value)).toEqual({
      ids: ['act task T-1', 'mention task T-2', 'act agent ann', 'self agent bob'],
      mapped: { task: '<T-1>', none: null, many: [{ task: '<T-2>', n: 1 }], byName: { a: '<ann>', b: null }, me: '<bob>' },
    })
  })

  test('[K2] in a union the ids of the chosen alternative count, not those of another with the same key', async () => {
    const schema = z.strictObject({
      arguments: z.union([
        z.strictObject({ action: z.literal('give'), to: AgentId, task: TaskId }),
        z.strictObject({ action: z.literal('file'), to: TaskId }),
        z.strictObject({ action: z.literal('sleep') }),
      ]),
    })
    expect((await found(schema, { arguments: { action: 'give', to: 'ann', task: 'T-1' } })).ids).toEqual(['act agent ann', 'act task T-1'])
    expect((await found(schema, { arguments: { action: 'file', to: 'T-2' } })).ids).toEqual(['act task T-2'])
    expect((await found(schema, { arguments: { action: 'sleep' } })).ids).toEqual([])
    expect((await found(z.strictObject({ ref: z.union([TaskId, AgentId]) }), { ref: 'T-3' })).ids).toEqual(['act task T-3'])
  })

  test.for([
    ['an object that lets unknown keys through', z.strictObject({ a: z.object({ task: TaskId }) })],
    ['an open bag', z.strictObject({ a: z.looseObject({}) })],
    ['anything', z.strictObject({ a: z.any() })],
    ['an unknown', z.strictObject({ a: z.array(z.unknown()) })],
    ['a lazy schema', z.strictObject({ a: z.lazy(() => TaskId) })],
    ['a pipe', z.strictObject({ a: TaskId.transform((id) => id) })],
    ['ids as the keys of a record', z.strictObject({ a: z.record(TaskId, z.string()) })],
    ['an intersection', z.strictObject({ a: z.intersection(TaskId, z.string()) })],
  ] as const)('[K2] %s may hide an id, so it cannot be declared', ([, input]) => {
    const parts = { ...base, name: 'probe_hide', output: Said, impact: 'read', look: async () => ({ said: '' }) } as const
    expect(() => defineTool({ ...parts, input })).toThrow(/may hide an id|must be refused/)
  })
})
