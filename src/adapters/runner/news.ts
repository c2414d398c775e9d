import { type FSWatcher, watch } from 'node:fs'
import type { RunnerRecord } from '../../runner/record.ts'
import { EXIT, SPOOL } from '../../runner/spec.ts'
import { callRunner, type RunnerLine } from './line.ts'

/** `grew`: there is more in the spool. `look`: it may have ended. */
export type Piece = 'grew' | 'look'

const FIRST_LOOK_MS = 50
const SLOWEST_LOOK_MS = 5_000

export interface News {
  /** Resolves at once when something has happened since the last call. */
  next(): Promise<Piece>
  close(): void
}

/**
 * What a runner says over its socket, whose end is the runner's end. When somebody swept the socket away, the folder is watched, and
 * since no folder tells that a process has died, the process is looked at slowly as well.
 */
export async function openNews(folder: string, run: string, record: RunnerRecord, signal: AbortSignal): Promise<News> {
  let pending: Piece | undefined = 'look'
  let wake = () => {}
  let line: RunnerLine | undefined
  let second: { close(): void } | undefined
  const tell = (piece: Piece) => {
    pending = pending === 'look' ? 'look' : piece
    wake()
  }
  const fallBack = () => {
    if (signal.aborted) return
    second ??= watchFolder(folder, tell)
  }
  line = await callRunner(record, run, () => tell(line?.closed() ? 'look' : 'grew'))
  const aborted = () => wake()
  signal.addEventListener('abort', aborted)
  return {
    async next() {
      if (!pending && (!line || line.closed())) fallBack()
      while (!pending && !signal.aborted)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      const piece = pending ?? 'look'
      pending = undefined
      return piece
    },
    close() {
      signal.removeEventListener('abort', aborted)
      line?.close()
      second?.close()
    },
  }
}

function watchFolder(folder: string, tell: (piece: Piece) => void): { close(): void } {
  let watcher: FSWatcher | undefined
  let wait = FIRST_LOOK_MS
  let timer: NodeJS.Timeout
  const look = () => {
    tell('look')
    wait = Math.min(wait * 2, SLOWEST_LOOK_MS)
    timer = setTimeout(look, wait)
  }
  timer = setTimeout(look, wait)
  try {
    watcher = watch(folder, (_, name) => {
      if (name === SPOOL) tell('grew')
      if (name === EXIT) tell('look')
    })
    // It may be taken away, or the system may be out of watches: then the slow look is all there is.
    watcher.on('error', () => watcher?.close())
  } catch {}
  return {
    close() {
      clearTimeout(timer)
      watcher?.close()
    },
  }
}
