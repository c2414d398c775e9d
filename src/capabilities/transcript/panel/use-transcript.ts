import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { read } from '../../../ui/client.ts'
import { useEvents, usePages, useStreamState } from '../../../ui/live.tsx'
import { type Entry, joined, keyOf } from './rows.ts'

const PAGE = 100

/**
 * The transcript of a task in the order in which it happened. The newest page is read first and older ones when they are
 * asked for; whenever a run has said something, what stands behind the last known entry is fetched.
 */
export function useTranscript(task: string) {
  const pages = usePages('transcript_read', { task_id: task, limit: PAGE }, 'after')
  const older = useMemo(() => pages.data?.pages.flatMap((page) => page.entries).reverse() ?? [], [pages.data])
  const newer = useNewer(task, pages.data !== undefined, older.at(-1))
  const entries = useMemo(() => joined(older, newer), [older, newer])
  const { hasNextPage, fetchNextPage } = pages
  const readOlder = useCallback(() => {
    if (hasNextPage) void fetchNextPage({ cancelRefetch: false })
  }, [hasNextPage, fetchNextPage])
  return { pages, entries, readOlder }
}

/** What was said after the newest entry that was read. One reading at a time: an event that comes meanwhile asks for another. */
function useNewer(task: string, ready: boolean, newest: Entry | undefined): Entry[] {
  const [newer, setNewer] = useState<Entry[]>([])
  const last = useRef<Entry>(undefined)
  last.current ??= newest
  const asked = useRef(false)
  const reading = useRef(false)
  const gone = useRef<AbortController>(undefined)

  const catchUp = useCallback(async () => {
    asked.current = true
    const signal = gone.current?.signal
    if (!signal || reading.current || !ready) return
    reading.current = true
    try {
      while (asked.current && !signal.aborted) {
        asked.current = false
        const after = last.current && keyOf(last.current)
        const page = await read('transcript_read', { task_id: task, order: 'oldest', limit: PAGE * 2, after }, signal)
        if (signal.aborted) return
        last.current = page.entries.at(-1) ?? last.current
        if (page.entries.length) setNewer((before) => joined(before, page.entries))
        asked.current ||= page.next !== null
      }
    } catch {
      // The connection is lost: it is read when the stream is back.
    } finally {
      reading.current = false
    }
  }, [task, ready])

  useEvents((events) => {
    if (events.some(({ type, task_id }) => task_id === task && type.startsWith('run.'))) void catchUp()
  })
  const live = useStreamState() === 'live'
  useEffect(() => {
    gone.current = new AbortController()
    if (live) void catchUp()
    return () => gone.current?.abort()
  }, [live, catchUp])
  return newer
}
