import { closeSync, existsSync, fsyncSync, linkSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { KnownValues } from '../kernel/capability.ts'
import { type CheckResult, generationStart } from './engine.ts'
import { refuseUnfit } from './fit.ts'
import type { NamedMigrations } from './migrate.ts'
import { APPLICATION_ID, damaged } from './sqlite.ts'
import { Connection } from './sqlite-connection.ts'
import { looksForStrangeValues } from './values.ts'

/** Reads every page and index. Never writes. */
export function checkFile(path: string): CheckResult {
  let connection: Connection | undefined
  try {
    connection = new Connection(path, { readOnly: true })
    const id = Number(connection.raw.prepare('PRAGMA application_id').get()?.application_id)
    if (id !== APPLICATION_ID) return { ok: false, problems: [`${path} is not a Signalbox database`] }
    const damage = damageIn(connection)
    // Following references over a damaged page fails, and its message names no page.
    const problems = damage.length ? damage : orphans(connection)
    return { ok: problems.length === 0, problems }
  } catch (error) {
    return { ok: false, problems: [(error as Error).message] }
  } finally {
    connection?.close()
  }
}

function damageIn({ raw }: Connection): string[] {
  const lines: string[] = []
  try {
    for (const row of raw.prepare('PRAGMA integrity_check(20)').iterate()) lines.push(...String(row.integrity_check).split('\n'))
  } catch (error) {
    // A damaged page ends the check early, but what it said until then names the page.
    if (!lines.length) throw error
  }
  return lines.filter((line) => line !== 'ok' && !line.startsWith('***'))
}

function orphans({ raw }: Connection): string[] {
  const found = raw.prepare('PRAGMA foreign_key_check').all()
  return found.map((row) => `a row of ${row.table} points to a ${row.parent} that is not there`)
}

/** Of a sound file. One that an older Signalbox wrote may not have the column yet. */
export function strangeValuesIn(path: string, values: KnownValues): string[] {
  const connection = new Connection(path, { readOnly: true })
  try {
    const has = connection.raw.prepare('SELECT count(*) AS n FROM pragma_table_info(?) WHERE name = ?')
    const looks = looksForStrangeValues(values, (name) => `NOT json_valid(${name})`).filter(
      ({ table, column }) => Number(has.get(table, column)?.n) > 0,
    )
    return looks.flatMap(({ sql, problems }) => problems(connection.raw.prepare(sql).all()))
  } finally {
    connection.close()
  }
}

/** A consistent copy, also while the daemon writes. It appears under its name only when it is whole and on disk. */
export function backupFile(path: string, target: string): void {
  if (!existsSync(path)) throw new Error(`There is no database at ${path}.`)
  if (existsSync(target)) throw new Error(`${target} is already there; a backup never overwrites.`)
  const partial = `${target}.partial-${process.pid}`
  rmSync(partial, { force: true })
  // Empty it is taken, and never readable by others.
  closeSync(openSync(partial, 'wx', 0o600))
  const connection = new Connection(path, { readOnly: true })
  try {
    connection.raw.prepare('VACUUM INTO ?').run(partial)
    syncToDisk(partial)
    renameSync(partial, target)
    syncToDisk(dirname(target))
  } catch (error) {
    rmSync(partial, { force: true })
    throw error
  } finally {
    connection.close()
  }
}

/**
 * The caller holds the daemon's lock. What was there before is moved aside, never deleted. Returns where. A source that this program could
 * not go on with is refused before anything is touched, and whatever ends it early leaves no half of it.
 */
export function restoreFile(path: string, source: string, stamp: string, migrations: NamedMigrations[]): string | undefined {
  const check = checkFile(source)
  if (!check.ok) throw damaged(source, new Error(check.problems.join('; ')))
  refuseUnfit(source, migrations)
  removeStaged(path)
  try {
    const staged = `${path}${STAGED}${process.pid}`
    backupFile(source, staged)
    beginGeneration(staged, path)
    const aside = existsSync(path) ? unused(`${path}.before-restore-${stamp}`) : undefined
    if (aside) keepAs(aside, path)
    renameSync(staged, path)
    syncToDisk(dirname(path))
    return aside
  } finally {
    removeStaged(path)
  }
}

const STAGED = '.restoring-'

/** Also of a restore that was killed; the lock says that nobody is at it now. */
function removeStaged(path: string): void {
  const begin = basename(path) + STAGED
  for (const name of readdirSync(dirname(path))) if (name.startsWith(begin)) rmSync(join(dirname(path), name), { force: true })
}

/** Under a second name, so that the restored file takes the first one in a single step: at no instant is there none. */
function keepAs(aside: string, path: string): void {
  emptyLog(path)
  linkSync(path, aside)
  // A log is left only by a damaged file; replayed into the restored one it would damage that too.
  for (const suffix of ['-wal', '-shm']) if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix)
}

function emptyLog(path: string): void {
  let connection: Connection | undefined
  try {
    connection = new Connection(path)
    connection.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // Damaged: it is kept as it is.
  } finally {
    connection?.close()
  }
}

/** The name itself, or with a number behind it: a second restore must not write over what the first one put aside. */
function unused(path: string): string {
  let free = path
  for (let n = 2; existsSync(free); n++) free = `${path}-${n}`
  return free
}

/**
 * Higher than either side, so that a cursor issued after the backup was taken is recognised as older. The place where it
 * begins is written down: what such a cursor saw behind that place is gone, and what will stand there is new to it.
 */
function beginGeneration(staged: string, current: string): void {
  const known = [...generationRows(current), ...generationRows(staged)]
  const generation = Math.max(0, ...known.filter((row) => row.name === 'generation').map((row) => Number(row.value))) + 1
  const connection = new Connection(staged)
  const head = connection.raw.prepare('SELECT coalesce(max(seq), 0) AS seq FROM events').get()?.seq
  const put = connection.raw.prepare('INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value')
  for (const { name, value } of known) put.run(String(name), String(value))
  put.run(generationStart(generation), String(head))
  put.run('generation', String(generation))
  connection.close()
  syncToDisk(staged)
}

function generationRows(path: string) {
  if (!existsSync(path)) return []
  let connection: Connection | undefined
  try {
    connection = new Connection(path, { readOnly: true })
    return connection.raw.prepare(`SELECT name, value FROM meta WHERE name LIKE 'generation%'`).all()
  } catch {
    // The file being replaced may be the damaged one.
    return []
  } finally {
    connection?.close()
  }
}

function syncToDisk(path: string): void {
  const file = openSync(path, 'r')
  fsyncSync(file)
  closeSync(file)
}
