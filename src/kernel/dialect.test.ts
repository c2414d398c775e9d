import { describe, expect, onTestFinished } from 'vitest'
import { dialects } from '../dialects/index.ts'
import { type Caller, openTestApp, type TestApp, test } from '../testing/app.ts'
import { harbour, shipyard } from '../testing/dialect.ts'
import { auditRows } from '../testing/probe.ts'
import { CODES, type Code } from './error.ts'
import { Registry } from './registry.ts'

const HARBOUR = { dialect: 'harbour' }

async function open(): Promise<TestApp> {
  const app = await openTestApp({ dialects: [harbour, shipyard] })
  onTestFinished(() => app.close())
  await app.project()
  return app
}

async function catalogue(app: TestApp, caller: Caller, dialect: string, lane: 'default' | 'admin' = 'admin'): Promise<string[]> {
  const found = await app.app.identity.authenticate(app.app.engine.view, caller.secret)
  if (!found) throw new Error('not known')
  return app.app.kernel.permitted(found.principal, lane, dialect).map((entry) => entry.calledAs)
}

describe('with a dialect', () => {
  test('[K25] a call has its names and shapes, both ways', async () => {
    const app = await open()
    const launched = await app.owner.call('launchShip', { shipName: 'Ida' }, HARBOUR)
    expect(launched).toEqual({ shipId: expect.stringMatching(/^task_/), shipName: 'Ida', launchedAt: expect.any(Number), asked: 'Ida' })
    expect(await app.owner.call('listShips', { maxCount: 10 }, HARBOUR)).toEqual({ ships: [{ ...launched, asked: undefined }] })
    expect(await app.owner.invoke('listShips', undefined, HARBOUR)).toMatchObject({ ok: true })
    expect((await auditRows(app)).filter((row) => row.tool === 'task_create')).toMatchObject([
      { dialect: 'harbour/launchShip', input: '{"shipName":"Ida"}' },
    ])
  })

  test('[K25] the list is the catalogue that this token may call', async () => {
    const app = await open()
    expect(await catalogue(app, app.owner, 'harbour')).toEqual(['listShips', 'launchShip', 'whoAmI'])
    expect(await catalogue(app, app.owner, 'harbour', 'default')).toEqual(['listShips', 'whoAmI'])
    expect(await catalogue(app, await app.agent('planner'), 'harbour')).toEqual(['listShips', 'whoAmI'])
  })

  test('[K25] what is hidden from a token is PERMISSION_DENIED, what is unknown TOOL_NOT_FOUND, what is unlisted works', async () => {
    const app = await open()
    const { id } = await app.task()
    const viewer = await app.agent('planner', { profile: 'viewer' })
    expect(await viewer.refused('launchShip', { shipName: 'x' }, HARBOUR)).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await viewer.refused('retireShip', { shipId: id }, HARBOUR)).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await viewer.refused('sinkShip', {}, HARBOUR)).toMatchObject({ code: 'TOOL_NOT_FOUND' })
    expect(await app.owner.refused('listShipz', {}, HARBOUR)).toMatchObject({ code: 'TOOL_NOT_FOUND', suggestions: ['listShips'] })
    expect(await app.owner.call('retireShip', { shipId: id }, HARBOUR)).toEqual({ shipId: id })
  })

  test('[K25] the native names stay available beside it', async () => {
    const app = await open()
    expect(await app.owner.call('task_list', {}, HARBOUR)).toMatchObject({ tasks: [] })
  })

  test("[K26] another dialect's names do not leak in, and its own win", async () => {
    const app = await open()
    expect(await app.owner.refused('countHulls', {}, HARBOUR)).toMatchObject({ code: 'TOOL_NOT_FOUND' })
    expect(await app.owner.call('listShips', {}, { dialect: 'shipyard' })).toEqual({ hulls: 1 })
    expect(await app.owner.call('task_get', {}, { dialect: 'shipyard' })).toEqual({ mine: true })
  })

  test('[K25] a dialect that nobody knows is refused, naming those there are', async () => {
    const app = await open()
    expect(await app.owner.refused('listShips', {}, { dialect: 'klingon' })).toMatchObject({
      code: 'INVALID_INPUT',
      suggestions: ['harbour', 'shipyard'],
    })
  })

  test('[K25] the native schema still guards: unknown keys and wrong types are refused, keys are honoured', async () => {
    const app = await open()
    expect(await app.owner.refused('launchShip', { shipName: 7 }, HARBOUR)).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await app.owner.refused('launchShip', { shipName: 'x', cargo: 1 }, HARBOUR)).toMatchObject({ code: 'INVALID_INPUT' })
    const once = { shipName: 'Ida', idempotency_key: 'once' }
    expect(await app.owner.call('launchShip', once, HARBOUR)).toEqual(await app.owner.call('launchShip', once, HARBOUR))
  })
})

