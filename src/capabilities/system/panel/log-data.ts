import type { LiveEvent } from '../../../ui/stream.ts'

/**
 * The log, newest first, out of the pages that were read and of what the stream told since before the first one was read.
 * Whatever the stream told up to the last event that a page has as well is in the pages, or in one that is still to be read.
 */
export function newestFirst(told: LiveEvent[], pages: LiveEvent[]): LiveEvent[] {
  const read = new Set(pages.map((event) => event.cursor))
  const known = told.findLastIndex((event) => read.has(event.cursor))
  return [...told.slice(known + 1).reverse(), ...pages]
}

/** A stream that goes on after a cut may repeat itself. */
export function withNew(told: LiveEvent[], events: LiveEvent[]): LiveEvent[] {
  const known = new Set(told.map((event) => event.cursor))
  const fresh = events.filter((event) => !known.has(event.cursor))
  return fresh.length ? [...told, ...fresh] : told
}
