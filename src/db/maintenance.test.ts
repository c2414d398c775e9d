import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, watch, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect } from 'vitest'
import { capabilities } from '../capabilities/index.ts'
import { type TestApp, test } from '../testing/app.ts'
import { backupFile, checkFile, restoreFile } from './maintenance.ts'

const database = (app: TestApp) => join(app.folder, 'signalbox.db')
const notes = async (app: TestApp, task: { id: string }) =>
  (await app.owner.call('task_get', { task_id: task.id })).task.note_count as number
const note = (app: TestApp, task: { id: string }) => app.owner.call('task_note', { task_id: task.id, body: 'x' })
const STAMP = '20260101'
const migrations = capabilities.map((c) => ({ owner: c.name, migrations: c.migrations ?? [] }))

/** Stops the daemon, puts the backup in place, starts it again. */
async function restore(app: TestApp, source: string, stamp = STAMP): Promise<string | undefined> {
  let aside: string | undefined
  await app.reopen(() => {
    aside = restoreFile(database(app), source, stamp, migrations)
  })
  return aside
}

describe('backup', () => {
  test('[D18] it is whole, private, and can be taken while others write', async ({ app }) => {
    const task = await app.task()
    const target = join(app.folder, 'backup.db')
    const writing = Promise.all(Array.from({ length: 100 }, () => note(app, task)))
    await app.app.engine.backup(target)
    await writing
    expect(checkFile(target)).toEqual({ ok: true, problems: [] })
    expect(statSync(target).mode & 0o777).toBe(0o600)
    expect(readdirSync(app.folder).filter((name) => name.includes('partial'))).toEqual([])
  })

  test('[D18] it never overwrites, and one that fails leaves nothing behind', async ({ app }) => {
    const target = join(app.folder, 'backup.db')
    writeFileSync(target, 'precious')
    expect(() => backupFile(database(app), target)).toThrow('never overwrites')
    await expect(app.app.engine.backup(target)).rejects.toThrow('never overwrites')
    expect(readFileSync(target, 'utf8')).toBe('precious')
    const nowhere = join(app.folder, 'no', 'such', 'folder.db')
    expect(() => backupFile(database(app), nowhere)).toThrow()
    mkdirSync(join(app.folder, 'taken.db'))
    expect(() => backupFile(database(app), join(app.folder, 'taken.db'))).toThrow()
    expect(readdirSync(app.folder).filter((name) => name.includes('partial'))).toEqual([])
    expect(() => backupFile(join(app.folder, 'none.db'), join(app.folder, 'b.db'))).toThrow('no database')
  })

  test('[D18] what an interrupted backup left behind does not stop the next one', async ({ app }) => {
    const target = join(app.folder, 'backup.db')
    writeFileSync(`${target}.partial-${process.pid}`, 'half')
    backupFile(database(app), target)
    expect(checkFile(target).ok).toBe(true)
  })
})

