import { useLayoutEffect, useRef } from 'react'
import { visible } from './plain.ts'

/** What a program printed last; its end is shown, as long as nobody has scrolled up. */
export function Log({ name, text }: { name: string; text: string }) {
  const box = useRef<HTMLElement>(null)
  const atEnd = useRef(true)
  useLayoutEffect(() => {
    if (text && box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight
  }, [text])
  if (!text) return null
  const scrolled = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current as HTMLElement
    atEnd.current = scrollHeight - scrollTop - clientHeight < 30
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what is wider or longer than its place is scrolled by keys
    <section ref={box} className="log-box" aria-label={name} tabIndex={0} onScroll={scrolled}>
      <pre>{visible(text.replace(/^\s*\n/, ''))}</pre>
    </section>
  )
}
