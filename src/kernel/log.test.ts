import { afterEach, describe, expect, onTestFinished, vi } from 'vitest'
import { openTestApp, type TestApp, test } from '../testing/app.ts'
import { until } from '../testing/signals.ts'
import { type LoggedEvent, matches } from './event.ts'
import { Feed, type Ledger } from './log.ts'
import { SYSTEM } from './policy.ts'
import type { Storage } from './storage.ts'

type Seen = { events: { type: string; subject: string; cursor: string }[]; cursor: string; code: string; resume: boolean }

async function open(): Promise<TestApp> {
  const app = await openTestApp()
  onTestFinished(() => app.close())
  return app
}

const note = (app: TestApp, task: { id: string }, body: string) => app.owner.call('task_note', { task_id: task.id, body })

/** A log in memory whose reads can be made to fail. */
function smallLog() {
  const events: LoggedEvent[] = []
  const log = { events, failures: 0, add }
  const at = (cursor: string) => Number(cursor)
  const ledger = {
    async tail(_view, after, filter, limit) {
      if (log.failures > 0) {
        log.failures--
        throw new Error('storage does not answer')
      }
      return events.filter((event) => at(event.cursor) > at(after) && matches(filter, event)).slice(0, limit)
    },
    head: async () => String(events.length),
    start: async () => '0',
    isAfter: (a, b) => at(a) > at(b),
    news: async (view, after, limit) => ({ events: await ledger.tail(view, after, {}, limit), heldBack: false }),
  } as Partial<Ledger> as Ledger
  function add(type = 'a.b') {
    events.push({ cursor: String(events.length + 1), at: 0, actor: 'x', call_id: 'c', type, subject: 's', data: {} })
  }
  return { log, open: () => Feed.open(ledger, {} as Storage) }
}

describe('the feed', () => {
  afterEach(() => void vi.useRealTimers())

  test('[K21] a commit at any instant of a running round is told', async () => {
    for (let steps = 0; steps < 25; steps++) {
      const { log, open } = smallLog()
      const feed = await open()
      const heard: string[] = []
      feed.subscribe((events) => heard.push(...events.map((event) => event.cursor)))
      log.add()
      void feed.pump()
      for (let i = 0; i < steps; i++) await Promise.resolve()
      log.add()
      void feed.pump()
      await new Promise((resolve) => setImmediate(resolve))
      expect({ steps, heard }).toEqual({ steps, heard: ['1', '2'] })
    }
  })

  test('[K21] when storage does not answer, nothing is lost: it is told later, without another commit', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { log, open } = smallLog()
    const feed = await open()
    const heard: string[] = []
    feed.subscribe((events) => heard.push(...events.map((event) => event.cursor)))
    log.add()
    log.failures = 2
    await feed.pump()
    expect(heard).toEqual([])
    await vi.advanceTimersByTimeAsync(1_000)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(heard).toEqual(['1'])
  })

  test('[K31] nobody is told of an event before what has to be in force is in force; a failure there is tried again', async () => {
    const { log, open } = smallLog()
    const feed = await open()
    const steps: string[] = []
    const outcomes = [() => Promise.reject(new Error('storage does not answer')), async () => {}]
    feed.beforeTelling = async () => {
      steps.push('in force')
      await new Promise((resolve) => setImmediate(resolve))
      await outcomes.shift()?.()
    }
    feed.subscribe((events) => steps.push(`told ${events.length}`))
    log.add()
    void feed.pump()
    await until(() => steps.length === 3)
    expect(steps).toEqual(['in force', 'in force', 'told 1'])
  })

  test('[K21] a long wait ends by its own time, by our ceiling or by an interruption, whichever comes first', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { open } = smallLog()
    const feed = await open()
    const { signal } = new AbortController()
    const timeout = feed.wait(SYSTEM, '0', {}, { timeoutMs: 900_000, holdMs: 1_000_000, signal })
    const hold = feed.wait(SYSTEM, '0', {}, { timeoutMs: 900_000, holdMs: 240_000, signal })
    await vi.advanceTimersByTimeAsync(240_000)
    expect(await hold).toEqual({ events: [], ended: 'hold' })
    expect(feed.waiters).toBe(1)
    await vi.advanceTimersByTimeAsync(660_000)
    expect(await timeout).toEqual({ events: [], ended: 'timeout' })
    const interrupted = feed.wait(SYSTEM, '0', {}, { timeoutMs: 900_000, holdMs: 240_000, signal })
    feed.interrupt()
    expect(await interrupted).toEqual({ events: [], ended: 'interrupted' })
    expect(await feed.wait(SYSTEM, '0', {}, { timeoutMs: 1, holdMs: 1, signal })).toEqual({ events: [], ended: 'interrupted' })
    expect(vi.getTimerCount()).toBe(0)
    expect(feed.waiters + feed.readers).toBe(0)
  })

  test('[K21] a wait that was told in time says so, although its time was over before its turn to be woken came', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { log, open } = smallLog()
    const feed = await open()
    const limits = { timeoutMs: 300, holdMs: 1_000, signal: new AbortController().signal }
    const waits = Array.from({ length: 100 }, () => feed.wait(SYSTEM, '0', {}, limits))
    await new Promise((resolve) => setImmediate(resolve))
    // As when whoever hears of it takes so long: the time of all is over before the first is woken.
    feed.subscribe(() => void vi.advanceTimersByTime(350))
    log.add()
    await feed.pump()
    const ended = (await Promise.all(waits)).map((waited) => `${waited.ended} ${waited.events.length}`)
    expect([...new Set(ended)]).toEqual(['events 1'])
  })

  test('[K21] an event that is told late, to one whose cursor is already behind it, ends nothing', async () => {
    const { log, open } = smallLog()
    const feed = await open()
    log.add()
    const waiting = feed.wait(SYSTEM, '1', {}, { timeoutMs: 20_000, holdMs: 20_000, signal: new AbortController().signal })
    await feed.pump()
    // Comes only when the wait sleeps again instead of looking for ever.
    await new Promise((resolve) => setImmediate(resolve))
    expect(feed.waiters).toBe(1)
    log.add()
    await feed.pump()
    expect((await waiting).events.map((event) => event.cursor)).toEqual(['2'])
  })

  test('[K21] an event that does not fit wakes nobody up for good', async () => {
    const { log, open } = smallLog()
    const feed = await open()
    const waiting = feed.wait(SYSTEM, '0', { types: ['a.c'] }, { timeoutMs: 20_000, holdMs: 20_000, signal: new AbortController().signal })
    log.add('a.b')
    await feed.pump()
    expect(feed.waiters).toBe(1)
    log.add('a.c')
    await feed.pump()
    expect((await waiting).events.map((event) => event.type)).toEqual(['a.c'])
  })
})

