import { useSyncExternalStore } from 'react'

const STEPS: [limit: number, unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  [60, 'second', 1],
  [3_600, 'minute', 60],
  [86_400, 'hour', 3_600],
  [2_592_000, 'day', 86_400],
  [31_536_000, 'month', 2_592_000],
  [Infinity, 'year', 31_536_000],
]
const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

// One clock for the whole page, and none while nobody looks at a time.
let minute = Date.now()
const clock = {
  subscribe(listener: () => void) {
    const timer = setInterval(() => {
      minute = Date.now()
      listener()
    }, 30_000)
    return () => clearInterval(timer)
  },
  now: () => minute,
}

/** "3 minutes ago"; the exact time on hovering. */
export function Time({ at }: { at: string }) {
  useSyncExternalStore(clock.subscribe, clock.now)
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {ago(Date.parse(at), Date.now())}
    </time>
  )
}

export function ago(then: number, now: number): string {
  const seconds = Math.round((then - now) / 1_000)
  if (Math.abs(seconds) < 10) return 'just now'
  const [, unit, length] = STEPS.find(([limit]) => Math.abs(seconds) < limit) as (typeof STEPS)[number]
  return words.format(Math.round(seconds / length), unit)
}
