import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { UsageError } from '../kernel/error.ts'
import { readAddress, refuseLink } from './home.ts'

export interface Lock {
  release(): void
}

/** One daemon per state folder. */
export function lockHome(home: string, what: string): Lock {
  return take(lockOf(home), () => {
    const other = readAddress(home)
    const who = other ? ` (pid ${other.pid}, ${other.url})` : ''
    return `Another Signalbox${who} already uses ${home}. Stop it before you ${what}, or choose another folder with SIGNALBOX_HOME.`
  })
}

/** And one per database: two state folders can name the same file. */
export function lockDatabase(path: string): Lock {
  return take(
    `${path}.lock`,
    () => `Another Signalbox, with another state folder, already uses the database ${path}. Stop it, or choose another file.`,
  )
}

/** Whether a daemon of this state folder runs now: only then is what answers at its address our own. */
export function isServed(home: string): boolean {
  if (!existsSync(lockOf(home))) return false
  const database = new DatabaseSync(lockOf(home), { readOnly: true })
  try {
    database.prepare('SELECT count(*) FROM sqlite_master').get()
    return false
  } catch (error) {
    return isBusy(error)
  } finally {
    database.close()
  }
}

/**
 * The lock is an open exclusive transaction on a small file: the kernel drops it with the process, so a SIGKILL leaves
 * nothing to clean up and a stale pid is never trusted.
 */
function take(path: string, taken: () => string): Lock {
  refuseLink(path)
  const database = new DatabaseSync(path)
  try {
    // Somebody who only looks whether it is held has it for a moment.
    database.exec('PRAGMA busy_timeout = 500; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    chmodSync(path, 0o600)
  } catch (error) {
    database.close()
    throw isBusy(error) ? new UsageError(taken()) : error
  }
  return {
    release() {
      database.exec('ROLLBACK')
      database.close()
    },
  }
}

function lockOf(home: string): string {
  return join(home, 'daemon.lock')
}

function isBusy(error: unknown): boolean {
  const { errcode, message } = error as { errcode?: number; message?: string }
  return errcode === 5 || message === 'database is locked'
}