describe('waits', () => {
  test('[K21] an event between the snapshot and the wait is delivered', async () => {
    const app = await open()
    const task = await app.task()
    const { cursor } = await app.owner.call('task_list')
    await note(app, task, 'in between')
    const seen: Seen = await app.owner.call('event_wait', { cursor })
    expect(seen).toMatchObject({ code: 'EVENTS', resume: false, events: [{ type: 'task.noted', subject: task.id }] })
    expect(await app.owner.call('event_wait', { cursor: seen.cursor, timeout_seconds: 0.001 })).toMatchObject({
      code: 'WAIT_TIMEOUT',
      cursor: seen.cursor,
    })
  })

  test('[K21] what is left out by its type is neither read nor waited for', async () => {
    const app = await open()
    const task = await app.task()
    const { cursor } = await app.owner.call('task_list')
    const seen = app.owner.call('event_wait', { cursor, types: ['task.*', '!task.noted'] })
    await until(() => app.app.feed.waiters === 1)
    await note(app, task, 'not this one')
    await app.owner.call('task_update', { task_id: task.id, title: 'this one' })
    expect((await seen).events.map((event: { type: string }) => event.type)).toEqual(['task.updated'])
    const types = async (wanted: string[]) =>
      (await app.owner.call('event_list', { task_id: task.id, types: wanted })).events.map((event: { type: string }) => event.type)
    expect(await types(['!task.noted'])).toEqual(['task.updated', 'task.created'])
    expect(await types(['!task.*'])).toEqual([])
  })

  test('[K21] without a cursor a wait begins now', async () => {
    const app = await open()
    const task = await app.task()
    expect(await app.owner.call('event_wait', { timeout_seconds: 0.001 })).toMatchObject({
      code: 'WAIT_TIMEOUT',
      events: [],
      resume: false,
    })
    const waiting = app.owner.call('event_wait', {})
    await until(() => app.app.feed.waiters === 1)
    await note(app, task, 'now')
    expect((await waiting).events).toHaveLength(1)
  })

  test('[K21] a wait that the surface cannot hold so long says so, and goes on from its cursor', async () => {
    const app = await open()
    const task = await app.task()
    const held: Seen = await app.owner.call('event_wait', { timeout_seconds: 600 }, { holdMs: 1 })
    expect(held).toMatchObject({ code: 'WAIT_TIMEOUT', resume: true, events: [] })
    await note(app, task, 'meanwhile')
    expect((await app.owner.call('event_wait', { cursor: held.cursor })).events).toHaveLength(1)
  })

  test('[K21] a caller that goes away ends its wait, and leaves nothing behind', async () => {
    const app = await open()
    const gone = new AbortController()
    const waiting = app.owner.call('event_wait', {}, { signal: gone.signal })
    await until(() => app.app.feed.waiters === 1)
    const readers = app.app.feed.readers
    gone.abort()
    expect(await waiting).toMatchObject({ code: 'WAIT_INTERRUPTED', resume: true })
    expect([app.app.feed.waiters, app.app.feed.readers]).toEqual([0, readers])
  })

  test('[K21] a restart interrupts waits, and they resume where they were', async () => {
    const app = await open()
    const task = await app.task()
    const waiting: Promise<Seen> = app.owner.call('event_wait', { timeout_seconds: 600 })
    await until(() => app.app.feed.waiters === 1)
    await app.reopen()
    const ended = await waiting
    expect(ended).toMatchObject({ code: 'WAIT_INTERRUPTED', resume: true })
    await note(app, task, 'after the restart')
    expect((await app.owner.call('event_wait', { cursor: ended.cursor })).events).toHaveLength(1)
  })

  test('[K21] 500 waiters hear of one event, each once, and none is left', async () => {
    const app = await open()
    const task = await app.task()
    const waiting = Array.from({ length: 500 }, () => app.owner.call('event_wait', { task_id: task.id }))
    await until(() => app.app.feed.waiters === 500)
    await note(app, task, 'everyone')
    const answers: Seen[] = await Promise.all(waiting)
    expect(new Set(answers.map((answer) => answer.events.length))).toEqual(new Set([1]))
    expect(app.app.feed.waiters).toBe(0)
  })

  test('[K21] [K22] a reader that resumes from its cursor while many write sees every event once, in order', async () => {
    const app = await open()
    const tasks = [await app.task(), await app.task(), await app.task()]
    const { cursor: start } = await app.owner.call('task_list')
    const TOTAL = 1_300
    const read = async (limit: number) => {
      const seen: string[] = []
      for (let cursor = start; seen.length < TOTAL; ) {
        const answer: Seen = await app.owner.call('event_wait', { cursor, limit, types: ['task.noted'] })
        seen.push(...answer.events.map((event) => event.cursor))
        cursor = answer.cursor
      }
      return seen
    }
    const readers = [read(200), read(7)]
    const writer = async (task: { id: string }, share: number) => {
      for (let i = 0; i < share; i++) await note(app, task, String(i))
    }
    await Promise.all(tasks.flatMap((task) => Array.from({ length: 10 }, () => writer(task, Math.ceil(TOTAL / 30)))))
    const heard = await Promise.all(readers)
    const all = (await app.events({ type: 'task.noted' })).map((event) => event.cursor)
    for (const seen of heard) expect(seen).toEqual(all.slice(0, seen.length))
  })
})

