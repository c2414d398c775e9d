import { rmSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { type DaemonOptions, TestDaemon } from '../../src/testing/daemon.ts'
import { repository } from '../chaos/kill-runs.ts'
import { fakeClock } from './fake-clock.ts'
import { databaseOf, leftOut, Mcp, rows, Stream, send, until, waiting } from './support.ts'

const cleanup: (() => unknown)[] = []
afterEach(async () => {
  for (const undo of cleanup.splice(0).reverse()) await undo()
})

const HOUR = 3_600_000

interface Clocked {
  daemon: TestDaemon
  task_id: string
  /** Sets the daemon's wall clock: an offset like `+3600`, or a time like `@2026-10-25 00:59:58`. Its monotonic clock runs on. */
  set(clock: string): void
}

async function withClock(options: DaemonOptions = {}, clock = '+0'): Promise<Clocked> {
  const { env, set, remove } = fakeClock(clock)
  const daemon = await TestDaemon.start({ ...options, env: { ...env, ...options.env } })
  cleanup.push(async () => {
    await daemon.remove()
    remove()
  })
  await daemon.call('project_create', { name: 'Web' })
  const { task_id } = await daemon.call('task_create', { title: 'x' })
  return { daemon, task_id, set }
}

/** What time the daemon thinks it is. */
async function clockOf(daemon: TestDaemon): Promise<number> {
  return Date.parse((await daemon.call('decision_log', { title: 'x', body: 'x' })).timestamp)
}

const scriptOf = (steps: unknown[]) => `\`\`\`signalbox\n${JSON.stringify(steps)}\n\`\`\`\n`

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
const note = (daemon: TestDaemon, task_id: string): Promise<any> => daemon.call('task_note', { task_id, body: 'x' })

describe.skipIf(leftOut('faketime', '[F22] clock jumps'))('[F22] the clock jumps', () => {
  test.each([
    ['an hour forward', '+3600', HOUR],
    // Its own clock goes on, at half speed.
    ['an hour back', '-3600', 0],
  ])('[F22] %s in mid-run: no wait fires early or hangs, streams go on', async (_name, offset, jump) => {
    const { daemon, task_id, set } = await withClock()
    const stream = await Stream.open(daemon)
    const mcp = await Mcp.begin(daemon)
    const wait = daemon.call('event_wait', { types: ['task.noted'], timeout_seconds: 600 })
    const taskWait = daemon.call('task_wait', { task_id, timeout_seconds: 600 })
    await until(async () => (await waiting(daemon)) === 2, 'two wait')
    let woken = 0
    for (const open of [wait, taskWait]) open.then(() => woken++)
    const before = await clockOf(daemon)
    const began = performance.now()
    let over = false
    const short = daemon
      .call('task_wait', { task_id, timeout_seconds: 1.5 })
      .then((answer) => ({ answer, took: performance.now() - began }))
      .finally(() => {
        over = true
      })
    await until(async () => over || (await waiting(daemon)) === 3, 'a third waits')
    set(offset)
    await until(async () => Math.abs((await clockOf(daemon)) - before - jump) < 60_000, 'the daemon sees the jump')
    const { answer, took } = await short
    expect(answer).toMatchObject({ code: 'WAIT_TIMEOUT', resume: false })
    expect(took).toBeGreaterThan(1_400)
    // An hour longer, if it went by the wall clock.
    expect(took).toBeLessThan(60_000)
    await until(async () => (await waiting(daemon)) === 2, 'two still wait')
    expect(woken).toBe(0)
    const { note_id } = await note(daemon, task_id)
    expect((await wait).events).toMatchObject([{ data: { note_id } }])
    await daemon.call('task_move', { task_id, status: 'IN_PROGRESS' })
    expect(await taskWait).toMatchObject({ code: 'TASK_CHANGED', current_status: 'IN_PROGRESS' })
    await stream.heard((events) => events.at(-1)?.type === 'task.moved')
    expect((await mcp.tool('agent_me')).isError).toBeUndefined()
    expect((await daemon.call('system_health')).uptime_seconds).toBeLessThan(300)
    stream.close()
  })

  test('[F22] an hour back: what is due in seconds is due in seconds, a back-off as well as the next letter', async () => {
    const { daemon, set } = await withClock()
    const repo = repository()
    cleanup.push(() => rmSync(repo, { recursive: true, force: true }))
    const settings = { 'runs.back_off_seconds': 3, 'mail.per_minute': 60, 'mail.burst': 1 }
    for (const [key, value] of Object.entries(settings)) await daemon.call('setting_update', { key, value })
    await daemon.call('repo_add', { path: repo })
    const { task_id } = await daemon.call('task_create', { title: 'dies', description: scriptOf([{ exit: { code: 3 } }]) })
    const { job_id } = await daemon.call('job_submit', { task_id, action: 'start_agent', harness: 'scripted' })
    const job = async () => (await daemon.call('job_get', { job_id })).job
    await until(async () => (await job()).not_before !== null && (await job()).state === 'queued', 'it waits for its next life')
    const letter = (body: string) => daemon.post('mail_send', { to_human: true, subject: 'x', body })
    expect(await letter('first')).toMatchObject({ ok: true })
    set('-3600')
    const began = performance.now()
    await until(async () => (await job()).lives > 1, 'its second life')
    await until(async () => (await letter(String(performance.now()))).ok, 'the next letter goes')
    expect(performance.now() - began).toBeLessThan(30_000)
  })

  test('[F22] back and forth: updated_at only ever grows, ids keep sorting, pages skip nothing', async () => {
    const { daemon, task_id, set } = await withClock()
    const stamps: string[] = []
    const ids: string[] = []
    for (const offset of ['-3600', '+3600', '-7200', '+0']) {
      set(offset)
      for (let i = 0; i < 3; i++) {
        ids.push((await note(daemon, task_id)).note_id)
        stamps.push((await daemon.call('task_update', { task_id, title: `${offset} ${i}` })).task.updated_at)
      }
    }
    // A restart forgets what the process knew, not what is stored.
    set('-3600')
    await daemon.end('SIGKILL')
    await daemon.start()
    for (let i = 0; i < 3; i++) {
      ids.push((await note(daemon, task_id)).note_id)
      stamps.push((await daemon.call('task_update', { task_id, title: `again ${i}` })).task.updated_at)
    }
    expect(stamps).toEqual([...new Set(stamps)].sort())
    expect(ids).toEqual([...ids].sort())
    const shown = (await daemon.call('task_get', { task_id, notes: 3 })).task.notes.map((row: { id: string }) => row.id)
    expect(shown).toEqual(ids.slice(-3))
    const { events } = await daemon.call('event_wait', { cursor: '1.0', types: ['task.noted'], limit: 200 })
    expect(events.map((event: { data: { note_id: string } }) => event.data.note_id)).toEqual(ids)
  })

  test('[F22] tokens end when their time has come, idempotency keys hold', async () => {
    const { daemon, task_id, set } = await withClock()
    const agent = await daemon.call('agent_invite', { role: 'orchestrator', expires_in_hours: 0.5 })
    const stream = await Stream.open(daemon, { token: agent.token })
    const me = () => daemon.post('agent_me', {}, agent.token)
    const keyed = { task_id, body: 'once', idempotency_key: 'k' }
    const { note_id } = await daemon.call('task_note', keyed)
    set('-3600')
    expect((await me()).status).toBe(200)
    expect((await daemon.call('task_note', keyed)).note_id).toBe(note_id)
    set('+3600')
    expect(await me()).toMatchObject({ status: 401, error: { code: 'AUTH_STALE_TOKEN', message: expect.stringContaining('expired') } })
    expect((await daemon.call('task_note', keyed)).note_id).toBe(note_id)
    expect(await daemon.post('task_note', { ...keyed, body: 'other' })).toMatchObject({ error: { code: 'IDEMPOTENCY_MISMATCH' } })
    expect(rows(databaseOf(daemon), 'SELECT id FROM task_notes')).toEqual([{ id: note_id }])
    expect((await daemon.call('token_list')).tokens).toMatchObject([{ status: 'active' }, { status: 'expired' }])
    // The stream was opened with a token that is no longer good.
    await note(daemon, task_id)
    await stream.ended
    set('+0')
    expect((await daemon.post('agent_me', {}, daemon.token)).status).toBe(200)
  })

  test.each([
    ['the hour that comes twice', '@2026-10-25 02:59:57', '@2026-10-25 02:00:01'],
    ['the hour that never was', '@2026-03-29 01:59:57', '@2026-03-29 03:00:01'],
  ])('[F22] DST, %s: times are UTC, waits and order do not notice', async (_name, before, after) => {
    const { daemon, task_id, set } = await withClock({ env: { TZ: 'Europe/Berlin' } }, before)
    const wait = daemon.call('event_wait', { types: ['task.moved'], timeout_seconds: 600 })
    const first = await daemon.call('task_update', { task_id, title: 'before' })
    set(after)
    const second = await daemon.call('task_update', { task_id, title: 'after' })
    expect(second.task.updated_at > first.task.updated_at).toBe(true)
    for (const time of [first.task.updated_at, second.task.updated_at]) expect(time).toMatch(/^2026-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    await daemon.call('task_move', { task_id, status: 'IN_PROGRESS' })
    expect((await wait).code).toBe('EVENTS')
    const answered = await daemon.call('task_wait', { task_id, from_updated_at: first.task.updated_at, timeout_seconds: 5 })
    expect(answered.code).toBe('CHANGED_SINCE_CURSOR')
  })
})

describe('[F22] the laptop sleeps', () => {
  test('[F22] stopped and woken: nobody is thrown out, waits and streams resume, writes are applied once', async () => {
    const daemon = await TestDaemon.start()
    cleanup.push(() => daemon.remove())
    await daemon.call('project_create', { name: 'Web' })
    const { task_id } = await daemon.call('task_create', { title: 'x' })
    const agent = await daemon.call('agent_invite', { role: 'orchestrator' })
    const mcp = await Mcp.begin(daemon, agent.token)
    const streams = await Promise.all(Array.from({ length: 5 }, () => Stream.open(daemon)))
    const waits = Array.from({ length: 20 }, () => daemon.call('event_wait', { types: ['task.noted'], timeout_seconds: 600 }))
    const short = daemon.call('event_wait', { types: ['task.deleted'], timeout_seconds: 0.5 })
    await until(async () => (await waiting(daemon)) >= 20, 'they wait')
    process.kill(daemon.pid, 'SIGSTOP')
    const asleep = Array.from({ length: 10 }, (_, i) => daemon.call('task_note', { task_id, body: `${i}`, idempotency_key: `k${i}` }))
    const unheard = await Promise.race([Promise.all(asleep), send(daemon.url, { path: '/healthz' }), silence(1_500)])
    expect(unheard).toBe('silence')
    process.kill(daemon.pid, 'SIGCONT')
    const notes = await Promise.all(asleep)
    expect(rows(databaseOf(daemon), 'SELECT count(*) AS n FROM task_notes')).toEqual([{ n: 10 }])
    expect(new Set(notes.map((answer) => answer.note_id)).size).toBe(10)
    for (const answer of await Promise.all(waits)) expect(answer).toMatchObject({ code: 'EVENTS' })
    expect(await short).toMatchObject({ code: 'WAIT_TIMEOUT', resume: false })
    for (const stream of streams) await stream.heard((events) => events.length === 10)
    expect((await mcp.tool('agent_me')).structuredContent).toMatchObject({ id: agent.agent_id, state: 'IDLE' })
    await until(async () => (await waiting(daemon)) === 0, 'nobody waits any more')
    expect(await daemon.call('system_health')).toMatchObject({ ok: true, notices: [] })
    for (const stream of streams) stream.close()
  })

  /** The thing under test is that nothing happens for a while: there is no signal for that. */
  function silence(ms: number): Promise<string> {
    return new Promise((resolve) => setTimeout(() => resolve('silence'), ms))
  }
})
