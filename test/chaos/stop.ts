import { setMaxListeners } from 'node:events'

/** A signal that hundreds of calls may listen to without a warning about a leak. */
export function heardByAll(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

/** For load generators only: how long somebody takes before the next thing. */
export function pause(ms: number, stop?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stop?.aborted) return resolve()
    const timer = setTimeout(done, ms)
    function done() {
      clearTimeout(timer)
      stop?.removeEventListener('abort', done)
      resolve()
    }
    stop?.addEventListener('abort', done)
  })
}