describe('restore', () => {
  test('[D19] it brings back what the backup had; what was there is kept aside, log and all', async ({ app }) => {
    const task = await app.task()
    await note(app, task)
    const backup = join(app.folder, 'backup.db')
    await app.app.engine.backup(backup)
    await note(app, task)
    const aside = await restore(app, backup)
    expect(await notes(app, task)).toBe(1)
    expect(basename(aside as string)).toBe(`signalbox.db.before-restore-${STAMP}`)
    const old = new DatabaseSync(aside as string, { readOnly: true })
    expect(old.prepare('SELECT count(*) AS n FROM task_notes').get()?.n).toBe(2)
    old.close()
    expect(statSync(database(app)).mode & 0o777).toBe(0o600)
    await note(app, task)
    expect(await notes(app, task)).toBe(2)
  })

  test('[D19] what the program could not go on with is refused before anything is replaced, and nothing is left behind', async ({
    app,
  }) => {
    const task = await app.task()
    const backup = join(app.folder, 'backup.db')
    const spoilt = (name: string, statement: string) => {
      const path = join(app.folder, name)
      copyFileSync(backup, path)
      const db = new DatabaseSync(path)
      db.exec(`PRAGMA foreign_keys = OFF; ${statement}`)
      db.close()
      return path
    }
    await app.app.engine.backup(backup)
    await note(app, task)
    const newer = spoilt('newer.db', `INSERT INTO migrations (name, at) VALUES ('task/099-later', 0)`)
    const gap = spoilt('gap.db', `DELETE FROM migrations WHERE name = 'task/001-tasks'`)
    const noTable = spoilt('no-table.db', 'DROP TABLE task_notes')
    const noColumn = spoilt('no-column.db', 'ALTER TABLE task_notes DROP COLUMN body')
    await app.reopen(() => {
      const before = readdirSync(app.folder).sort()
      const restoring = (source: string) => () => restoreFile(database(app), source, STAMP, migrations)
      expect(restoring(newer)).toThrow(/newer Signalbox.*task\/099-later/)
      expect(restoring(gap)).toThrow(/task\/001-tasks/)
      expect(restoring(noTable)).toThrow(/task_notes/)
      expect(restoring(noColumn)).toThrow(/task_notes\.body/)
      expect(readdirSync(app.folder).sort()).toEqual(before)
    })
    expect(await notes(app, task)).toBe(1)
  })

  test('[D19] what a restore left that was killed is removed by the next one; nothing of it is ever readable by others', async ({
    app,
  }) => {
    const backup = join(app.folder, 'backup.db')
    await app.app.engine.backup(backup)
    writeFileSync(`${database(app)}.restoring-1`, 'half')
    writeFileSync(`${database(app)}.restoring-1.partial-1`, 'half')
    const modes: number[] = []
    const watcher = watch(app.folder, (_event, name) => {
      const found = name?.includes('restoring') ? statSync(join(app.folder, name), { throwIfNoEntry: false }) : undefined
      if (found) modes.push(found.mode & 0o777)
    })
    await restore(app, backup)
    watcher.close()
    expect(readdirSync(app.folder).filter((name) => /restoring|partial/.test(name))).toEqual([])
    expect(modes.filter((mode) => mode !== 0o600)).toEqual([])
  })

  test('[D20] cursors from before it are recognised: those the backup knew go on, later ones go to the end, none skips', async ({
    app,
  }) => {
    const task = await app.task()
    const { cursor: early } = await app.owner.call('task_list')
    await note(app, task)
    const backup = join(app.folder, 'backup.db')
    await app.app.engine.backup(backup)
    for (let i = 0; i < 5; i++) await note(app, task)
    const { cursor: late } = await app.owner.call('task_list')
    const before = app.app.engine.generation
    await restore(app, backup)
    expect(app.app.engine.generation).toBe(before + 1)
    expect((await app.owner.call('event_wait', { cursor: early })).events).toMatchObject([{ type: 'task.noted' }])
    expect(await app.owner.call('event_wait', { cursor: late, timeout_seconds: 0.001 })).toMatchObject({ code: 'WAIT_TIMEOUT' })
    await note(app, task)
    expect((await app.owner.call('event_wait', { cursor: late })).events).toHaveLength(1)
  })

  test('[D20] also when one backup after another is tried, whichever came from where', async ({ app }) => {
    const task = await app.task()
    const [older, newer] = [join(app.folder, 'older.db'), join(app.folder, 'newer.db')]
    await app.app.engine.backup(older)
    for (let i = 0; i < 4; i++) await note(app, task)
    await app.app.engine.backup(newer)
    await restore(app, older)
    await note(app, task)
    await note(app, task)
    const { cursor } = await app.owner.call('task_list')
    await restore(app, newer)
    expect(app.app.engine.generation).toBe(3)
    expect((await app.owner.call('event_wait', { cursor })).events).toHaveLength(4)
  })

  test('[D20] a cursor issued after a restore is of the future for the database before it', async ({ app }) => {
    const backup = join(app.folder, 'backup.db')
    await app.app.engine.backup(backup)
    const aside = await restore(app, backup)
    const { cursor } = await app.owner.call('task_list')
    await app.reopen(() => {
      restoreByHand(aside as string, database(app))
    })
    expect(await app.owner.refused('event_wait', { cursor })).toMatchObject({ code: 'INVALID_CURSOR' })
  })

  test('[D19] a damaged or foreign source is refused, and nothing is moved', async ({ app }) => {
    const bad = join(app.folder, 'bad.db')
    await app.app.engine.backup(bad)
    const bytes = readFileSync(bad)
    bytes.fill(0xa5, 4_096 * 3, 4_096 * 5)
    writeFileSync(bad, bytes)
    const foreign = new DatabaseSync(join(app.folder, 'foreign.db'))
    foreign.exec('CREATE TABLE recipes (name TEXT)')
    foreign.close()
    const before = readdirSync(app.folder).toSorted()
    expect(() => restoreFile(database(app), bad, STAMP, migrations)).toThrow('damaged')
    expect(() => restoreFile(database(app), join(app.folder, 'foreign.db'), STAMP, migrations)).toThrow('not a Signalbox database')
    expect(() => restoreFile(database(app), join(app.folder, 'none.db'), STAMP, migrations)).toThrow()
    expect(readdirSync(app.folder).toSorted()).toEqual(before)
  })

  test('[D19] a pipe is refused at once, as the source or beside it', async ({ app }) => {
    const [pipe, beside] = [join(app.folder, 'pipe.db'), join(app.folder, 'beside.db')]
    await app.app.engine.backup(beside)
    execFileSync('mkfifo', [pipe, `${beside}-wal`])
    const before = readdirSync(app.folder).toSorted()
    expect(() => restoreFile(database(app), pipe, STAMP, migrations)).toThrow(`${pipe} is not a plain file`)
    expect(() => restoreFile(database(app), beside, STAMP, migrations)).toThrow(`${beside}-wal is not a plain file`)
    expect(() => restoreFile(database(app), '/dev/null', STAMP, migrations)).toThrow('/dev/null is not a plain file')
    expect(() => restoreFile(database(app), app.folder, STAMP, migrations)).toThrow()
    expect(readdirSync(app.folder).toSorted()).toEqual(before)
  })

  test('[D19] it mends a database that cannot be opened any more, which is kept as it was', async ({ app }) => {
    const task = await app.task()
    const backup = join(app.folder, 'backup.db')
    await app.app.engine.backup(backup)
    const garbage = Buffer.alloc(20_000, 0xa5)
    let aside: string | undefined
    await app.reopen(() => {
      writeFileSync(database(app), garbage)
      aside = restoreFile(database(app), backup, STAMP, migrations)
    })
    expect(await notes(app, task)).toBe(0)
    expect(readFileSync(aside as string).equals(garbage)).toBe(true)
  })

  test('[D19] what an interrupted restore left behind does not stop the next one', async ({ app }) => {
    const backup = join(app.folder, 'backup.db')
    await app.app.engine.backup(backup)
    writeFileSync(`${database(app)}.restoring-${process.pid}`, 'half')
    await restore(app, backup)
    expect(checkFile(database(app)).ok).toBe(true)
  })

  test('[D19] it never writes over what an earlier one put aside', async ({ app }) => {
    const backup = join(app.folder, 'backup.db')
    await app.app.engine.backup(backup)
    const first = await restore(app, backup)
    const kept = readFileSync(first as string)
    const second = await restore(app, backup)
    expect(second).not.toBe(first)
    expect(readFileSync(first as string).equals(kept)).toBe(true)
  })

  test('[D19] onto a place where there is none yet', async ({ app }) => {
    const backup = join(app.folder, 'backup.db')
    await app.app.engine.backup(backup)
    const fresh = join(app.folder, 'fresh.db')
    expect(restoreFile(fresh, backup, STAMP, migrations)).toBeUndefined()
    expect(checkFile(fresh)).toEqual({ ok: true, problems: [] })
  })
})