describe('without a dialect', () => {
  test("[K26] a seed's name works unlisted when only one seed has it", async () => {
    const app = await open()
    expect(await app.owner.call('countHulls')).toEqual({ count: 1 })
    expect(await app.owner.call('whoAmI')).toMatchObject({ sailor: 'owner' })
  })

  test('[K26] a name that several seeds have is AMBIGUOUS_TOOL with the candidates', async () => {
    const app = await open()
    expect(await app.owner.refused('listShips')).toMatchObject({
      code: 'AMBIGUOUS_TOOL',
      message: expect.stringMatching(/task_list \(dialect harbour\) or project_list \(dialect shipyard\)/),
      suggestions: ['task_list', 'project_list'],
      hint: expect.stringContaining('?dialect='),
    })
  })

  test('[K26] native names win', async () => {
    const app = await open()
    const task = await app.task()
    expect(await app.owner.call('task_get', { task_id: task.id })).toMatchObject({ task: { id: task.id } })
  })
})

describe('errors', () => {
  test('[K27] every refusal has the shape and the words of the document', async () => {
    const app = await open()
    const viewer = await app.agent('planner', { profile: 'viewer' })
    const shaped = async (caller: Caller, tool: string, input: unknown) =>
      (await caller.invoke(tool, input, HARBOUR)) as { shaped?: unknown }
    const text = expect.any(String)
    expect((await shaped(viewer, 'launchShip', {})).shaped).toEqual({
      failed: true,
      order: 'launchShip',
      errorCode: 'NotYourShip',
      errorText: text,
    })
    expect((await shaped(viewer, 'sinkShip', {})).shaped).toEqual({
      failed: true,
      order: 'sinkShip',
      errorCode: 'NoSuchOrder',
      errorText: text,
    })
    expect((await shaped(app.owner, 'launchShip', {})).shaped).toEqual({
      failed: true,
      order: 'launchShip',
      errorCode: 'BadOrder',
      errorText: text,
    })
    expect((await shaped(app.owner, 'task_get', {})).shaped).toMatchObject({ errorCode: 'BadOrder' })
    expect(await shaped(app.owner, 'listShips', {})).not.toHaveProperty('shaped')
    const bare = await app.owner.invoke('launchShip', {}, {})
    expect(bare).toMatchObject({ ok: false, shaped: { errorCode: 'BadOrder' } })
  })

  test('[K27] a caller that nobody knows gets that shape too', async () => {
    const app = await open()
    const request = { tool: 'listShips', input: {}, credential: { secret: 'nobody' }, surface: 'http', ...HARBOUR } as const
    expect(await app.app.kernel.invoke(request)).toMatchObject({ ok: false, shaped: { failed: true, errorCode: 'UNAUTHENTICATED' } })
  })

  test('[K27] every native code has a name in every dialect', () => {
    for (const dialect of [harbour, shipyard, ...dialects]) {
      expect(Object.keys(dialect.codes).toSorted()).toEqual(Object.keys(CODES).toSorted())
      for (const code of Object.keys(CODES) as Code[]) {
        expect(dialect.codes[code]).toMatch(/./)
        expect(JSON.stringify(dialect.error({ code, message: 'm' }, 'x'))).toContain(dialect.codes[code])
      }
    }
  })
})

describe('roles', () => {
  test("[K28] documented globs are matched against the dialect's own names", async () => {
    const app = await open()
    const worker = await app.agent('worker', { profile: 'operator' })
    expect(await catalogue(app, worker, 'harbour')).toEqual(['listShips', 'whoAmI'])
    expect(await worker.invoke('listShips', {}, HARBOUR)).toMatchObject({ ok: true })
    expect(await worker.refused('launchShip', { shipName: 'x' }, HARBOUR)).toMatchObject({ code: 'PERMISSION_DENIED' })
    const orchestrator = await app.agent('orchestrator')
    expect(await orchestrator.refused('launchShip', { shipName: 'x' }, HARBOUR)).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await orchestrator.refused('launchShip', { shipName: 'x' })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[K28] they narrow and never extend: neither a profile nor a role that the settings have narrowed', async () => {
    const app = await open()
    const viewer = await app.agent('orchestrator', { profile: 'viewer' })
    expect(await viewer.refused('retireShip', { shipId: 'T-1' }, HARBOUR)).toMatchObject({ code: 'PERMISSION_DENIED' })
    await app.owner.call('setting_update', { key: 'roles.worker.deny', value: ['task_list'] })
    const worker = await app.agent('worker')
    expect(await worker.refused('listShips', {}, HARBOUR)).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await catalogue(app, worker, 'harbour')).toEqual(['whoAmI'])
  })

  test('[K28] a role that the document does not name has its native rules', async () => {
    const app = await open()
    expect(await catalogue(app, await app.agent('reviewer'), 'harbour')).toEqual(['listShips', 'whoAmI'])
  })
})

describe('the registry', () => {
  test('[K26] a dialect over a tool that does not exist, or a name declared twice, does not load', async () => {
    const app = await open()
    const all = app.app.registry.capabilities
    expect(() => new Registry([], [harbour])).toThrow('no tool is declared as task_list')
    expect(() => new Registry(all, [harbour, harbour])).toThrow('"harbour" is declared twice')
    expect(() => new Registry(all, [{ ...shipyard, tools: [...shipyard.tools, ...shipyard.tools] }])).toThrow('declared twice')
    expect(() => new Registry([...all, ...all], [])).toThrow('declared twice')
  })
})
