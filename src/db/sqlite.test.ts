import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { sql } from 'kysely'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Migration } from '../kernel/capability.ts'
import type { Engine } from './engine.ts'
import { checkFile } from './maintenance.ts'
import { openSqlite } from './sqlite.ts'
import { Connection } from './sqlite-connection.ts'
import { tables } from './tables.ts'
import { inspectWal } from './wal.ts'

const PAGE = 4_096
const FRAME = PAGE + 24

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-db-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

async function opened(path: string, ...migrations: Migration[]): Promise<Engine> {
  const engine = await openSqlite({ path, migrations: [{ owner: 'things', migrations }] })
  onTestFinished(() => engine.close().catch(() => {}))
  return engine
}

const things: Migration = {
  name: 'things',
  up: ({ int, text, strict }) => [`CREATE TABLE things (n ${int} PRIMARY KEY, body ${text} NOT NULL) ${strict}`],
}
const colours: Migration = { name: 'colours', up: ({ text }) => [`ALTER TABLE things ADD COLUMN colour ${text}`] }

interface Things {
  things: { n: number; body: string }
}

const add = (engine: Engine, n: number, body = 'x') =>
  engine.write((tx) => tables<Things>(tx).insertInto('things').values({ n, body }).execute())
const numbers = async (engine: Engine) =>
  (await tables<Things>(engine.view).selectFrom('things').select('n').orderBy('n').execute()).map((row) => row.n)
const tableNames = async (engine: Engine) =>
  (await tables<{ sqlite_master: { name: string } }>(engine.view).selectFrom('sqlite_master').select('name').execute()).map(
    (row) => row.name,
  )

/** The files as they lie on the disk while the daemon is running: what a SIGKILL leaves. */
function asAfterSigkill(path: string): string {
  const copy = join(temporaryFolder(), 'signalbox.db')
  for (const suffix of ['', '-wal']) cpSync(path + suffix, copy + suffix)
  return copy
}

describe('opening', () => {
  test('[D11] what was committed is there after a SIGKILL, and health says that the stop was not clean', async () => {
    const path = join(temporaryFolder(), 'signalbox.db')
    const engine = await opened(path, things)
    for (let n = 1; n <= 20; n++) await add(engine, n)
    const copy = await opened(asAfterSigkill(path), things)
    expect(await numbers(copy)).toEqual(await numbers(engine))
    expect(copy.notices).toEqual([expect.stringContaining('not clean')])
    expect(copy.notices[0]).not.toContain('dropped')
    expect(engine.notices).toEqual([])
  })

  test('[D11] every commit is on the disk before it is answered', async () => {
    const path = join(temporaryFolder(), 'signalbox.db')
    const engine = await opened(path, things)
    const pragma = (name: string) =>
      engine.write(async (tx) => Object.values((await sql.raw(`PRAGMA ${name}`).execute(tables<Things>(tx))).rows[0] as object)[0])
    expect(await pragma('journal_mode')).toBe('wal')
    expect(await pragma('synchronous')).toBe(2)
    expect(await pragma('foreign_keys')).toBe(1)
  })

  test('[D12] the view reads what is committed and cannot write', async () => {
    const engine = await opened(join(temporaryFolder(), 'signalbox.db'), things)
    await add(engine, 1)
    await engine.write(async (tx) => {
      await tables<Things>(tx).insertInto('things').values({ n: 2, body: 'x' }).execute()
      expect(await numbers(engine)).toEqual([1])
    })
    expect(await numbers(engine)).toEqual([1, 2])
    await expect(tables<Things>(engine.view).insertInto('things').values({ n: 3, body: 'x' }).execute()).rejects.toThrow()
  })

  test('[D13] the file is for its owner only', async () => {
    const path = join(temporaryFolder(), 'signalbox.db')
    const engine = await opened(path, things)
    await add(engine, 1)
    for (const suffix of ['', '-wal', '-shm']) expect(statSync(path + suffix).mode & 0o777).toBe(0o600)
  })

  test('[D14] a database of another program is refused and left as it is', async () => {
    const path = join(temporaryFolder(), 'other.db')
    const other = new DatabaseSync(path)
    other.exec('CREATE TABLE recipes (name TEXT)')
    other.close()
    const before = [readFileSync(path), statSync(path).mode]
    await expect(opened(path, things)).rejects.toThrow('another program')
    expect([readFileSync(path), statSync(path).mode]).toEqual(before)
  })

  test('[D14] a first start that was killed between two steps is taken up again', async () => {
    const path = join(temporaryFolder(), 'signalbox.db')
    const interrupted = new DatabaseSync(path)
    interrupted.exec('PRAGMA journal_mode = WAL')
    interrupted.close()
    expect(statSync(path).size).toBeGreaterThan(0)
    const engine = await opened(path, things)
    await add(engine, 1)
    expect(await numbers(engine)).toEqual([1])
  })
})

