import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { databaseOf, Mcp, rows, send, until } from './support.ts'

const started: TestDaemon[] = []
afterEach(async () => {
  for (const daemon of started.splice(0)) await daemon.remove()
})

async function start(options: ConstructorParameters<typeof TestDaemon>[0] = {}): Promise<TestDaemon> {
  const daemon = new TestDaemon(options)
  started.push(daemon)
  await daemon.start()
  return daemon
}

async function withTask(): Promise<{ daemon: TestDaemon; task_id: string }> {
  const daemon = await start()
  await daemon.call('project_create', { name: 'Web' })
  const { task_id } = await daemon.call('task_create', { title: 'x' })
  return { daemon, task_id }
}

const noteIds = (daemon: TestDaemon): string[] => rows(databaseOf(daemon), 'SELECT id FROM task_notes ORDER BY id').map((row) => row.id)

describe('[F20] busy', () => {
  /** This process is another program that writes to the same file. */
  function lock(daemon: TestDaemon): () => void {
    const other = new DatabaseSync(databaseOf(daemon))
    other.exec('PRAGMA busy_timeout = 60000; BEGIN IMMEDIATE')
    return () => {
      other.exec('ROLLBACK')
      other.close()
    }
  }

  test('[F20] busy is not corruption: under load calls wait for the lock, and nothing is lost or done twice', async () => {
    const { daemon, task_id } = await withTask()
    const release = lock(daemon)
    const locked = performance.now()
    let answered = 0
    let refused = 0
    const writes = Array.from({ length: 40 }, async (_, i) => {
      for (;;) {
        const { ok, result, error } = await daemon.post('task_note', { task_id, body: `${i}`, idempotency_key: `k${i}` })
        if (!ok && error.code !== 'TRANSIENT_ERROR') throw new Error(JSON.stringify(error))
        if (ok) answered++
        else refused++
        if (ok) return result.note_id as string
      }
    })
    const session = Mcp.begin(daemon).catch((error: Error) => error)
    const usual = await usualAnswer(daemon, 1_500)
    expect(answered).toBe(0)
    release()
    // Longer than that the daemon does not wait; nor does it on a machine that stood still meanwhile.
    const lockedMs = performance.now() - locked
    const ids = await Promise.all(writes)
    if (lockedMs < 3_000) expect(refused).toBe(0)
    expect(noteIds(daemon)).toEqual(ids.sort())
    const begun = await session
    if (begun instanceof Error) expect(begun.message).toContain('TRANSIENT_ERROR')
    expect((await (await Mcp.begin(daemon)).tool('agent_me')).structuredContent.kind).toBe('person')
    expect(usual).toBeLessThan(2_000)
    expect(await daemon.call('system_health', { deep: true })).toMatchObject({ ok: true, notices: [] })
    expect(daemon.log).not.toMatch(/damage|malformed|corrupt/i)
  })

  test('[F20] a lock that stays is TRANSIENT_ERROR, nothing is written, and the same call passes later', async () => {
    const { daemon, task_id } = await withTask()
    const release = lock(daemon)
    const note = { task_id, body: 'x', idempotency_key: 'k' }
    const refused = await daemon.post('task_note', note)
    expect([refused.status, refused.error.code]).toEqual([503, 'TRANSIENT_ERROR'])
    expect(refused.error.message).toContain('nothing was written')
    expect(await daemon.call('task_get', { task_id })).toMatchObject({ task: { note_count: 0 } })
    release()
    const { note_id } = await daemon.call('task_note', note)
    expect(noteIds(daemon)).toEqual([note_id])
    const audited = () => rows(databaseOf(daemon), `SELECT outcome, code FROM calls WHERE tool = 'task_note' ORDER BY seq`)
    await until(() => audited().length === 2, 'the failed one is on record too')
    expect(audited().map((row) => row.code)).toContain('TRANSIENT_ERROR')
  })

  /** Reads and health go on meanwhile. How long half of them took at the most, in milliseconds. */
  async function usualAnswer(daemon: TestDaemon, forMs: number): Promise<number> {
    const took: number[] = []
    for (const began = performance.now(); performance.now() - began < forMs || took.length < 5; ) {
      const asked = performance.now()
      expect((await send(daemon.url, { path: '/healthz' })).json.ok).toBe(true)
      expect((await daemon.call('task_list')).tasks).toHaveLength(1)
      took.push(performance.now() - asked)
    }
    return took.sort((a, b) => a - b)[Math.floor(took.length / 2)] as number
  }
})

