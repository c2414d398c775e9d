import { chmodSync, closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import type { CheckResult } from './engine.ts'
import { APPLICATION_ID, damaged } from './sqlite.ts'
import { Connection } from './sqlite-connection.ts'

/** Reads every page and index. Never writes. */
export function checkFile(path: string): CheckResult {
  let connection: Connection | undefined
  try {
    connection = new Connection(path, { readOnly: true })
    const id = Number(connection.raw.prepare('PRAGMA application_id').get()?.application_id)
    if (id !== APPLICATION_ID) return { ok: false, problems: [`${path} is not a Signalbox database`] }
    const found = connection.raw
      .prepare('PRAGMA integrity_check(20)')
      .all()
      .map((row) => String(row.integrity_check))
    const orphans = connection.raw
      .prepare('PRAGMA foreign_key_check')
      .all()
      .map((row) => `a row of ${row.table} points to a ${row.parent} that is not there`)
    const problems = [...found.filter((line) => line !== 'ok'), ...orphans]
    return { ok: problems.length === 0, problems }
  } catch (error) {
    return { ok: false, problems: [(error as Error).message] }
  } finally {
    connection?.close()
  }
}

/** A consistent copy, also while the daemon writes. It appears under its name only when it is whole and on disk. */
export function backupFile(path: string, target: string): void {
  if (!existsSync(path)) throw new Error(`There is no database at ${path}.`)
  if (existsSync(target)) throw new Error(`${target} is already there; a backup never overwrites.`)
  const partial = `${target}.partial-${process.pid}`
  const connection = new Connection(path, { readOnly: true })
  try {
    connection.raw.prepare('VACUUM INTO ?').run(partial)
    chmodSync(partial, 0o600)
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

/** The caller holds the daemon's lock. What was there before is moved aside, never deleted. Returns where. */
export function restoreFile(path: string, source: string, stamp: string): string | undefined {
  const check = checkFile(source)
  if (!check.ok) throw damaged(source, new Error(check.problems.join('; ')))
  const staged = `${path}.restoring-${process.pid}`
  backupFile(source, staged)
  bumpGeneration(staged, path)
  let aside: string | undefined
  if (existsSync(path)) {
    aside = `${path}.before-restore-${stamp}`
    for (const suffix of ['-wal', '-shm']) if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix)
    renameSync(path, aside)
  }
  renameSync(staged, path)
  syncToDisk(dirname(path))
  return aside
}

/** Higher than either side, so that a cursor issued after the backup was taken is recognised as foreign. */
function bumpGeneration(staged: string, current: string): void {
  const generation = Math.max(generationOf(staged), generationOf(current)) + 1
  const connection = new Connection(staged)
  connection.raw.prepare(`UPDATE meta SET value = ? WHERE name = 'generation'`).run(String(generation))
  connection.close()
  syncToDisk(staged)
}

function generationOf(path: string): number {
  if (!existsSync(path)) return 0
  let connection: Connection | undefined
  try {
    connection = new Connection(path, { readOnly: true })
    return Number(connection.raw.prepare(`SELECT value FROM meta WHERE name = 'generation'`).get()?.value ?? 0)
  } catch {
    // The file being replaced may be the damaged one.
    return 0
  } finally {
    connection?.close()
  }
}

function syncToDisk(path: string): void {
  const file = openSync(path, 'r')
  fsyncSync(file)
  closeSync(file)
}