describe('migrations', () => {
  test('[D15] each is applied once, in order, and new ones are added later', async () => {
    const path = join(temporaryFolder(), 'signalbox.db')
    const first = await opened(path, things)
    await add(first, 1)
    await first.close()
    const second = await opened(path, things, colours)
    expect(await numbers(second)).toEqual([1])
    await second.close()
    const third = await opened(path, things, colours)
    const applied = await tables<{ migrations: { name: string } }>(third.view)
      .selectFrom('migrations')
      .select('name')
      .orderBy('name')
      .execute()
    expect(applied.map((row) => row.name).filter((name) => name.startsWith('things/'))).toEqual(['things/001-things', 'things/002-colours'])
  })

  test('[D15] a database that is newer than the program is refused, naming what it has, and not changed', async () => {
    const path = join(temporaryFolder(), 'signalbox.db')
    await (await opened(path, things, colours)).close()
    const before = readFileSync(path)
    await expect(opened(path, things)).rejects.toThrow(/newer Signalbox.*things\/002-colours/)
    expect(readFileSync(path)).toEqual(before)
  })

  test('[D15] a list in another order is seen, not skipped', async () => {
    const path = join(temporaryFolder(), 'signalbox.db')
    await (await opened(path, things, colours)).close()
    await expect(opened(path, colours, things)).rejects.toThrow('newer Signalbox')
  })

  test('[D15] one that fails leaves nothing of itself; those before it stay, and the next start goes on from there', async () => {
    const path = join(temporaryFolder(), 'signalbox.db')
    const broken: Migration = {
      name: 'colours',
      up: () => ['CREATE TABLE half (n INTEGER)', 'INSERT INTO half VALUES (1)', 'ALTER TABLE nothing ADD COLUMN x TEXT'],
    }
    await expect(opened(path, things, broken)).rejects.toThrow('Migration things/002-colours failed')
    const engine = await opened(path, things, colours)
    expect(await tableNames(engine)).toContain('things')
    expect(await tableNames(engine)).not.toContain('half')
  })
})

