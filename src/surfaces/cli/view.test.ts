import { stripVTControlCharacters } from 'node:util'
import stringWidth from 'string-width'
import { beforeAll, describe, expect, test } from 'vitest'
import { fakeTerminal } from '../../testing/terminal.ts'
import type { Look } from './cell.ts'
import { named } from './names.ts'
import type { Property } from './schema.ts'
import { asJson } from './show.ts'
import { painter } from './style.ts'
import { wantsColours } from './terminal.ts'
import { cut, loadWidths, wrap } from './text.ts'
import { view } from './view.ts'
import { frame } from './watch.ts'
import { ago } from './when.ts'

beforeAll(loadWidths)

const NOW = Date.parse('2026-01-01T12:00:00Z')
const at = (seconds: number) => new Date(NOW - seconds * 1_000).toISOString()
const ANN = `agent_${'0'.repeat(36)}`
const look = (more: Partial<Look> = {}): Look => ({
  columns: 80,
  paint: painter(false),
  handles: new Map([[ANN, 'ann']]),
  now: NOW,
  ...more,
})

function task(n: number, more: object = {}) {
  return {
    id: `task_${String(n).padStart(36, '0')}`,
    handle: `T-${n}`,
    project_id: 'web',
    title: `Task number ${n}`,
    status: n % 2 ? 'REVIEW' : 'BACKLOG',
    task_type: 'AUTO',
    priority: n % 2 ? 'high' : 'low',
    assignee_id: n % 2 ? ANN : null,
    parent_id: null,
    blocked_by: [],
    attention: n % 2 ? 'running' : 'human',
    version: 3,
    created_at: at(90_000),
    updated_at: at(n * 60),
    ...more,
  }
}

const tasks = (list: object[], more: Partial<Look> = {}) =>
  view({ tasks: list, next: null, cursor: 'x' }, named('task_list')?.outputJson as Property, 'task', look(more))

describe('tables', () => {
  test('[E44] handles stand for ids, times are relative, what says nothing is left out', () => {
    expect(tasks([task(1), task(2)], { columns: 72 })).toBe(
      [
        'TASK  TITLE          STATUS   PRIORITY  ASSIGNEE  ATTENTION  UPDATED',
        'T-1   Task number 1  REVIEW   high      ann       running    1 min ago',
        'T-2   Task number 2  BACKLOG  low       -         human      2 min ago',
        '',
      ].join('\n'),
    )
  })

  test('[E44] no line is wider than the terminal, and the title stays readable', () => {
    const list = [
      task(1, { title: 'A title that is much longer than what fits beside all the other columns of a narrow terminal' }),
      task(2),
    ]
    for (const columns of [12, 20, 28, 40, 60, 80, 120, 200]) {
      const lines = tasks(list, { columns }).split('\n')
      expect(lines.filter((line) => stringWidth(line) > columns)).toEqual([])
      expect(lines[1]).toMatch(columns < 30 ? /^T-1 +A t/ : /^T-1 +A title that is much/)
    }
    expect(tasks(list, { columns: 60 })).toContain('…')
    expect(tasks(list, { columns: 200 })).not.toContain('…')
  })

  test('[E44] the decision log shows what was decided and when, and no ids that no verb takes', () => {
    const entry = (kind: string, decision: string) => {
      const id = `call_${'0'.repeat(36)}.${kind}`
      return { id, kind, agent_id: ANN, decision, reasoning: `Automatic tool ${kind} log`, context: { n: 1 }, timestamp: at(60) }
    }
    const decisions = [entry('result', 'Tool result: review_decide'), entry('invocation', 'Invoked tool: review_decide')]
    const shown = view({ decisions, next: null }, named('decision_list')?.outputJson as Property, 'decision', look({ columns: 100 }))
    expect(shown).not.toContain('call_')
    expect(shown).toMatch(/Invoked tool: review_decide .*1 min ago/)
  })

  test('[E44] letters have their sender, also when all are from one', () => {
    const letter = (n: number) => {
      const ids = { id: `mail_${String(n).padStart(36, '0')}`, thread_id: `thread_${String(n).padStart(36, '0')}`, from_id: ANN }
      return {
        ...ids,
        from: 'ann',
        from_role: 'worker',
        subject: '⚠️ CRITICAL: all is lost',
        importance: 'normal',
        sent_at: at(60),
        body: 'x',
      }
    }
    const schema = named('mail_inbox')?.outputJson as Property
    const shown = view({ count: 2, unread_count: 2, letters: [letter(1), letter(2)], next: null }, schema, 'mail', look())
    expect(shown.split('\n')[0]).toMatch(/^ID +FROM +SUBJECT/)
  })

  test('[E44] wide characters, emoji and accents keep the columns in line', () => {
    const titles = ['日本語のタイトル', '👩‍👩‍👧 family', 'e\u0301te\u0301', 'plain']
    const lines = tasks(titles.map((title, i) => task(i, { title, status: 'BACKLOG' })))
      .trimEnd()
      .split('\n')
    const starts = lines.slice(1).map((line) => stringWidth(line.slice(0, line.indexOf('BACKLOG'))))
    expect(new Set(starts).size).toBe(1)
    expect(cut('日本語のタイトル', 7)).toBe('日本語…')
    expect(stringWidth(cut('👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧', 4))).toBeLessThanOrEqual(4)
  })

  test('[E44] a thing is a headline and its fields; long text is wrapped, sentences stand below each other', () => {
    const words = 'word '.repeat(30).trim()
    const thing = {
      ...task(1),
      description: `${words}\n\nend`,
      acceptance_criteria: ['It works', words],
      dependencies: [],
      dependents: [],
      notes: [],
    }
    const shown = view({ task: thing }, named('task_get')?.outputJson as Property, 'task', look({ columns: 64 }))
    const lines = shown.split('\n')
    expect(lines[0]).toBe('T-1  Task number 1')
    expect(lines.filter((line) => stringWidth(line) > 64)).toEqual([])
    expect(shown).toMatch(/^acceptance criteria {2}- It works\n {21}- word word/m)
    expect(shown).not.toContain('dependents')
    const long = view({ task: { ...thing, title: words } }, named('task_get')?.outputJson as Property, 'task', look({ columns: 64 }))
    expect(long).toMatch(/^T-1 {2}word [word ]+\n {5}word /)
    expect(long.split('\n').filter((line) => stringWidth(line) > 64)).toEqual([])
  })

  test('[E48] a watched line that is wider than the terminal counts as the rows that it takes', () => {
    const rowsOf = (text: string) =>
      frame('w', text, fakeTerminal({ columns: 20 }))
        .split('\n')
        .slice(0, -1)
    expect(rowsOf('a\n'.repeat(37))).toHaveLength(39)
    expect(rowsOf('a\n'.repeat(40)).at(-1)).toContain('… 4 more lines')
    const wide = rowsOf(`${'x'.repeat(50)}\n`.repeat(20))
    expect(wide.reduce((sum, line) => sum + Math.ceil(Math.max(1, stringWidth(line)) / 20), 0)).toBeLessThanOrEqual(39)
    expect(wide.at(-1)).toContain('more lines')
  })

  test('[E44] times in words', () => {
    expect([0, 59, 60, 3_599, 7_200, 200_000, 40 * 86_400, -120].map((s) => ago(at(s), NOW))).toEqual([
      'just now',
      '59 s ago',
      '1 min ago',
      '59 min ago',
      '2 h ago',
      '2 d ago',
      '2025-11-22',
      'in 2 min',
    ])
    expect(wrap('a bb ccc', 4)).toEqual(['a bb', 'ccc'])
    expect(wrap('To set it up:\nsignalbox repo update web', 8)).toEqual(['To set', 'it up:', 'signalbox repo update web'])
  })
})