describe('[F20] a log cut short', () => {
  test('[F20] a truncated WAL opens at the last whole commit and says what may be missing', async () => {
    const { daemon, task_id } = await withTask()
    const written: string[] = []
    for (let i = 0; i < 40; i++) written.push((await daemon.call('task_note', { task_id, body: 'x'.repeat(500) })).note_id)
    await daemon.end('SIGKILL')
    const path = databaseOf(daemon)
    const { size } = statSync(`${path}-wal`)
    for (const kept of [size - 1, Math.floor(size * 0.7)]) {
      const home = mkdtempSync(join(tmpdir(), 'signalbox-e2e-'))
      copyFileSync(path, join(home, 'signalbox.db'))
      copyFileSync(`${path}-wal`, join(home, 'signalbox.db-wal'))
      copyFileSync(join(daemon.home, 'owner.token'), join(home, 'owner.token'))
      truncateSync(join(home, 'signalbox.db-wal'), kept)
      const cut = await start({ home })
      const { notices, ok } = await cut.call('system_health', { deep: true })
      const left = noteIds(cut)
      // What is left is what came first, without a gap; each note of it is in the log too.
      expect(left).toEqual(written.slice(0, left.length))
      // The last commit may be a seal or a line of the audit: the daemon makes those by itself.
      expect(left.length).toBeLessThan(kept === size - 1 ? 41 : 40)
      expect(left.length).toBeGreaterThan(10)
      expect(rows(databaseOf(cut), `SELECT count(*) AS n FROM events WHERE type = 'task.noted'`)).toEqual([{ n: left.length }])
      expect(ok).toBe(true)
      const [last] = rows(databaseOf(cut), 'SELECT seq, at FROM events ORDER BY seq DESC LIMIT 1')
      expect(notices).toHaveLength(1)
      expect(notices[0]).toContain(`Recovered up to event ${last.seq} of ${new Date(last.at).toISOString()}`)
      expect(notices[0]).toMatch(/The last \d+ bytes of the write-ahead log .* may be missing/)
      expect(cut.log).toContain('may be missing')
      expect((await cut.call('task_note', { task_id, body: 'goes on' })).note_id).toBeTruthy()
    }
  })

  test('[F20] a SIGKILL loses nothing that was acknowledged, and a clean stop leaves no notice', async () => {
    const { daemon, task_id } = await withTask()
    const { note_id } = await daemon.call('task_note', { task_id, body: 'x' })
    await daemon.end('SIGKILL')
    await daemon.start()
    expect(noteIds(daemon)).toEqual([note_id])
    expect((await daemon.call('system_health')).notices[0]).toMatch(/^The last stop was not clean. Recovered up to event \d+ of [^ ]+Z\.$/)
    await daemon.end()
    await daemon.start()
    expect((await daemon.call('system_health')).notices).toEqual([])
  })
})