describe('a write-ahead log that is not whole', () => {
  /** Twenty commits in the log, and for each how long the log was after it. */
  async function twentyCommits() {
    const path = join(temporaryFolder(), 'signalbox.db')
    const engine = await opened(path, things)
    const ends: number[] = []
    const base = statSync(`${path}-wal`).size
    for (let n = 1; n <= 20; n++) {
      await add(engine, n, 'y'.repeat(3_000))
      ends.push(statSync(`${path}-wal`).size)
    }
    return { path, ends, base }
  }

  test('[D16] wherever it was cut, it opens at the last whole commit and says how much was dropped', async () => {
    const { path, ends } = await twentyCommits()
    const last = ends.at(-1) as number
    const cuts = [last, last - 1, last - FRAME, last - FRAME - 1, ends[9] as number, (ends[9] as number) + 10, (ends[4] as number) + FRAME]
    for (const cut of cuts) {
      const copy = asAfterSigkill(path)
      truncateSync(`${copy}-wal`, cut)
      const whole = ends.filter((end) => end <= cut).length
      const dropped = cut - (ends[whole - 1] as number)
      expect(inspectWal(`${copy}-wal`)).toEqual({ droppedBytes: dropped })
      const engine = await opened(copy, things)
      expect(await numbers(engine)).toHaveLength(whole)
      if (dropped) expect(engine.notices[0]).toContain(`last ${dropped} bytes`)
      else expect(engine.notices[0]).not.toContain('dropped')
      expect(await engine.write(async () => 'goes on')).toBe('goes on')
    }
  })

  test('[D16] a bit that flipped inside it is seen: what SQLite then drops is reported, not silently gone', async () => {
    const { path, ends } = await twentyCommits()
    for (const [offset, whole] of [
      [(ends[9] as number) + 24 + 100, 10],
      [(ends[4] as number) + 2, 5],
    ] as const) {
      const copy = asAfterSigkill(path)
      const bytes = readFileSync(`${copy}-wal`)
      bytes[offset] = (bytes[offset] as number) ^ 0xff
      writeFileSync(`${copy}-wal`, bytes)
      expect(inspectWal(`${copy}-wal`)).toEqual({ droppedBytes: bytes.length - (ends[whole - 1] as number) })
      const engine = await opened(copy, things)
      expect(await numbers(engine)).toHaveLength(whole)
      expect(engine.notices[0]).toContain('may be missing')
    }
  })

  test('[D16] a log whose head is gone is dropped whole, and reported whole', async () => {
    const { path } = await twentyCommits()
    const copy = asAfterSigkill(path)
    const bytes = readFileSync(`${copy}-wal`)
    bytes.fill(0, 0, 32)
    writeFileSync(`${copy}-wal`, bytes)
    expect(inspectWal(`${copy}-wal`)).toEqual({ droppedBytes: bytes.length })
    truncateSync(`${copy}-wal`, 20)
    expect(inspectWal(`${copy}-wal`)).toEqual({ droppedBytes: 20 })
  })

  test('[D16] what an earlier checkpoint left behind in the file is not counted as lost', async () => {
    const { path } = await twentyCommits()
    const engine = await opened(path, things)
    const other = new Connection(path)
    other.raw.exec('PRAGMA wal_checkpoint(RESTART)')
    other.close()
    await add(engine, 100)
    const copy = asAfterSigkill(path)
    expect(inspectWal(`${copy}-wal`)).toEqual({ droppedBytes: 0 })
    expect(await numbers(await opened(copy, things))).toHaveLength(21)
  })

  test('[D16] after an orderly stop there is nothing to report', async () => {
    const path = join(temporaryFolder(), 'signalbox.db')
    const engine = await opened(path, things)
    await add(engine, 1)
    await engine.close()
    expect(inspectWal(`${path}-wal`)).toBeUndefined()
    expect((await opened(path, things)).notices).toEqual([])
  })
})

describe('a damaged file', () => {
  const MENDS = ['signalbox db check', 'signalbox db restore']

  async function closedDatabase() {
    const path = join(temporaryFolder(), 'signalbox.db')
    const engine = await opened(path, things)
    await Promise.all(Array.from({ length: 100 }, (_, n) => add(engine, n, 'z'.repeat(500))))
    await engine.close()
    return path
  }

  test.for([
    ['its head', 0, 100],
    ['its first page', 100, PAGE],
    ['something else altogether', 0, Number.POSITIVE_INFINITY],
  ] as const)('[D17] %s overwritten: it is named, mending is offered, and the file is left alone', async ([, from, to]) => {
    const path = await closedDatabase()
    const bytes = readFileSync(path)
    bytes.fill('not a database ', from, Math.min(to, bytes.length))
    writeFileSync(path, bytes)
    const error = await opened(path, things).catch((e: Error) => e)
    expect(error).toBeInstanceOf(Error)
    for (const words of [path, 'damaged', ...MENDS]) expect((error as Error).message).toContain(words)
    expect(readFileSync(path)).toEqual(bytes)
  })

  test('[D17] whichever page it is: either it cannot be opened and says so, or the check names it', async () => {
    const good = await closedDatabase()
    const pages = statSync(good).size / PAGE
    const outcomes = { refused: 0, checked: 0 }
    for (let page = 2; page <= pages; page++) {
      const path = join(temporaryFolder(), 'signalbox.db')
      const bytes = readFileSync(good)
      bytes.fill(0xa5, (page - 1) * PAGE, page * PAGE)
      writeFileSync(path, bytes)
      const found = await opened(path, things).catch((error: Error) => error)
      if (found instanceof Error) {
        for (const words of [path, 'damaged', ...MENDS]) expect(found.message).toContain(words)
        expect(readFileSync(path).equals(bytes)).toBe(true)
        outcomes.refused++
        continue
      }
      await found.close()
      const { ok, problems } = checkFile(path)
      expect({ page, ok }).toEqual({ page, ok: false })
      expect(problems.join()).toMatch(/page \d+|malformed/)
      outcomes.checked++
    }
    expect(outcomes.refused).toBeGreaterThan(0)
    expect(outcomes.checked).toBeGreaterThan(0)
  })
})
