import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual'
import { type Key, type ReactNode, useEffect, useLayoutEffect, useRef } from 'react'

interface Props<T> {
  items: T[]
  keyOf(item: T): Key
  estimate: number
  /** The end is near: more can be read. */
  onEnd?(): void
  className?: string
  label: string
  children(item: T): ReactNode
}

/** A list that draws what is on the screen, however long it is. */
export function VirtualList<T>({ items, keyOf, estimate, onEnd, className = '', label, children }: Props<T>) {
  const scroller = useRef<HTMLUListElement>(null)
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => estimate,
    getItemKey: (index) => keyOf(items[index] as T),
    overscan: 12,
  })
  const rows = virtual.getVirtualItems()
  const last = rows.at(-1)?.index ?? 0
  useEffect(() => {
    if (items.length && last >= items.length - 1) onEnd?.()
  }, [last, items.length, onEnd])
  // What was put on top must not push away what somebody reads further down.
  const first = useRef<Key>(undefined)
  const top = items[0] && keyOf(items[0])
  useLayoutEffect(() => {
    const before = first.current
    first.current = top
    const list = scroller.current
    if (before === undefined || before === top || !list || list.scrollTop === 0) return
    const added = items.findIndex((item) => keyOf(item) === before)
    list.scrollTop += virtual.measurementsCache[added]?.start ?? 0
  })
  return (
    <ul ref={scroller} className={`virtual ${className}`} aria-label={label}>
      <li className="virtual-space" aria-hidden style={{ height: virtual.getTotalSize() }} />
      <VirtualRows {...{ virtual, items, children }} />
    </ul>
  )
}

interface RowsProps<T> {
  virtual: Pick<Virtualizer<Element, Element>, 'getVirtualItems' | 'measureElement'>
  items: T[]
  children(item: T): ReactNode
}

/** Those on the screen, each at its place and measured there. */
export function VirtualRows<T>({ virtual, items, children }: RowsProps<T>) {
  return virtual.getVirtualItems().map((row) => (
    <li
      key={row.key}
      ref={virtual.measureElement}
      data-index={row.index}
      className="virtual-row"
      style={{ transform: `translateY(${row.start}px)` }}
    >
      {children(items[row.index] as T)}
    </li>
  ))
}
