import { execFileSync } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { leftOut, rowCounts, rows, send, until } from './support.ts'

const cleanup: (() => unknown)[] = []
afterEach(async () => {
  for (const undo of cleanup.splice(0).reverse()) await undo()
})

interface Small {
  daemon: TestDaemon
  token: string
  /** The state folder as seen from out here: the mount is the daemon's alone. */
  home: string
  task_id: string
}

/** A daemon whose state folder is a file system of a few megabytes of its own. */
async function onSmallDisk(): Promise<Small> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-e2e-'))
  const script = `mount -t tmpfs -o size=4m,mode=0700 tmpfs '${folder}' && exec "$@"`
  const daemon = new TestDaemon({ home: folder, wrapper: ['unshare', '-rm', 'sh', '-c', script, 'sh'] })
  cleanup.push(() => daemon.remove())
  await daemon.start()
  const home = `/proc/${daemon.pid}/root${folder}`
  const token = readFileSync(join(home, 'owner.token'), 'utf8').trim()
  await daemon.call('project_create', { name: 'Web' }, token)
  const { task_id } = await daemon.call('task_create', { title: 'x' }, token)
  return { daemon, token, home, task_id }
}

/** SQLite would resolve /proc/<pid>/root to our own root: look at a copy. */
function snapshot(home: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-e2e-'))
  cleanup.push(() => rmSync(folder, { recursive: true }))
  // The log first: what a checkpoint moves meanwhile is then in both, not in neither.
  for (const name of ['signalbox.db-wal', 'signalbox.db']) copyFileSync(join(home, name), join(folder, name))
  return join(folder, 'signalbox.db')
}

/** Leaves no byte free; returns how to free them again. */
function fill(home: string): () => void {
  const path = join(home, 'filler')
  // Page by page: the daemon may take one of them in the meantime.
  const file = openSync(path, 'w')
  const page = Buffer.alloc(Number(statfsSync(home).bsize))
  expect(() => {
    for (;;) writeSync(file, page)
  }).toThrow('ENOSPC')
  closeSync(file)
  expect(statfsSync(home).bfree).toBe(0)
  return () => rmSync(path)
}

async function stillAnswers(daemon: TestDaemon, token: string): Promise<void> {
  const asked = performance.now()
  expect((await send(daemon.url, { path: '/healthz' })).json.ok).toBe(true)
  expect((await daemon.call('system_health', {}, token)).ok).toBe(true)
  expect((await daemon.call('task_list', {}, token)).tasks).toHaveLength(1)
  expect(performance.now() - asked).toBeLessThan(30_000)
}

/** Beside it may stand that runs are not covered: in a namespace of its own root has no power over mounts to give away. */
const unwritable = expect.stringContaining('cannot be written')

describe.skipIf(leftOut('unshare', '[F21] a full disk'))('[F21] a full disk', () => {
  test('[F21] in mid-write: STORAGE_FULL, nothing half written, health answers, and work goes on with the space', async () => {
    const { daemon, token, home, task_id } = await onSmallDisk()
    const body = 'x'.repeat(10_000)
    const note = () => daemon.post('task_note', { task_id, body }, token)
    const acknowledged: string[] = []
    // Writers run it full by themselves, so that some are cut in the middle of a batch.
    const writers = Array.from({ length: 8 }, async () => {
      for (;;) {
        const { ok, result, error, status } = await note()
        if (!ok) return [status, error] as const
        acknowledged.push(result.note_id)
      }
    })
    const refused = await Promise.all(writers)
    expect(acknowledged.length).toBeGreaterThan(20)
    for (const [status, error] of refused) {
      expect([status, error.code]).toEqual([507, 'STORAGE_FULL'])
      expect(error.message).toMatch(/nothing was written/i)
      expect(error.hint).toMatch(/space/)
    }
    await stillAnswers(daemon, token)
    const stored = () => rows(snapshot(home), 'SELECT id FROM task_notes').map((row) => row.id as string)
    expect(stored().sort()).toEqual(acknowledged.sort())
    expect(rows(snapshot(home), `SELECT count(*) AS n FROM events WHERE type = 'task.noted'`)).toEqual([{ n: acknowledged.length }])

    execFileSync('nsenter', [
      '-t',
      String(daemon.pid),
      '-U',
      '-m',
      '--preserve-credentials',
      'mount',
      '-o',
      'remount,size=16m',
      daemon.home,
    ])
    await until(async () => (await note()).ok, 'it writes again by itself')
    const { note_id } = (await note()).result
    expect(stored()).toContain(note_id)
    expect(await daemon.call('system_health', { deep: true }, token)).toMatchObject({ ok: true })
    const lost = () => rows(snapshot(home), `SELECT count(*) AS n FROM calls WHERE code = 'STORAGE_FULL'`)[0].n
    await until(() => lost() >= 8, 'the refusals reach the audit when there is space')
  })

  test('[F21] with no byte left a read works, a rotation and a new agent are refused whole, and the owner is not locked out', async () => {
    const { daemon, token, home } = await onSmallDisk()
    const { tokens } = await daemon.call('token_list', {}, token)
    const free = fill(home)
    const before = rowCounts(snapshot(home))
    await exhaust(daemon, token)
    for (const [tool, input] of [
      ['token_rotate', { token_id: tokens[0].id }],
      ['agent_invite', { role: 'worker' }],
      ['setting_update', { key: 'limits.agent_burst', value: 7 }],
    ] as const) {
      const { status, error } = await daemon.post(tool, input, token)
      expect([tool, status, error?.code]).toEqual([tool, 507, 'STORAGE_FULL'])
    }
    expect(rowCounts(snapshot(home))).toMatchObject({ tokens: before.tokens, agents: before.agents, settings: before.settings })
    await stillAnswersAsOwner(daemon, token)
    free()
    await until(async () => (await daemon.post('setting_update', { key: 'limits.agent_burst', value: 7 }, token)).ok, 'it writes again')
    expect(readFileSync(join(home, 'owner.token'), 'utf8').trim()).toBe(token)
    const rotated = await daemon.call('token_rotate', { token_id: tokens[0].id }, token)
    await until(() => readFileSync(join(home, 'owner.token'), 'utf8').trim() === rotated.token, 'the file has the new token')
    expect(readdirSync(home).filter((name) => name.includes('partial'))).toEqual([])
  })

  /** Pages that the log still had room for are used up. */
  async function exhaust(daemon: TestDaemon, token: string): Promise<void> {
    const full = async () => (await daemon.post('decision_log', { title: 'x', body: 'x'.repeat(10_000) }, token)).status === 507
    await until(full, 'the disk is full')
  }

  async function stillAnswersAsOwner(daemon: TestDaemon, token: string): Promise<void> {
    expect((await daemon.call('agent_me', {}, token)).handle).toBe('owner')
    expect((await send(daemon.url, { path: '/healthz' })).json.ok).toBe(true)
  }

  test('[F21] it does not start on a read-only or full folder, says so, and starts when that has passed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-e2e-'))
    cleanup.push(() => rmSync(folder, { recursive: true }))
    const home = join(folder, 'home')
    mkdirSync(home)
    const first = await TestDaemon.start({ home })
    await first.call('project_create', { name: 'Web' })
    await first.end()
    const mounted = (how: string) => ['unshare', '-rm', 'sh', '-c', `${how} && exec "$@"`, 'sh']
    const readOnly = `mount --bind '${home}' '${home}' && mount -o remount,ro,bind '${home}'`
    const full = `mount -t tmpfs -o size=64k tmpfs '${home}' && dd if=/dev/zero of='${home}/filler' bs=4k 2>/dev/null; true`
    for (const how of [readOnly, full]) {
      const failed = await new TestDaemon({ home, wrapper: mounted(how) }).start().then(
        () => 'started',
        (error: Error) => error.message,
      )
      expect(failed).toMatch(/^the daemon ended with 2: signalbox: /)
      expect(failed).toMatch(/cannot be written|read-only|no space/i)
      expect(failed).not.toContain('    at ')
    }
    await first.start()
    expect((await first.call('project_list')).projects).toHaveLength(1)
    expect((await first.call('system_health')).notices).toEqual([])
    await first.end()
  })
})

