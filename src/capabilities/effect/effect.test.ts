import { test as base, describe, expect } from 'vitest'
import { type EffectApp, effectRows, enqueue, leaveCutOff, openEffectApp, states } from '../../testing/effects.ts'
import { until } from '../../testing/signals.ts'
import { makeStrange } from '../../testing/strange.ts'

const test = base.extend<{ app: EffectApp }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  app: async ({}, use) => {
    const app = await openEffectApp()
    await use(app)
    await app.close()
  },
})

/** Dead effects by these names, oldest first. */
async function dead(app: EffectApp, ...names: string[]): Promise<string[]> {
  await enqueue(app, ...names.map((name) => ({ name, fails: 3 })))
  await until(async () => Object.values(await states(app)).filter((state) => state === 'dead').length === names.length)
  return (await effectRows(app)).map((row) => row.id)
}

const list = (app: EffectApp, input = {}) => app.owner.call('effect_list', input)
const ids = (page: { effects: { id: string }[] }) => page.effects.map((effect) => effect.id)

describe('the list', () => {
  test('[Q1] it shows what is stuck and why, and who wanted it', async ({ app }) => {
    await enqueue(app, { name: 'fine' })
    await app.owner.call('probe_enqueue', {
      effects: [{ payload: { name: 'bad', fails: 'often', reports: ['sbt_secret_0123456789abcdefghijklmnopqrstuvwxyz'], token: 'x' } }],
    })
    await leaveCutOff(app, { name: 'cut', type: 'probe.unknown', queue: 'repo' })
    await app.reopen()
    await until(async () => !Object.values(await states(app)).some((state) => state === 'waiting' || state === 'running'))
    const { effects } = await list(app)
    expect(effects).toMatchObject([
      { state: 'unknown', type: 'probe.unknown', queue: 'repo', error: expect.stringContaining('cut off'), payload: { name: 'cut' } },
      { state: 'dead', error: expect.stringContaining('does not fit'), payload: { name: 'bad', token: '[redacted]' } },
    ])
    const [call] = (await app.owner.call('audit_tail', { tool: 'probe_enqueue', limit: 1 })).calls
    expect(effects[1].call_id).toBe(call.id)
    expect(await list(app, { states: ['done'] })).toMatchObject({ effects: [{ payload: { name: 'fine' }, error: null }] })
  })

  test('[K35] one in a state that nobody knows is named as unreadable', async ({ app }) => {
    const [id] = await dead(app, 'a')
    await makeStrange(app, 'effects', 'state')
    expect(await list(app)).toMatchObject({ effects: [], unreadable: [`${id}: state is "weird"`] })
  })

  test('[Q1] pages skip and repeat nothing', async ({ app }) => {
    const all = (await dead(app, 'a', 'b', 'c', 'd', 'e')).reverse()
    const first = await list(app, { limit: 2 })
    const second = await list(app, { limit: 2, before: first.next })
    const third = await list(app, { limit: 2, before: second.next })
    expect([...ids(first), ...ids(second), ...ids(third)]).toEqual([...all].sort().reverse())
    expect(third.next).toBeNull()
  })

  test('[Q2] it counts what is open, whatever it shows', async ({ app }) => {
    await dead(app, 'a', 'b')
    await enqueue(app, { name: 'later', delay_ms: 600_000 }, { name: 'now', holds: true })
    await app.world.began('now')
    expect(await list(app, { states: ['done'] })).toMatchObject({ effects: [], counts: { waiting: 1, running: 1, dead: 2, unknown: 0 } })
  })
})

describe('deciding', () => {
  test('[Q3] a retry begins again from the first attempt, and is told', async ({ app }) => {
    const [id] = await dead(app, 'a')
    expect(await app.owner.call('effect_retry', { effect_id: id })).toEqual({ effect_id: id, decision: 'retry' })
    await until(async () => (await states(app)).a === 'dead' && (await effectRows(app))[0]?.epoch === 6)
    expect((await effectRows(app))[0]?.attempts).toBe(3)
    expect(await app.events({ type: 'effect.decided' })).toMatchObject([
      { subject: id, actor: app.owner.id, audience: 'people', data: { decision: 'retry' } },
    ])
  })

  test('[Q3] a person who retries an unknown one has judged it: it is done, not asked again', async ({ app }) => {
    const { id } = await leaveCutOff(app, { name: 'a', type: 'probe.unknown' })
    await app.reopen()
    await until(async () => (await states(app)).a === 'unknown')
    await app.owner.call('effect_retry', { effect_id: id })
    await until(async () => (await states(app)).a === 'done')
    expect(app.world.done).toEqual(['a'])
  })

  test('[Q3] a drop ends it for good', async ({ app }) => {
    const [id] = await dead(app, 'a')
    expect(await app.owner.call('effect_drop', { effect_id: id })).toEqual({ effect_id: id, decision: 'drop' })
    await app.reopen()
    expect(await list(app)).toMatchObject({ effects: [], counts: { dead: 0, waiting: 0 } })
    expect(await list(app, { states: ['dropped'] })).toMatchObject({ effects: [{ id, finished_at: expect.any(String) }] })
  })

  test('[Q4] what is not stuck cannot be decided about, nor what is not there', async ({ app }) => {
    await enqueue(app, { name: 'a' })
    await until(async () => (await states(app)).a === 'done')
    const [row] = await effectRows(app)
    for (const tool of ['effect_retry', 'effect_drop'])
      expect(await app.owner.refused(tool, { effect_id: row?.id })).toMatchObject({
        code: 'CONFLICT',
        message: expect.stringContaining('done'),
      })
    expect(await app.owner.refused('effect_retry', { effect_id: app.app.host.id('effect') })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect(app.world.done).toEqual(['a'])
  })

  test('[Q4] of twenty who decide at once, one does', async ({ app }) => {
    const [id] = await dead(app, 'a')
    const answers = await Promise.all(Array.from({ length: 20 }, () => app.owner.invoke('effect_drop', { effect_id: id })))
    expect(answers.filter((answer) => answer.ok)).toHaveLength(1)
    expect(await app.events({ type: 'effect.decided' })).toHaveLength(1)
  })

  test('[Q5] an operator looks, a maintainer decides, a worker does neither', async ({ app }) => {
    const [id] = await dead(app, 'a')
    const operator = await app.agent('orchestrator')
    const worker = await app.agent('worker')
    expect(ids(await operator.call('effect_list'))).toEqual([id])
    for (const tool of ['effect_retry', 'effect_drop'])
      expect(await operator.refused(tool, { effect_id: id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await worker.refused('effect_list')).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await states(app)).toEqual({ a: 'dead' })
  })
})
