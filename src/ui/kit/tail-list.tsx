import { useVirtualizer } from '@tanstack/react-virtual'
import { ArrowDown } from 'lucide-react'
import { type Key, type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import { Button } from './button.tsx'
import { VirtualRows } from './virtual.tsx'

interface Props<T> {
  items: T[]
  keyOf(item: T): Key
  estimate: number
  /** The beginning is near: older ones can be read. */
  onStart(): void
  className?: string
  label: string
  children(item: T): ReactNode
}

const NEAR_THE_END = 48
const NEAR_THE_START = 400
const MOVED = 2

/** A list that grows at its end and is read there. It follows what is new until somebody scrolls up, and stays where they are then. */
export function TailList<T>({ items, keyOf, estimate, onStart, className = '', label, children }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null)
  const [follows, setFollows] = useState(true)
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => estimate,
    getItemKey: (index) => keyOf(items[index] as T),
    overscan: 10,
  })
  const size = virtual.getTotalSize()
  const rows = virtual.getVirtualItems()
  const top = useRef(0)
  const first = useRef<Key>(undefined)
  /** What is on the screen, and how far below its upper edge. */
  const seen = useRef<{ key: Key; below: number }[]>([])

  // Until what is new has been measured. What grows later is something that was opened, and that is looked at where it is.
  const growing = useRef(true)
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever there is something new
  useLayoutEffect(() => {
    growing.current = true
    let frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(() => {
        growing.current = false
      })
    })
    return () => cancelAnimationFrame(frame)
  }, [items, follows])
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever it has grown
  useLayoutEffect(() => {
    const list = scroller.current
    if (!growing.current) return
    // Drawn because somebody scrolls up, which is heard of only after this: they must not be taken back.
    if (!list || !follows || list.scrollTop < top.current - MOVED) return
    list.scrollTop = list.scrollHeight
    top.current = list.scrollTop
  }, [follows, size, items])

  // What is put on top must not push away what somebody reads further down.
  useLayoutEffect(() => {
    const list = scroller.current
    const before = first.current
    first.current = items[0] && keyOf(items[0])
    if (!list || follows || before === undefined || before === first.current) return
    const places = new Map(virtual.measurementsCache.map(({ key, start }) => [key as Key, start]))
    const still = seen.current.find(({ key }) => places.has(key))
    if (still) list.scrollTop = (places.get(still.key) as number) - still.below
    if (list.scrollTop < NEAR_THE_START) onStart()
  })

  const scrolled = () => {
    const list = scroller.current
    if (!list) return
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < NEAR_THE_END
    // Growing alone never moves it up: somebody did.
    const up = list.scrollTop < top.current - MOVED
    top.current = list.scrollTop
    seen.current = rows
      .filter(({ end }) => end > list.scrollTop)
      .map(({ key, start }) => ({ key: key as Key, below: start - list.scrollTop }))
    if (atEnd) setFollows(true)
    else if (up) setFollows(false)
    if (up && list.scrollTop < NEAR_THE_START) onStart()
  }

  return (
    <div className={`tail-list ${className}`}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrows */}
      <section ref={scroller} className="virtual" aria-label={label} tabIndex={0} onScroll={scrolled}>
        <ul style={{ height: size }}>
          <VirtualRows {...{ virtual, items, children }} />
        </ul>
      </section>
      {!follows && (
        <Button className="tail-newest" icon={ArrowDown} onClick={() => setFollows(true)}>
          Jump to the newest
        </Button>
      )}
    </div>
  )
}
