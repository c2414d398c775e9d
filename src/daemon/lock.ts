import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { ConfigError } from './config.ts'

export interface Lock {
  release(): void
}

/**
 * One daemon per state folder. The lock is an open exclusive transaction on a small file: the kernel drops it with the
 * process, so a SIGKILL leaves nothing to clean up and a stale pid is never trusted.
 */
export function lockHome(home: string, what: string): Lock {
  const path = join(home, 'daemon.lock')
  const holder = join(home, 'daemon.pid')
  const database = new DatabaseSync(path)
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (((error as { errcode?: number }).errcode ?? 0) !== 5) throw error
    const pid = existsSync(holder) ? readFileSync(holder, 'utf8').trim() : 'unknown'
    throw new ConfigError(`Another Signalbox (pid ${pid}) already uses ${home}. Stop it first, or choose another folder with SIGNALBOX_HOME, before you ${what}.`)
  }
  writeFileSync(holder, `${process.pid}\n`, { mode: 0o600 })
  return {
    release() {
      database.exec('ROLLBACK')
      database.close()
    },
  }
}