describe('[F20] a damaged file', () => {
  const fingerprint = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')
  const PAGE = 4_096

  let model: TestDaemon
  let task_id: string

  /** Forty notes, a backup, one note more, an orderly stop: each test spoils a copy. */
  beforeAll(async () => {
    model = await TestDaemon.start()
    await model.call('project_create', { name: 'Web' })
    task_id = (await model.call('task_create', { title: 'x' })).task_id
    for (let i = 0; i < 40; i++) await model.call('task_note', { task_id, body: `note-${i} ${'x'.repeat(2_000)}` })
    mkdirSync(join(model.home, 'backups'))
    expect((await model.cli(['db', 'backup', join(model.home, 'backups', 'before.db')])).code).toBe(0)
    await model.call('task_note', { task_id, body: 'after the backup' })
    await model.end()
  })
  afterAll(() => model.remove())

  /** A stopped daemon, its backup, and the page that holds the note in the middle. */
  function stopped(): { daemon: TestDaemon; backup: string; page: number } {
    const daemon = new TestDaemon()
    started.push(daemon)
    for (const file of ['signalbox.db', 'owner.token']) copyFileSync(join(model.home, file), join(daemon.home, file))
    const backup = join(daemon.home, 'backups', 'before.db')
    mkdirSync(join(daemon.home, 'backups'))
    copyFileSync(join(model.home, 'backups', 'before.db'), backup)
    return { daemon, backup, page: Math.floor(readFileSync(databaseOf(daemon)).indexOf('note-20 ') / PAGE) }
  }

  function damage(path: string, offset: number, bytes: number): void {
    const file = readFileSync(path)
    file.fill(0xa5, offset, offset + bytes)
    writeFileSync(path, file)
  }

  test('[F20] a damaged page is named, the file is left alone byte for byte, and the backup that is offered works', async () => {
    const { daemon, backup, page } = stopped()
    const path = databaseOf(daemon)
    damage(path, page * PAGE, 64)
    const before = fingerprint(path)
    const check = await daemon.cli(['db', 'check'])
    expect(check.code).toBe(1)
    expect(check.stdout).toMatch(new RegExp(`page ${page + 1}\\b`))
    expect(check.stdout).toContain('The file was left as it is')
    expect(check.stdout).toContain(backup)
    expect(fingerprint(path)).toBe(before)

    const restored = await daemon.cli(['db', 'restore', backup])
    expect(restored.code).toBe(0)
    const aside = /kept at (\S+)/.exec(restored.stdout)?.[1] as string
    expect(fingerprint(aside)).toBe(before)
    await daemon.start()
    expect(await daemon.call('task_get', { task_id })).toMatchObject({ task: { note_count: 40 } })
    expect(await daemon.call('system_health', { deep: true })).toMatchObject({ ok: true, notices: [] })
  })

  test('[F20] met by a running daemon, damage is said plainly: in the answer, in health, with the way out', async () => {
    const { daemon, page } = stopped()
    damage(databaseOf(daemon), page * PAGE, 64)
    await daemon.start()
    const { error } = await daemon.post('task_get', { task_id, notes: 200 })
    expect(error.message).toContain('damaged')
    expect(error.hint).toContain('signalbox db restore')
    expect(await daemon.call('system_health')).toMatchObject({ ok: false, notices: [expect.stringContaining('damaged')] })
    expect((await send(daemon.url, { path: '/healthz' })).json.ok).toBe(false)
    const deep = await daemon.call('system_health', { deep: true })
    expect(deep.notices.join()).toMatch(new RegExp(`page ${page + 1}\\b`))
    expect((await daemon.post('project_list')).ok).toBe(true)
  })

  test.each([
    ['its first page', (path: string) => damage(path, 0, 100)],
    ['its tokens', (path: string) => damage(path, rootOf(path, 'tokens') * PAGE, 64)],
    ['its end cut off', (path: string) => truncateSync(path, 5 * PAGE + 17)],
  ])('[F20] with damage in %s it does not start: it says why, names the way out and leaves the file alone', async (_what, spoil) => {
    const { daemon, backup } = stopped()
    const path = databaseOf(daemon)
    spoil(path)
    const before = fingerprint(path)
    const { code, stderr } = await daemon.cli(['serve', '--quiet'], '', { SIGNALBOX_PORT: '0' })
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${path} is damaged`)])
    expect(stderr).toContain('signalbox db restore')
    expect(stderr).not.toContain('    at ')
    expect(fingerprint(path)).toBe(before)
    expect((await daemon.cli(['db', 'restore', backup])).code).toBe(0)
    expect(await daemon.cli(['db', 'check'])).toMatchObject({ code: 0 })
  })

  /** Zero-based number of the page at which a table begins. */
  function rootOf(path: string, table: string): number {
    return Number(rows(path, `SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?`, table)[0].rootpage) - 1
  }

  test('[F20] a damaged backup is not restored, and what was there stays', async () => {
    const { daemon, backup, page } = stopped()
    damage(backup, page * PAGE, 64)
    const before = fingerprint(databaseOf(daemon))
    const { code, stderr } = await daemon.cli(['db', 'restore', backup])
    expect([code, stderr]).toEqual([2, expect.stringContaining('Nothing was changed')])
    expect(fingerprint(databaseOf(daemon))).toBe(before)
    expect(existsSync(`${databaseOf(daemon)}.restoring-${process.pid}`)).toBe(false)
  })
})
