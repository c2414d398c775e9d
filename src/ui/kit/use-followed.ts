import { useEffect, useState } from 'react'

const AGAIN_MS = 2_000

interface Followed<T> {
  /** Asks for what comes after the last answer, and waits for it. */
  ask(last: T | undefined, signal: AbortSignal): Promise<T>
  isOver(answer: T): boolean
  /** Before it is asked again: nobody reads faster, and each reading is written down. */
  restMs(answer: T): number
}

/** As long as somebody looks: each answer is asked for after the last, and comes with the next change. */
export function useFollowed<T>(of: string, { ask, isOver, restMs }: Followed<T>): T | undefined {
  const [shown, show] = useState<{ of: string; answer: T }>()
  // biome-ignore lint/correctness/useExhaustiveDependencies: what it is asked by is named by `of`
  useEffect(() => {
    const left = new AbortController()
    void follow({ ask, isOver, restMs }, (answer) => show({ of, answer }), left.signal)
    return () => left.abort()
  }, [of])
  return shown?.of === of ? shown.answer : undefined
}

async function follow<T>({ ask, isOver, restMs }: Followed<T>, show: (answer: T) => void, left: AbortSignal): Promise<void> {
  let last: T | undefined
  while (!left.aborted) {
    await seen(left)
    try {
      last = await ask(last, left)
      if (left.aborted) return
      show(last)
      if (isOver(last)) return
      await rest(restMs(last), left)
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
