import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { UsageError } from '../kernel/error.ts'
import { readAddress, refuseLink } from './home.ts'

export interface Lock {
  release(): void
}

/**
 * One daemon per state folder. The lock is an open exclusive transaction on a small file: the kernel drops it with the
 * process, so a SIGKILL leaves nothing to clean up and a stale pid is never trusted.
 */
export function lockHome(home: string, what: string): Lock {
  const path = join(home, 'daemon.lock')
  refuseLink(path)
  const database = new DatabaseSync(path)
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    chmodSync(path, 0o600)
  } catch (error) {
    database.close()
    if (((error as { errcode?: number }).errcode ?? 0) !== 5) throw error
    const other = readAddress(home)
    const who = other ? ` (pid ${other.pid}, ${other.url})` : ''
    throw new UsageError(
      `Another Signalbox${who} already uses ${home}. Stop it before you ${what}, or choose another folder with SIGNALBOX_HOME.`,
    )
  }
  return {
    release() {
      database.exec('ROLLBACK')
      database.close()
    },
  }
}
