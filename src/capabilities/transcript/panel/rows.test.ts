import { describe, expect, test } from 'vitest'
import { type Entry, joined, rowsOf } from './rows.ts'

const entry = (run: string, number: number, kind: Entry['kind'], turn = 1): Entry =>
  ({ run_id: run, number, turn, kind, name: null, body: `${run}${number}`, at: '2026-01-01T00:00:00Z' }) as Entry

const shape = (entries: Entry[]) =>
  rowsOf(entries).map((row) => (row.is === 'entry' ? row.entry.body + (row.result ? `=${row.result.body}` : '') : row.key))

describe('the rows of a transcript', () => {
  test('[U13] runs and turns begin where another begins, and a result stands with its call', () => {
    const entries = [entry('a', 1, 'agent'), entry('a', 2, 'tool_call'), entry('a', 3, 'tool_result'), entry('a', 4, 'agent', 2)]
    expect(shape([...entries, entry('b', 1, 'agent')])).toEqual([
      'run of a.1',
      'turn of a.1',
      'a1',
      'a2=a3',
      'turn of a.4',
      'a4',
      'run of b.1',
      'turn of b.1',
      'b1',
    ])
  })

  test('[U13] of calls that were open together no result is given to one that may not be its own', () => {
    const kinds: Entry['kind'][] = ['tool_call', 'tool_call', 'tool_result', 'tool_result', 'tool_call', 'tool_result']
    expect(shape(kinds.map((kind, i) => entry('a', i + 1, kind)))).toEqual(['run of a.1', 'turn of a.1', 'a1', 'a2', 'a3', 'a4', 'a5=a6'])
  })

  test('[U13] what was read twice is there once', () => {
    const [one, two, three] = [1, 2, 3].map((number) => entry('a', number, 'agent')) as [Entry, Entry, Entry]
    expect(joined([one, two], [two, three])).toEqual([one, two, three])
    expect(joined([], [two])).toEqual([two])
  })
})
