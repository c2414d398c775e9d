import { useEffect, useState } from 'react'
import { call, type Output } from '../../../ui/client.ts'

export type Screen = Output<'session_read'>

/** Below what a page waits for any answer. */
const WAIT_SECONDS = 12
/** Nobody reads faster; and each reading is written down. */
const REST_MS = 250
const AGAIN_MS = 2_000

/** What the terminal shows, as long as somebody looks: each answer is asked for with the mark of the last, and comes with the next change. */
export function useScreen(task: string, session: string): Screen | undefined {
  const [shown, show] = useState<{ of: string; screen: Screen }>()
  useEffect(() => {
    const left = new AbortController()
    void follow(task, (screen) => show({ of: session, screen }), left.signal)
    return () => left.abort()
  }, [task, session])
  return shown?.of === session ? shown.screen : undefined
}

async function follow(task_id: string, show: (screen: Screen) => void, left: AbortSignal): Promise<void> {
  let unlike: string | undefined
  while (!left.aborted) {
    await seen(left)
    try {
      const screen = await call('session_read', { task_id, unlike, wait_seconds: WAIT_SECONDS }, { signal: left })
      if (left.aborted) return
      if (screen.mark !== unlike) show(screen)
      unlike = screen.mark
      if (screen.state === 'closed' || screen.state === 'lost') return
      await rest(screen.columns ? REST_MS : AGAIN_MS, left)
    } catch {
      await rest(AGAIN_MS, left)
    }
  }
}

/** A tab that nobody looks at must not hold a connection. */
function seen(left: AbortSignal): Promise<void> {
  if (!document.hidden || left.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      if (document.hidden && !left.aborted) return
      document.removeEventListener('visibilitychange', done)
      resolve()
    }
    document.addEventListener('visibilitychange', done)
    left.addEventListener('abort', done)
  })
}

function rest(ms: number, left: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    left.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
