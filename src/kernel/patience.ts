import { TransientFault } from './error.ts'

export interface Patience {
  retries: number
  delayMs: number
}

export const PATIENCE: Patience = { retries: 3, delayMs: 1_000 }

/** Does again what met a passing fault of storage. Only for what may be done twice: reads, and writes that come to the same. */
export async function patiently<T>(work: () => Promise<T>, { retries, delayMs } = PATIENCE): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof TransientFault) || attempt >= retries) throw error
      await delay(delayMs)
    }
  }
}

export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** So long, or until the signal comes. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return within(
    ms,
    signal,
    (either) => new Promise((resolve) => (either.aborted ? resolve() : either.addEventListener('abort', () => resolve()))),
  )
}

/**
 * With a signal that comes with the given one or after the time, whichever is first. `AbortSignal.any` of a timeout is forgotten by
 * the collector on Node 20, and then never comes.
 */
export async function within<T>(ms: number, signal: AbortSignal | undefined, work: (either: AbortSignal) => Promise<T>): Promise<T> {
  const either = new AbortController()
  const end = () => either.abort()
  const timer = setTimeout(end, ms)
  signal?.addEventListener('abort', end)
  if (signal?.aborted) end()
  try {
    return await work(either.signal)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}
