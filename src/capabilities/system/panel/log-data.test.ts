import { expect, test } from 'vitest'
import type { LiveEvent } from '../../../ui/stream.ts'
import { newestFirst, withNew } from './log-data.ts'

test('what the stream told before the first page came is not lost, and what the page has too is there once', () => {
  expect(cursors(newestFirst(events(3, 4, 5), events(4, 3, 2, 1)))).toEqual(['5', '4', '3', '2', '1'])
})

test('without a page in common everything that was told is newer', () => {
  expect(cursors(newestFirst(events(3, 4), events(2, 1)))).toEqual(['4', '3', '2', '1'])
  expect(cursors(newestFirst([], events(2, 1)))).toEqual(['2', '1'])
})

test('what was told longer ago than the first page reaches waits for its own page', () => {
  const told = events(1, 2, 3, 4, 5, 6)
  expect(cursors(newestFirst(told, events(5, 4)))).toEqual(['6', '5', '4'])
  expect(cursors(newestFirst(told, events(5, 4, 3, 2)))).toEqual(['6', '5', '4', '3', '2'])
})

test('an event that the stream repeats after a cut is taken once', () => {
  expect(cursors(withNew(events(1, 2), events(2, 3)))).toEqual(['1', '2', '3'])
})

function events(...numbers: number[]): LiveEvent[] {
  return numbers.map((n) => ({
    cursor: String(n),
    at: '2026-01-01T00:00:00.000Z',
    type: 'task.noted',
    subject: 'task_1',
    actor: 'system',
    project_id: null,
    task_id: null,
    data: {},
  }))
}

const cursors = (list: LiveEvent[]) => list.map((event) => event.cursor)
