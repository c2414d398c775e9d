import { createHash } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
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

/** … and among processes: who registers or unregisters a worktree of one repository does it alone. */
export async function alone<T>(turns: Turns, common: string, waitMs: number, work: () => Promise<T>): Promise<T> {
  return turns.take(createHash('sha256').update(common).digest('hex'), async () => {
    const release = await hold(common, waitMs)
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
async function hold(common: string, waitMs: number): Promise<() => void> {
  const folder = join(common, 'signalbox')
  const path = join(folder, 'turn')
  await mkdir(folder, { recursive: true })
  for (const made of [folder, path])
    if (lstatSync(made, { throwIfNoEntry: false })?.isSymbolicLink()) throw new GitRefusal('foreign', `${made} is a link. Remove it.`)
  const deadline = performance.now() + waitMs
  for (;;) {
    const database = new DatabaseSync(path)
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

function isBusy(error: unknown): boolean {
  const { errcode, message } = error as { errcode?: number; message?: string }
  return errcode === 5 || message === 'database is locked'
}