describe('check', () => {
  test('[D17] a good database is good, beside the running daemon, and a damaged page is named', async ({ app }) => {
    await app.task()
    expect(await app.app.engine.check()).toEqual({ ok: true, problems: [] })
    expect(await app.owner.call('system_health', { deep: true })).toMatchObject({ ok: true, notices: [] })
    const copy = join(app.folder, 'copy.db')
    await app.app.engine.backup(copy)
    const bytes = readFileSync(copy)
    bytes.fill(0xa5, 4_096 * 5, 4_096 * 6)
    writeFileSync(copy, bytes)
    const { ok, problems } = checkFile(copy)
    expect(ok).toBe(false)
    expect(problems.join('\n')).toMatch(/page 6/)
    expect(readFileSync(copy).equals(bytes)).toBe(true)
  })

  test('[D17] rows that point nowhere are found', async ({ app }) => {
    const copy = join(app.folder, 'copy.db')
    await app.app.engine.backup(copy)
    const raw = new DatabaseSync(copy)
    raw.exec(`PRAGMA foreign_keys = OFF; INSERT INTO task_dependencies VALUES ('task_a', 'task_b')`)
    raw.close()
    expect(checkFile(copy)).toMatchObject({ ok: false, problems: [expect.stringContaining('task_dependencies'), expect.any(String)] })
  })

  test('[D17] what is not there, not a database or not ours is told apart', ({ app }) => {
    const at = (name: string) => join(app.folder, name)
    writeFileSync(at('text.db'), 'hello '.repeat(1_000))
    const foreign = new DatabaseSync(at('foreign.db'))
    foreign.exec('CREATE TABLE recipes (name TEXT)')
    foreign.close()
    expect(checkFile(at('none.db')).problems[0]).toMatch(/unable to open/)
    expect(checkFile(at('text.db')).problems[0]).toMatch(/not a database/)
    expect(checkFile(at('foreign.db')).problems[0]).toMatch(/not a Signalbox database/)
    expect(existsSync(at('none.db'))).toBe(false)
  })
})

function restoreByHand(from: string, to: string): void {
  // As a new file: the old one may still be held by connections of this process that wait to be collected.
  for (const name of [to, `${to}-wal`, `${to}-shm`]) rmSync(name, { force: true })
  writeFileSync(to, readFileSync(from))
}
