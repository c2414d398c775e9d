import { lstatSync, rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { GitRefusal } from '../../ports/git.ts'

const ASK_AGAIN_MS = 50

/** One after the other by name, within this process. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  async take<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve()
    const mine = before.then(work, work)
    this.#last.set(name, mine)
    try {
      return await mine
    } finally {
      if (this.#last.get(name) === mine) this.#last.delete(name)
    }
  }
}

interface Locked {
  common: string
  /** A file of ours, where no worker can write. */
  lock: string
}

/** … and among processes of one state folder: who registers or unregisters a worktree of one repository does it alone. */
export async function alone<T>(turns: Turns, of: Locked, waitMs: number, work: () => Promise<T>): Promise<T> {
  return turns.take(of.lock, async () => {
    const release = await hold(of, waitMs)
    try {
      return await work()
    } finally {
      release()
    }
  })
}

/**
 * An exclusive transaction on an empty file: the system drops it with its process, so a SIGKILL leaves nothing to be judged
 * stale. Only another process can make us wait, and there is no signal for the end of that.
 */
async function hold({ common, lock }: Locked, waitMs: number): Promise<() => void> {
  await mkdir(dirname(lock), { recursive: true, mode: 0o700 })
  const deadline = performance.now() + waitMs
  for (;;) {
    removePipes(lock)
    const database = new DatabaseSync(lock)
    try {
      database.exec('PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
      return () => database.close()
    } catch (error) {
      database.close()
      if (!isBusy(error)) throw error
    }
    if (performance.now() > deadline)
      throw new GitRefusal(
        'busy',
        `Another Signalbox has been changing the worktrees of ${common} for ${waitMs / 1_000} s. Try again later.`,
      )
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS))
  }
}

/** The database is opened in the main thread: a pipe that somebody put in the place of one of its files would stop all of us. */
function removePipes(lock: string): void {
  for (const path of ['', '-journal', '-wal', '-shm'].map((suffix) => lock + suffix)) {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found && !found.isFile()) rmSync(path, { recursive: true, force: true })
  }
}

function isBusy(error: unknown): boolean {
  const { errcode, message } = error as { errcode?: number; message?: string }
  return errcode === 5 || message === 'database is locked'
}