describe('safety and colours', () => {
  test('[E45] control characters and direction marks from data are made visible, in tables and in fields', () => {
    const evil = 'x\u001b[2J\u001b]52;c;aGk=\u0007\r\u009b31m\u202egnp'
    for (const shown of [
      tasks([task(1, { title: evil }), task(2)]),
      view(
        { task: { ...task(1), title: evil, description: evil, blocked_by: [evil] } },
        named('task_get')?.outputJson as Property,
        'task',
        look(),
      ),
      view({ [evil]: evil, data: { [evil]: evil } }, {}, 'x', look()),
    ]) {
      expect(shown).toContain('\ufffd')
      expect(shown).not.toMatch(/[^\P{Cc}\n]|[\u202a-\u202e]/u)
    }
  })

  test('[E45] JSON has them as escapes, and is read as the same', () => {
    const evil = { title: 'x\u001b[2J\u007f\u009b31m\u202egnp\u2066\u2028 日本' }
    for (const pretty of [true, false]) {
      const shown = asJson(evil, pretty)
      expect(shown).toContain('\\u009b31m\\u202egnp')
      expect(shown).not.toMatch(/[^\P{Cc}\n]|[\u2028-\u202e\u2066-\u2069]/u)
      expect(JSON.parse(shown)).toEqual(evil)
    }
  })

  test('[E46] colours are for terminals that want them', () => {
    expect(wantsColours({}, true)).toBe(true)
    expect(wantsColours({}, false)).toBe(false)
    expect(wantsColours({ NO_COLOR: '1' }, true)).toBe(false)
    expect(wantsColours({ NO_COLOR: '' }, true)).toBe(true)
    expect(wantsColours({ TERM: 'dumb' }, true)).toBe(false)
    expect(wantsColours({ FORCE_COLOR: '1' }, false)).toBe(true)
    expect(wantsColours({ FORCE_COLOR: '0' }, true)).toBe(false)
    const coloured = tasks([task(1), task(2)], { paint: painter(true) })
    expect(coloured).toContain('\u001b[33mREVIEW')
    expect(stripVTControlCharacters(coloured)).toBe(tasks([task(1), task(2)]))
  })
})