describe.skipIf(leftOut('unshare', '[F21] a disk that refuses every write'))('[F21] a disk that refuses', () => {
  /** From now on no write to any file of this process succeeds, as on a disk that turned read-only. */
  const refuseWrites = (pid: number) => execFileSync('prlimit', ['--pid', String(pid), '--fsize=0:unlimited'])
  const allowWrites = (pid: number) => execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited:unlimited'])

  test('[F21] a disk that turns read-only in mid-run: each write is refused whole, reads go on, and so does work afterwards', async () => {
    const daemon = await TestDaemon.start()
    cleanup.push(() => daemon.remove())
    await daemon.call('project_create', { name: 'Web' })
    const { task_id } = await daemon.call('task_create', { title: 'x' })
    const database = join(daemon.home, 'signalbox.db')
    const ids = () => rows(database, 'SELECT id FROM task_notes').map((row) => row.id)
    for (let round = 0; round < 3; round++) {
      const before = ids()
      let on = true
      const acknowledged: string[] = []
      const writers = Array.from({ length: 8 }, async () => {
        while (on) {
          const { ok, status, result } = await daemon.post('task_note', { task_id, body: 'x' })
          if (ok) acknowledged.push(result.note_id)
          else expect(status).toBe(507)
        }
      })
      await until(() => acknowledged.length > 10, 'writers are at work')
      refuseWrites(daemon.pid)
      const refused = await daemon.post('task_note', { task_id, body: 'x' })
      expect([refused.status, refused.error.code]).toEqual([507, 'STORAGE_FULL'])
      const healthz = async () => (await send(daemon.url, { path: '/healthz' })).json.ok
      expect(await healthz()).toBe(false)
      expect(await daemon.call('system_health')).toMatchObject({ ok: false, notices: expect.arrayContaining([unwritable]) })
      expect((await daemon.call('task_list')).tasks).toHaveLength(1)
      const wait = daemon.call('event_wait', { types: ['task.noted'] })
      allowWrites(daemon.pid)
      const so = acknowledged.length
      await until(() => acknowledged.length > so, 'they go on by themselves')
      expect((await wait).code).toBe('EVENTS')
      expect(await healthz()).toBe(true)
      on = false
      await Promise.all(writers)
      expect(ids().sort()).toEqual([...before, ...acknowledged].sort())
    }
    expect(await daemon.call('system_health', { deep: true })).toMatchObject({
      ok: true,
      notices: expect.not.arrayContaining([unwritable]),
    })
    // Nobody writes any more: who asks for health is told all the same when it can be written again.
    refuseWrites(daemon.pid)
    expect((await daemon.post('task_note', { task_id, body: 'x' })).status).toBe(507)
    allowWrites(daemon.pid)
    await until(async () => (await send(daemon.url, { path: '/healthz' })).json.ok, 'health is well again without a write')
    expect(await daemon.end()).toBe(0)
  })
})
