import { isDeepStrictEqual } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { effectStore } from '../db/effect-store.ts'
import { tables } from '../db/tables.ts'
import type { EffectTimes } from '../kernel/effect.ts'
import { type EffectApp, effectRows, enqueue, leaveCutOff, openEffectApp, QUICK, states, World } from '../testing/effects.ts'
import { written } from '../testing/probe.ts'
import { until } from '../testing/signals.ts'

/** Daemons that share a database tidy up after each other at their start; here not while they run, in the middle of a scene. */
const UNDISTURBED = { beatMs: 600_000 }

async function open(times: Partial<EffectTimes> = UNDISTURBED): Promise<EffectApp> {
  const app = await openEffectApp(new World(), times)
  onTestFinished(() => app.close())
  return app
}

const become = (app: EffectApp, expected: Record<string, string>) => until(async () => isDeepStrictEqual(await states(app), expected))

/** What every driver of the port keeps, over the whole way from the call to the report. */
export function effectsContract(): void {
  describe('enqueueing', () => {
    test('[X1] a call that commits brings its effects, also when it is refused by a returned value; one that throws brings none', async () => {
      const app = await open()
      const effects = (name: string) => [{ payload: { name } }]
      await app.owner.call('probe_enqueue', { effects: effects('answered') })
      await app.owner.refused('probe_enqueue', { effects: effects('refused'), ends: 'refuse' })
      await app.owner.refused('probe_enqueue', { effects: effects('thrown'), ends: 'throw' })
      await become(app, { answered: 'done', refused: 'done' })
      expect(app.world.done.sort()).toEqual(['answered', 'refused'])
    })

    test('[X1] what is enqueued in a transaction that is taken back was never there', async () => {
      const app = await open()
      const { engine, kernel, host } = app.app
      const effect = { id: host.id('effect'), type: 'probe.known', payload: { name: 'back' }, callId: host.id('call'), attempts: 3 }
      const takenBack = engine.write(async (tx) => {
        await kernel.parts.effects.enqueue(tx, [effect])
        throw new Error('taken back')
      })
      await expect(takenBack).rejects.toThrow('taken back')
      await enqueue(app, { name: 'a' })
      await become(app, { a: 'done' })
      expect(app.world.log).toEqual(['+a', '-a'])
    })

    test('[X1] a replayed call brings its effects once', async () => {
      const app = await open()
      const once = { effects: [{ payload: { name: 'a' } }], idempotency_key: 'k' }
      await app.owner.call('probe_enqueue', once)
      await app.owner.call('probe_enqueue', once)
      await become(app, { a: 'done' })
      expect(app.world.done).toEqual(['a'])
    })

    test('[X2] it reports as system; the same report is told once, others are told too', async () => {
      const app = await open()
      await enqueue(app, { name: 'a', reports: ['one', 'two', 'one'] })
      await become(app, { a: 'done' })
      expect((await written(app)).sort()).toEqual(['one by system', 'two by system'])
    })

    test('[X2] a report that an earlier attempt has told is not told again', async () => {
      const app = await open({ ...UNDISTURBED, leaseMs: 2_000 })
      await enqueue(app, { name: 'a', reports: ['one'] })
      await become(app, { a: 'done' })
      const [row] = await effectRows(app)
      await app.app.engine.write((tx) =>
        tables<{ effects: { id: string; state: string } }>(tx).updateTable('effects').set({ state: 'running' }).execute(),
      )
      app.world.done.length = 0
      await app.reopen()
      await until(async () => (await effectRows(app))[0]?.state === 'done' && app.world.done.length === 1)
      expect((await effectRows(app))[0]?.epoch).toBe((row?.epoch ?? 0) + 1)
      expect(await written(app)).toEqual(['one by system'])
    })

    test('[X4] with a delay it begins at its time and not before', async () => {
      const app = await open()
      await enqueue(app, { name: 'late', delay_ms: 300 }, { name: 'far', delay_ms: 600_000 }, { name: 'soon' })
      await become(app, { late: 'done', far: 'waiting', soon: 'done' })
      expect(app.world.log).not.toContain('+far')
      const late = (await effectRows(app)).find((row) => row.payload.includes('late'))
      expect((late?.run_at as number) - (late?.created_at as number)).toBeGreaterThanOrEqual(300)
      expect(late?.finished_at).toBeGreaterThanOrEqual(late?.run_at as number)
    })

    test('[X4] one that is far away makes nobody else wait, whenever they come', async () => {
      const app = await open()
      await enqueue(app, { name: 'far', delay_ms: 600_000 })
      const names = Array.from({ length: 60 }, (_, i) => `n${i}`)
      for (const name of names) {
        await enqueue(app, { name })
        if (name.endsWith('7')) await app.world.began(name)
      }
      await until(() => app.world.done.length === names.length)
    })
  })

  describe('failing', () => {
    test('[X3] it is tried again after a back-off that doubles, and done in the end', async () => {
      const app = await open()
      await enqueue(app, { name: 'a', fails: 2 })
      await become(app, { a: 'done' })
      expect(app.world.log).toEqual(['+a', '-a', '+a', '-a', '+a', '-a'])
      const [row] = await effectRows(app)
      expect(row).toMatchObject({ attempts: 3, epoch: 3, error: null })
      expect((row?.finished_at as number) - (row?.created_at as number)).toBeGreaterThanOrEqual(QUICK.backOffMs * 3)
    })

    test('[X3] [X12] it is dead after its last attempt: that is an event for people, and its error is kept', async () => {
      const app = await open()
      await enqueue(app, { name: 'a', fails: 9 })
      await become(app, { a: 'dead' })
      const [row] = await effectRows(app)
      expect(row).toMatchObject({ attempts: 3, error: 'a failed at attempt 3', owner: null })
      expect(await app.events({ type: 'effect.stuck' })).toMatchObject([
        { subject: row?.id, actor: 'system', audience: 'people', call_id: row?.call_id, data: { state: 'dead', type: 'probe.known' } },
      ])
    })

    test('[X12] whoever waits for it hears of it at once', async () => {
      const app = await open()
      const heard = app.owner.call('event_wait', { types: ['effect.stuck'], timeout_seconds: 20 })
      await until(() => app.app.feed.waiters === 1)
      await enqueue(app, { name: 'a', fails: 9 })
      expect((await heard).events).toMatchObject([{ data: { state: 'dead' } }])
    })

    test('[X10] a payload that does not fit, or a type that nobody knows, is dead at once', async () => {
      const app = await open()
      await app.owner.call('probe_enqueue', { effects: [{ payload: { name: 'a', fails: 'often' } }] })
      await leaveCutOff(app, { name: 'b', type: 'probe.gone' })
      await app.reopen()
      await become(app, { a: 'dead', b: 'dead' })
      const [a, b] = await effectRows(app)
      expect(a).toMatchObject({ attempts: 1, error: expect.stringContaining('does not fit probe.known') })
      expect(b).toMatchObject({ error: expect.stringContaining('knows the effect probe.gone') })
      expect(app.world.log).toEqual([])
    })
  })

  describe('queues', () => {
    test('[X5] one at a time and in order, whatever fails on the way; a dead one lets the next go on', async () => {
      const app = await open()
      const line = (name: string, more = {}) => ({ name, queue: 'repo', ...more })
      await enqueue(app, line('a', { fails: 1 }), line('b'), line('c', { fails: 9 }), line('d'))
      await enqueue(app, line('e'))
      await become(app, { a: 'done', b: 'done', c: 'dead', d: 'done', e: 'done' })
      const twice = (name: string, n: number) => Array.from({ length: n }, () => [`+${name}`, `-${name}`]).flat()
      expect(app.world.log).toEqual([...twice('a', 2), ...twice('b', 1), ...twice('c', 3), ...twice('d', 1), ...twice('e', 1)])
    })

    test('[X5] forty calls at once, each with one for the same queue: never two at a time, in the order of the rows', async () => {
      const app = await open()
      await Promise.all(Array.from({ length: 40 }, (_, i) => enqueue(app, { name: `n${i}`, queue: 'repo' })))
      await until(async () => app.world.done.length === 40, 20_000)
      const order = (await effectRows(app)).map((row) => (JSON.parse(row.payload) as { name: string }).name)
      expect(app.world.log).toEqual(app.world.done.flatMap((name) => [`+${name}`, `-${name}`]))
      if (!app.app.engine.facts.shared) expect(app.world.done).toEqual(order)
    })

    test('[X5] other queues, and those of none, go on beside one that stands', async () => {
      const app = await open()
      await enqueue(app, { name: 'a', queue: 'one', holds: true }, { name: 'b', queue: 'one' }, { name: 'c', queue: 'two' }, { name: 'd' })
      await become(app, { a: 'running', b: 'waiting', c: 'done', d: 'done' })
      app.world.letGo('a')
      await become(app, { a: 'done', b: 'done', c: 'done', d: 'done' })
    })

    test('[X5] one with a delay does not hold the line before its time', async () => {
      const app = await open()
      await enqueue(app, { name: 'late', queue: 'q', delay_ms: 600_000 }, { name: 'a', queue: 'q' }, { name: 'b', queue: 'q' })
      await enqueue(app, { name: 'soon', queue: 'q', delay_ms: 300 })
      await become(app, { late: 'waiting', a: 'done', b: 'done', soon: 'done' })
      expect(app.world.done.filter((name) => name !== 'soon')).toEqual(['a', 'b'])
    })

    test('[X5] a dead one that a person retries goes first in its line again', async () => {
      const app = await open()
      await enqueue(app, { name: 'a', queue: 'q', fails: 2 }, { name: 'b', queue: 'q', holds: true }, { name: 'c', queue: 'q' })
      await app.world.began('b')
      const [a] = await effectRows(app)
      await app.app.engine.write((tx) =>
        tables<{ effects: { id: string; state: string } }>(tx)
          .updateTable('effects')
          .set({ state: 'dead' })
          .where('id', '=', a?.id as string)
          .execute(),
      )
      await app.owner.call('effect_retry', { effect_id: a?.id })
      app.world.letGo('b')
      await become(app, { a: 'done', b: 'done', c: 'done' })
      expect(app.world.done).toEqual(['a', 'b', 'a', 'c'])
    })

    test('[X5] one that was cut off and its older, retried neighbour do not wait for each other', async () => {
      const app = await open()
      await enqueue(app, { name: 'old', queue: 'q', delay_ms: 1 })
      await become(app, { old: 'done' })
      await leaveCutOff(app, { name: 'cut', queue: 'q' })
      await app.app.engine.write((tx) =>
        tables<{ effects: { state: string; type: string } }>(tx)
          .updateTable('effects')
          .set({ state: 'waiting' })
          .where('state', '=', 'done')
          .execute(),
      )
      await app.reopen()
      await become(app, { old: 'done', cut: 'done' })
      expect(app.world.done).toEqual(['old', 'cut', 'old'])
    })
  })

  describe('cut off in the middle', () => {
    test('[X6] what was done is recognised and not repeated; what was not is done', async () => {
      const app = await open()
      app.world.done.push('a')
      await leaveCutOff(app, { name: 'a' })
      await leaveCutOff(app, { name: 'b' })
      await app.reopen()
      await become(app, { a: 'done', b: 'done' })
      expect(app.world.asked.sort()).toEqual(['a', 'b'])
      expect(app.world.done).toEqual(['a', 'b'])
    })

    test('[X6] when the world does not answer it is asked again, and nothing is repeated blindly', async () => {
      const app = await open()
      app.world.done.push('a')
      app.world.recogniseFails = 1
      await leaveCutOff(app, { name: 'a' })
      await app.reopen()
      await become(app, { a: 'done' })
      expect(app.world.asked).toEqual(['a', 'a'])
      expect(app.world.done).toEqual(['a'])
    })

    test('[X7] [X12] what cannot be recognised is unknown, never repeated, and its line goes on', async () => {
      const app = await open()
      await leaveCutOff(app, { name: 'a', type: 'probe.unknown', queue: 'q' })
      await enqueue(app, { name: 'b', queue: 'q' })
      await app.reopen()
      await become(app, { a: 'unknown', b: 'done' })
      expect(app.world.log).toEqual(['+b', '-b'])
      expect(await app.events({ type: 'effect.stuck' })).toMatchObject([{ data: { state: 'unknown', type: 'probe.unknown' } }])
      await app.reopen()
      expect(await states(app)).toEqual({ a: 'unknown', b: 'done' })
    })

    test('[X10] one that takes its daemon down at every attempt ends dead, not in a circle', async () => {
      const app = await open()
      await leaveCutOff(app, { name: 'a' }, { attempts: 3 })
      await app.reopen()
      await become(app, { a: 'dead' })
      expect(app.world.log).toEqual([])
    })
  })

  describe('leases', () => {
    test('[F8] [X8] of 100 that claim one effect exactly one gets it; a late writer with an old epoch is refused', async () => {
      const app = await open()
      const { engine } = app.app
      const { id } = await leaveCutOff(app, { name: 'a' })
      const store = (tx: Parameters<Parameters<typeof engine.write>[0]>[0]) => effectStore(tx, engine.facts)
      const race = () => Promise.all(Array.from({ length: 100 }, (_, i) => engine.write((tx) => store(tx).claim(id, `racer ${i}`, 60_000))))
      expect((await race()).filter(Boolean)).toEqual([])
      await engine.write((tx) => store(tx).expireAllBut([]))
      const [first, ...others] = (await race()).filter((row) => row !== undefined)
      expect(others).toEqual([])
      expect(first).toMatchObject({ epoch: 2, cut_off: 1 })
      await engine.write((tx) => store(tx).expireAllBut([]))
      const [second] = (await race()).filter((row) => row !== undefined)
      if (!first || !second) throw new Error('nobody got it')
      const finish = (row: typeof first) => engine.write((tx) => store(tx).finish(row, { state: 'done' }, 1))
      expect(await finish(first)).toBeUndefined()
      expect(await engine.write((tx) => store(tx).renew(id, first.epoch, 60_000))).toBe(false)
      expect(await states(app)).toEqual({ a: 'running' })
      expect(await finish(second)).toMatchObject({ state: 'done', epoch: 3 })
      expect(await finish(second)).toBeUndefined()
    })

    test('[X9] when its lease is lost its signal says so, and its late word does not count', async () => {
      const app = await open({ ...UNDISTURBED, leaseMs: 6_000 })
      await enqueue(app, { name: 'a', holds: true, deaf: true })
      await app.world.began('a')
      const { engine } = app.app
      const [mine] = await effectRows(app)
      const stolen = await engine.write(async (tx) => {
        await effectStore(tx, engine.facts).expireAllBut([])
        return effectStore(tx, engine.facts).claim(mine?.id as string, 'another', 60_000)
      })
      expect(stolen?.epoch).toBe(2)
      await until(() => app.world.signals.get('a')?.aborted === true)
      app.world.letGo('a')
      await until(() => app.world.log.includes('-a'))
      await app.app.engine.write(async () => {})
      expect((await effectRows(app))[0]).toMatchObject({ state: 'running', owner: 'another', epoch: 2 })
    })

    test('[X8] a lease is renewed for as long as the effect runs', async () => {
      // Long enough that a machine which stands still for a moment loses nothing by that.
      const app = await open({ ...UNDISTURBED, leaseMs: 9_000 })
      await enqueue(app, { name: 'a', holds: true })
      await app.world.began('a')
      const lease = async () => (await effectRows(app))[0]?.lease_until as number
      for (let times = 0, before = await lease(); times < 2; times++, before = await lease())
        await until(async () => (await lease()) > before)
      expect((await effectRows(app))[0]).toMatchObject({ state: 'running', epoch: 1 })
      app.world.letGo('a')
      await become(app, { a: 'done' })
    })
  })

  describe('stopping', () => {
    test('[X11] what runs is finished within the deadline, and nothing new is begun', async () => {
      const app = await open()
      await enqueue(app, { name: 'a', queue: 'q', holds: true }, { name: 'b', queue: 'q' })
      await app.world.began('a')
      const reopened = app.reopen()
      app.world.letGo('a')
      await reopened
      await become(app, { a: 'done', b: 'done' })
      expect(app.world.log).toEqual(['+a', '-a', '+b', '-b'])
      expect(app.world.asked).toEqual([])
    })

    test('[X11] what ends when it is told to is given back: taken up at once, not as cut off, with its attempts', async () => {
      const app = await open()
      await enqueue(app, { name: 'a', type: 'probe.unknown', holds: true })
      await app.world.began('a')
      await app.reopen()
      await until(() => app.world.log.filter((line) => line === '+a').length === 2)
      app.world.letGo('a')
      await become(app, { a: 'done' })
      expect((await effectRows(app))[0]).toMatchObject({ attempts: 1, epoch: 2 })
    })

    test('[X11] what does not end stays on lease, and is asked for its earlier self', async () => {
      const app = await open({ graceMs: 100, leaseMs: 2_000 })
      await enqueue(app, { name: 'a', holds: true, deaf: true })
      await app.world.began('a')
      let left: string | undefined
      await app.reopen(() => {
        left = app.world.log.join()
      })
      expect(left).toBe('+a')
      await until(() => app.world.asked.includes('a'))
      app.world.letGo('a')
      await become(app, { a: 'done' })
    })
  })

  test('[X17] an error that cannot be stored, or holds a secret, is written down as far as it may be, and the line goes on', async () => {
    const app = await open()
    const secret = `ghp_${'a1B2'.repeat(9)}`
    await enqueue(
      app,
      { name: 'a', fails: 9, saying: ` git said \\0 to https://x:${secret}@example.com`, queue: 'q' },
      { name: 'b', queue: 'q' },
    )
    await become(app, { a: 'dead', b: 'done' })
    const [row] = await effectRows(app)
    expect(row?.error).toContain('git said')
    expect(row?.error).not.toContain(secret)
  })

  test('[X17] a payload that somebody damaged is dead and can be seen and dropped; nothing else suffers', async () => {
    const app = await open()
    const row = await leaveCutOff(app, { name: 'a', queue: 'q' }, { state: 'waiting', payload: 'notjson' })
    await app.reopen()
    await until(async () => (await effectRows(app))[0]?.state === 'dead')
    await enqueue(app, { name: 'b', queue: 'q' })
    await until(async () => app.world.done.includes('b'))
    const { effects } = await app.owner.call('effect_list')
    expect(effects).toMatchObject([{ id: row.id, payload: 'notjson', state: 'dead' }])
    await app.owner.call('effect_drop', { effect_id: row.id })
  })

  test('[X13] what is over is forgotten after its time; what waits for a person is kept', async () => {
    const app = await open()
    await enqueue(app, { name: 'done' }, { name: 'dead', fails: 9 }, { name: 'later', delay_ms: 600_000 })
    await leaveCutOff(app, { name: 'unknown', type: 'probe.unknown' })
    await app.reopen()
    await become(app, { done: 'done', dead: 'dead', later: 'waiting', unknown: 'unknown' })
    const forget = (ms: number) => app.app.engine.write((tx) => effectStore(tx, app.app.engine.facts).forget(ms))
    await forget(3_600_000)
    expect(Object.keys(await states(app))).toHaveLength(4)
    await forget(-1_000)
    expect(await states(app)).toEqual({ dead: 'dead', later: 'waiting', unknown: 'unknown' })
  })
}