describe('cursors', () => {
  test('[K22] a cursor from the future, of another database or of no log is refused', async () => {
    const app = await open()
    const { cursor } = await app.owner.call('task_list')
    const [generation, place, ...rest] = cursor.split('.')
    const later = (text: string) => (Number.parseInt(text, 36) + 1_000_000).toString(36)
    const bad = [
      [generation, later(place), ...rest].join('.'),
      [later(generation), place, ...rest].join('.'),
      [generation, 'z'.repeat(13), 'z'.repeat(11)].join('.'),
      'zz.zzzzzzzzzzz',
      '',
      '.',
      '1',
      '-1.-1',
      '1.1.1.1',
      '1.A',
      'zzzzzzzzzz.1',
      '0.0',
      `1.${'z'.repeat(20)}`,
      '1.1; DROP',
    ]
    for (const text of bad) {
      const answer = await app.owner.invoke('event_wait', { cursor: text, timeout_seconds: 0.001 })
      expect({ text, code: answer.ok ? 'ok' : answer.error.code }).toEqual({ text, code: 'INVALID_CURSOR' })
    }
    expect(await app.owner.refused('event_wait', { cursor: 7 })).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await app.owner.refused('event_wait', { cursor: 'x'.repeat(65) })).toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('[K22] cursors grow with the commits', async () => {
    const app = await open()
    const task = await app.task()
    for (let i = 0; i < 40; i++) await note(app, task, String(i))
    const cursors = (await app.events()).map((event) => event.cursor)
    const { ledger } = app.app.kernel.parts
    for (const [i, cursor] of cursors.slice(1).entries()) expect(ledger.isAfter(cursor, cursors[i] as string)).toBe(true)
  })
})
